use std::fs;
use std::io::Write as _;

use super::super::file::MARK;
use super::*;

/// A folder, and all the names in it.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// In a folder of its own, where files without a name are to be had, and where they are not.
fn each_way(test: impl Fn(&Path, &dyn Fn(&Path) -> (RecordingFile, File))) {
    for has_unnamed in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        test(folder.path(), &|told| {
            let (place, mut file) = RecordingFile::open_where(told, has_unnamed).unwrap();
            file.write_all(b"FERRYTRC, new").unwrap();
            (place, file)
        });
    }
}

fn older_recording(path: &Path) {
    fs::write(path, [&MARK[..], b", older"].concat()).unwrap();
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn an_older_recording_is_replaced_when_the_new_one_is_whole() {
    each_way(|folder, open| {
        let told = folder.join("t");
        older_recording(&told);
        let (place, file) = open(&told);
        assert_eq!(text(&told), "FERRYTRC, older");
        assert_eq!(place.publish(&file), Ok(told.clone()));
        assert_eq!((text(&told), names(folder)), ("FERRYTRC, new".to_owned(), vec!["t".to_owned()]));
    });
}

#[test]
fn a_run_that_is_given_up_leaves_what_was_there() {
    each_way(|folder, open| {
        older_recording(&folder.join("t"));
        drop(open(&folder.join("t")));
        drop(open(&folder.join("u%n")));
        assert_eq!(
            (text(&folder.join("t")), names(folder)),
            ("FERRYTRC, older".to_owned(), vec!["t".to_owned()])
        );
    });
}

#[test]
fn what_came_to_the_place_meanwhile_keeps_it() {
    each_way(|folder, open| {
        let told = folder.join("t");
        let (place, file) = open(&told);
        fs::write(&told, "somebody's").unwrap();
        fs::write(folder.join("t.2"), "somebody else's").unwrap();
        assert_eq!(place.publish(&file), Ok(folder.join("t.3")));
        assert_eq!(
            (text(&told), text(&folder.join("t.3"))),
            ("somebody's".to_owned(), "FERRYTRC, new".to_owned())
        );
        assert_eq!(names(folder), ["t", "t.2", "t.3"]);
    });
}

#[test]
fn an_older_recording_that_was_changed_meanwhile_keeps_its_place() {
    each_way(|folder, open| {
        let told = folder.join("t");
        older_recording(&told);
        let (place, file) = open(&told);
        fs::write(&told, "FERRYTRC, and a copy of something").unwrap();
        assert_eq!(place.publish(&file), Ok(folder.join("t.2")));
        assert_eq!(text(&told), "FERRYTRC, and a copy of something");
        assert_eq!(names(folder), ["t", "t.2"]);
    });
}

#[test]
fn two_that_are_told_of_one_place_have_a_name_each() {
    each_way(|folder, open| {
        // Spelled in another way, as by another process: it gets no number (`numbered`).
        fs::create_dir(folder.join("sub")).unwrap();
        let told = [folder.join("t"), folder.join("sub").join("..").join("t")];
        let [(one, one_file), (other, other_file)] = [open(&told[0]), open(&told[1])];
        assert_eq!(other.publish(&other_file), Ok(told[1].clone()));
        assert_eq!(one.publish(&one_file), Ok(folder.join("t.2")));
        assert_eq!(names(folder), ["sub", "t", "t.2"]);
    });
}

#[test]
fn a_folder_is_no_place() {
    for told in ["/", "/tmp/", ".", "..", "/tmp/."] {
        let refused = RecordingFile::open(Path::new(told)).expect_err("it is a folder");
        assert_eq!(refused.raw_os_error(), Some(Errno::ISDIR.raw_os_error()), "{told}");
    }
}

#[test]
fn hidden_names_for_a_recording_are_tried_a_hundred_times() {
    each_way(|folder, open| {
        let (mut place, _) = open(&folder.join("t"));
        let tried = std::cell::Cell::new(0);
        let taken = place.under_hidden_name(|_, _| {
            tried.set(tried.get() + 1);
            Err::<(), _>(Errno::EXIST)
        });
        assert_eq!((taken, tried.get()), (Err(Errno::BUSY), 100));
    });
}
