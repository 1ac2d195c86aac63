use std::fs;
use std::path::Path;

use ferry_sync::preview::Preview;

use super::*;

fn tree() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("tree");
    fs::create_dir_all(root.join("a/b/c")).unwrap();
    for (name, size) in [("one", 10), ("a/two", 200), ("a/b/c/three", 3000)] {
        fs::write(root.join(name), vec![0; size]).unwrap();
    }
    fs::hard_link(root.join("one"), root.join("a/again")).unwrap();
    std::os::unix::fs::symlink("one", root.join("link")).unwrap();
    place
}

fn counted(plan: &Plan, limits: (usize, u64)) -> Option<All> {
    counted_since(plan, SystemTime::UNIX_EPOCH, limits)
}

fn counted_since(plan: &Plan, since: SystemTime, limits: (usize, u64)) -> Option<All> {
    Counter::new(plan, since, &AtomicBool::new(false), limits).count()
}

fn exact(entries: u64, bytes: Option<u64>) -> Option<All> {
    Some(All { entries, bytes, is_estimate: false })
}

/// Returns a plan that counts sources.
fn plan(sources: &[&Path]) -> Plan {
    let root = |source: &&Path| Root { source: source.to_path_buf(), target: "missing".into() };
    Plan { roots: sources.iter().map(root).collect(), ..Plan::default() }
}

#[test]
fn entries_and_bytes_are_those_of_the_copy() {
    let place = tree();
    let root = place.path().join("tree");
    let of_tree = |sizes, links| Plan { sizes, links, ..plan(&[&root]) };
    assert_eq!(counted(&of_tree(true, true), (MOST, FIRST)), exact(9, Some(3210)));
    assert_eq!(counted(&of_tree(true, false), (MOST, FIRST)), exact(9, Some(3220)));
    assert_eq!(counted(&of_tree(false, true), (MOST, FIRST)), exact(9, None));
    let [link, one, missing] = ["link", "one", "missing"].map(|name| root.join(name));
    let of_three = |follows, links| Plan { sizes: true, follows, links, ..plan(&[&link, &one, &missing]) };
    assert_eq!(counted(&of_three(false, true), (MOST, FIRST)), exact(2, Some(10)));
    assert_eq!(counted(&of_three(true, false), (MOST, FIRST)), exact(2, Some(20)));
}

#[test]
fn too_many_folders_at_once_are_not_counted() {
    let place = tempfile::tempdir().unwrap();
    for number in 0..9 {
        fs::create_dir(place.path().join(number.to_string())).unwrap();
    }
    assert_eq!(counted(&plan(&[place.path()]), (8, FIRST)), None);
    assert_eq!(counted(&plan(&[place.path()]), (9, FIRST)), exact(10, None));
}

#[test]
fn bytes_of_many_files_are_estimated_first() {
    let place = tempfile::tempdir().unwrap();
    for number in 0..2000_usize {
        fs::write(place.path().join(number.to_string()), vec![0; number % 100]).unwrap();
    }
    let plan = Plan { sizes: true, ..plan(&[place.path()]) };
    let estimate = counted(&plan, (MOST, 100)).unwrap();
    assert!(estimate.is_estimate && estimate.entries == 2001, "{estimate:?}");
    assert!((79_200..118_800).contains(&estimate.bytes.unwrap()), "{estimate:?}");
    assert_eq!(counted(&plan, (MOST, 2000)), exact(2001, Some(99_000)));
    // The second pass follows the first.
    let state = State::default();
    state.count(&plan, SystemTime::UNIX_EPOCH, (MOST, 100));
    assert_eq!(*lock(&state.all), exact(2001, Some(99_000)));
}

#[test]
fn bytes_of_files_that_stay_do_not_count() {
    let place = tempfile::tempdir().unwrap();
    let [source, target] = ["source", "target"].map(|name| place.path().join(name));
    for (name, size, is_old) in [("equal", 10, true), ("larger", 200, true), ("new", 3000, false)] {
        for (root, size) in [(&source, size), (&target, 10)] {
            fs::create_dir_all(root.join("folder")).unwrap();
            let file = fs::File::create(root.join("folder").join(name)).unwrap();
            file.set_len(size).unwrap();
            let seconds = if is_old { 1000 } else { 2000 };
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        }
    }
    fs::remove_file(target.join("folder/new")).unwrap();
    let later = SystemTime::now() + Duration::from_hours(1);
    let counted = |stays, since| {
        let roots = vec![Root { source: source.clone(), target: target.clone() }];
        let preview = (stays == Stays::Equal).then(|| preview(&source, &target, &[], None));
        counted_since(&Plan { roots, sizes: true, stays, preview, ..Plan::default() }, since, (MOST, FIRST))
    };
    assert_eq!(counted(Stays::None, later), exact(5, Some(3210)));
    assert_eq!(counted(Stays::Existing, later), exact(5, Some(3000)));
    assert_eq!(counted(Stays::NotOlder, later), exact(5, Some(3000)));
    // A sync does not count the root itself.
    assert_eq!(counted(Stays::Equal, later), exact(4, Some(3200)));
    // Files that this run has made were moved.
    assert_eq!(counted(Stays::Equal, SystemTime::UNIX_EPOCH), exact(4, Some(3210)));
}

fn preview(source: &Path, target: &Path, options: &[&str], list: Option<&str>) -> Preview {
    let list = list.map(|names| Arc::new(ferry_sync::List::read(names.as_bytes(), b'\n').unwrap()));
    let rules = options
        .iter()
        .map(|pattern| ferry_sync::Rule { pattern: (*pattern).to_owned(), origin: "--exclude".to_owned() });
    let selection = ferry_sync::Selection {
        rules: rules.collect(),
        gitignore: true,
        min_size: Some(5),
        ..ferry_sync::Selection::default()
    };
    let request = ferry_sync::Request {
        source: source.to_owned(),
        target: target.to_owned(),
        comparison: ferry_sync::Comparison::SizeAndTime,
        keeps_newer: false,
        deletes: false,
        allows_empty: false,
        max_delete: ferry_sync::MaxDelete::Half,
        selection,
        list,
        each_entry: false,
        acting: ferry_sync::Acting::default(),
    };
    Preview::new(&request).unwrap()
}

/// Regression: bytes that `cp -u` had copied into existing files counted as bytes of files that stay.
#[test]
fn files_that_the_run_has_overwritten_count() {
    let place = tempfile::tempdir().unwrap();
    let [source, target] = ["source", "target"].map(|name| place.path().join(name));
    for root in [&source, &target] {
        fs::create_dir(root).unwrap();
        fs::write(root.join("file"), [0; 10]).unwrap();
    }
    let since = fs::metadata(target.join("file")).unwrap().modified().unwrap() + Duration::from_nanos(1);
    let counted = || {
        let roots = vec![Root { source: source.clone(), target: target.clone() }];
        let plan = Plan { roots, sizes: true, stays: Stays::NotOlder, ..Plan::default() };
        counted_since(&plan, since, (MOST, FIRST))
    };
    assert_eq!(counted(), exact(2, Some(0)));
    std::thread::sleep(Duration::from_millis(20));
    fs::write(target.join("file"), [1; 10]).unwrap();
    assert_eq!(counted(), exact(2, Some(10)));
}

#[test]
fn only_what_takes_part_counts() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("tree");
    for (path, size) in [
        ("a/one", 10),
        ("a/one.o", 100),
        ("a/small", 4),
        ("a/build/two", 1000),
        ("b/three", 2000),
        ("b/c/four", 4000),
        ("a/.gitignore", 6),
    ] {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), if size == 6 { b"build\n".to_vec() } else { vec![0; size] }).unwrap();
    }
    let counted = |options: &[&str], list| {
        let preview = Some(preview(&root, Path::new("missing"), options, list));
        counted(&Plan { sizes: true, preview, ..plan(&[&root]) }, (MOST, FIRST))
    };
    // An excluded folder counts, as it is examined, and not what is in it.
    assert_eq!(counted(&[], None), exact(10, Some(6116)));
    assert_eq!(counted(&["*.o", "/b/"], None), exact(7, Some(16)));
    // Folders on the way to a listed name are examined, too.
    assert_eq!(counted(&[], Some("b/\na/one\n")), exact(6, Some(6010)));
    assert_eq!(counted(&["three"], Some("b/three\na/one\nmissing\n")), exact(4, Some(10)));
}

#[test]
fn a_census_that_is_dropped_ends() {
    let place = tree();
    let state = State { stops: AtomicBool::new(true), ..State::default() };
    state.count(&plan(&[place.path()]), SystemTime::UNIX_EPOCH, (MOST, FIRST));
    assert_eq!(*lock(&state.all), None);
}

#[test]
fn a_total_is_known_after_a_moment() {
    let place = tree();
    let root = place.path().join("tree");
    let census = Census::new(plan(&[&root]));
    assert_eq!(census.all(), None, "it begins at once");
    let begun = Instant::now();
    let all = loop {
        match census.all() {
            Some(all) => break all,
            None => assert!(begun.elapsed().as_secs() < 60, "it is not counted"),
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(begun.elapsed() >= COUNT_DELAY - Duration::from_millis(50), "{:?}", begun.elapsed());
    assert_eq!(Some(all), exact(9, None));
}
