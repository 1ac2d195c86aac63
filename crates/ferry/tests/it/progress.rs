//! `--progress`: the line fits the terminal, knows the total early, and agrees with the line after an interruption.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::interrupted::{shown_on, terminal};
use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, is_root, skip, text};

/// Makes 600 files of 10 kB in 31 folders.
fn make(place: &Path) {
    for folder in 0..30 {
        let folder = place.join(format!("source/{folder}"));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..20 {
            fs::write(folder.join(file.to_string()), [b'x'; 10_000]).unwrap();
        }
    }
}

/// Returns the lines that a terminal has shown, without control sequences.
fn lines(shown: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut characters = shown.chars();
    while let Some(character) = characters.next() {
        match character {
            '\x1b' => drop(characters.find(|end| end.is_ascii_alphabetic())),
            '\r' | '\n' => lines.push(String::new()),
            character => lines.last_mut().unwrap().push(character),
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// Returns the percentage that a line begins with.
fn percentage(line: &str) -> Option<u64> {
    line.split_once(" %").and_then(|(number, _)| number.parse().ok())
}

#[test]
fn the_line_fits_the_terminal() {
    let memory = Filesystem::memory();
    make(memory.path());
    for (columns, part) in [(10, "%"), (40, "/6.0 MB"), (80, "/631 entries"), (120, "[=")] {
        let Some((controller, user)) = terminal() else { return };
        tcsetwinsize(&user, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        for command in ["cp -rT", "sync"] {
            let line = format!("exec '{FERRY}' {command} --progress=always --bwlimit=4M source target");
            let mut copy = Command::new("sh");
            copy.args(["-c", &line]).current_dir(memory.path()).stderr(user.try_clone().unwrap());
            assert!(copy.status().unwrap().success());
            fs::remove_dir_all(memory.path().join("target")).unwrap();
            let shown = shown_on(&controller);
            let mut lines = lines(text(&shown));
            // The last ones are the summary.
            let begin =
                lines.iter().position(|line| line.starts_with("copied") || line.starts_with("created"));
            let summary = lines.split_off(begin.unwrap());
            // Words longer than 10 columns are not broken.
            let most = usize::from(columns.max(40));
            assert!(summary.iter().all(|line| line.chars().count() <= most), "{summary:#?}");
            let summary =
                summary.iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ");
            assert!(summary.starts_with("copied 631 entries, 6.0 MB") || command == "sync", "{summary}");
            let longest = lines.iter().max_by_key(|line| line.chars().count()).unwrap();
            assert!(longest.chars().count() < usize::from(columns), "{columns} columns: {longest}");
            let found: Vec<&String> = lines.iter().filter(|line| percentage(line).is_some()).collect();
            // A sync does not count its root.
            let part = if command == "sync" { part.replace("631", "630") } else { part.to_owned() };
            assert!(
                found.iter().any(|line| line.contains(&part)),
                "{columns} columns, {command}: {lines:#?}"
            );
            let percentages: Vec<u64> = found.iter().filter_map(|line| percentage(line)).collect();
            assert!(percentages.is_sorted() && percentages.iter().all(|&it| it <= 100), "{percentages:?}");
        }
    }
}

#[test]
fn all_work_is_known_after_a_tenth_of_the_time() {
    let memory = Filesystem::memory();
    make(memory.path());
    let mut command = Command::new(FERRY);
    // It takes ten seconds, and the first line comes after one.
    command.args(["cp", "-r", "--progress=always", "--bwlimit=600K", "source", "target"]);
    let output = command.current_dir(memory.path()).stdout(Stdio::null()).output().unwrap();
    assert!(output.status.success());
    let lines: Vec<&str> = text(&output.stderr).lines().collect();
    assert!(lines.len() >= 8, "{lines:#?}");
    // On a busy machine the thread that counts may come a moment too late for the first line.
    let known = lines.iter().position(|line| line.contains("/6.0 MB") && line.contains("/631 entries"));
    assert!(known.is_some_and(|known| known <= 1), "{lines:#?}");
    assert!(percentage(lines[1]).is_some_and(|percentage| percentage <= 35), "{lines:#?}");
    let last = percentage(lines[lines.len() - 2]);
    assert!(last.is_some_and(|last| last >= 75), "{lines:#?}");
}

#[test]
fn the_line_after_an_interruption_says_what_was_removed() {
    let memory = Filesystem::memory();
    fs::write(memory.path().join("large"), vec![b'x'; 8 << 20]).unwrap();
    let mut command = Command::new(FERRY);
    command.args(["cp", "--progress=always", "--bwlimit=1M", "large", "target"]).current_dir(memory.path());
    let copy = command.stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(2300));
    kill_process(Pid::from_child(&copy), Signal::INT).unwrap();
    let output = copy.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()));
    let said = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, last) = said.split_once("interrupted after ").unwrap();
    let (figures, removed) = last.split_once("; ").unwrap();
    let reached = figures.strip_prefix("0/1 entries, ").and_then(|rest| rest.split_once("/8.4 MB in "));
    let (reached, _) = reached.unwrap_or_else(|| panic!("{said}"));
    let fate = format!("{reached} MB of incomplete files removed, complete ones kept");
    assert_eq!(removed, format!("{fate}; with -u the same command continues"));
    assert!(!memory.path().join("target").exists());
}

#[test]
fn the_line_after_an_interruption_has_the_figures_of_the_bar() {
    let memory = Filesystem::memory();
    make(memory.path());
    for command in ["cp -rT", "sync"] {
        let Some((controller, user)) = terminal() else { return };
        tcsetwinsize(&user, Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let line = format!("exec '{FERRY}' {command} --progress=always --bwlimit=2M source target");
        let mut copy = Command::new("sh");
        copy.args(["-c", &line]).current_dir(memory.path()).stderr(user.try_clone().unwrap());
        let mut copy = copy.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(2000));
        kill_process(Pid::from_child(&copy), Signal::INT).unwrap();
        assert_eq!(copy.wait().unwrap().signal(), Some(Signal::INT.as_raw()));
        fs::remove_dir_all(memory.path().join("target")).unwrap();
        let shown = shown_on(&controller);
        let lines = lines(text(&shown));
        let (bars, after): (Vec<&String>, Vec<&String>) =
            lines.iter().partition(|line| percentage(line).is_some());
        let after_all = after.iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ");
        let way_on = if command == "sync" { "; the same" } else { "; with -u the same" };
        assert!(after_all.contains(" kept"), "{after_all}");
        assert!(after_all.ends_with(&format!("{way_on} command continues")), "{after_all}");
        // `24 %  1.5/6.0 MB  2.0 MB/s  0:02 left  150/631 entries`
        let parts: Vec<&str> = bars.last().unwrap().split("  ").collect();
        let figures = format!("interrupted after {}, {}", parts[4], parts[1]);
        assert!(after.iter().any(|line| line.starts_with(&figures)), "{figures}: {lines:#?}");
    }
}

/// Starts a copy of which progress is printed, a line a second.
fn start(place: &Path, line: &str) -> Child {
    let mut command = Command::new(FERRY);
    command.args(line.split(' ')).arg("--progress=always").current_dir(place);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Entries and bytes of a line, with all of them.
#[derive(Debug)]
struct Shown {
    percent: f64,
    bytes: (f64, f64),
    entries: (f64, f64),
}

/// Returns the figures of `41 %  261/629 kB  63 MB/s  0:06 left  1,204/2,811 entries`; `None` for another line.
fn figures(line: &str) -> Option<Shown> {
    let parts: Vec<&str> = line.split("  ").collect();
    let pair = |part: &str| {
        let (done, all) = part.split_once('/')?;
        let number = |text: &str| {
            let (number, unit) = text.split_once(' ').unwrap_or((text, all.split_once(' ')?.1));
            let size = match unit {
                "kB" => 1e3,
                "MB" => 1e6,
                _ => 1.0,
            };
            Some(number.replace(',', "").parse::<f64>().ok()? * size)
        };
        Some((number(done)?, number(all)?))
    };
    let percent = parts.first()?.strip_suffix(" %")?.trim_start_matches('~').parse().ok()?;
    Some(Shown { percent, bytes: pair(parts.get(1)?)?, entries: pair(parts.get(4)?)? })
}

/// Makes trees of several shapes; returns the names of their roots.
fn make_shapes(place: &Path) -> [&'static str; 4] {
    let write = |path: &str, size: usize| {
        let path = place.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, vec![b'x'; size]).unwrap();
    };
    for file in 0..600 {
        write(&format!("wide/{}/{file}", file / 7), 10_000);
        write(&format!("flat/{file}"), 10_000);
    }
    for file in 0..300 {
        write(&format!("mixed/{}/{file}", file / 10), 2_000);
    }
    write("mixed/large", 6_000_000);
    let mut folder = "deep".to_owned();
    for level in 0..100 {
        folder += &format!("/{level}");
        write(&format!("{folder}/file"), 60_000);
    }
    ["wide", "flat", "mixed", "deep"]
}

#[test]
fn the_percentage_is_right_from_a_tenth_of_the_run_on() {
    let memory = Filesystem::memory();
    let shapes = make_shapes(memory.path());
    let runs = shapes.into_iter().flat_map(|shape| {
        ["cp -aT", "sync"].map(|command| {
            // Ten seconds.
            let line = format!("{command} --bwlimit=600K {shape} {shape}-{}", &command[..2]);
            (start(memory.path(), &line), line)
        })
    });
    for (run, line) in runs.collect::<Vec<_>>() {
        let output = run.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert!(output.status.success(), "{line}: {said}");
        let shown: Vec<Shown> = said.lines().filter_map(figures).collect();
        let printed =
            said.lines().filter(|line| line.contains(" left  ") || line.contains(" elapsed  ")).count();
        // On a busy machine the thread that counts may come a moment too late for the first line.
        assert!(shown.len() >= 6 && shown.len() + 1 >= printed, "{line}: {said}");
        let [(_, bytes), (_, entries)] = shown.last().map(|last| [last.bytes, last.entries]).unwrap();
        let work = |bytes: f64, entries: f64| entries * 65_536.0 + bytes;
        for Shown { percent, bytes: (done, _), entries: (count, _) } in &shown {
            let truth = 100.0 * work(*done, *count) / work(bytes, entries);
            assert!((percent - truth).abs() <= 0.2 * truth, "{line}: {percent} for {truth}: {said}");
        }
        assert!(shown.iter().all(|one| one.bytes.1 == bytes && one.entries.1 == entries), "{line}: {said}");
    }
}

/// Of 6 MB, 2 MB take part, or are to be moved: 4 MB are left out, or are in the target by then.
#[test]
fn all_bytes_are_those_that_move() {
    let memory = Filesystem::memory();
    let place = memory.path();
    for name in 0..60 {
        let (folder, size) = if name < 20 { ("source/some", 100_000) } else { ("source/rest", 100_001) };
        fs::create_dir_all(place.join(folder)).unwrap();
        fs::write(place.join(format!("{folder}/{name}")), vec![b'x'; size]).unwrap();
    }
    fs::write(place.join("list"), "some/\n").unwrap();
    let copied = |target: &str| {
        let copy = format!("cp -aT source {target}");
        assert!(Command::new(FERRY).args(copy.split(' ')).current_dir(place).status().unwrap().success());
        fs::remove_dir_all(place.join(target).join("some")).unwrap();
    };
    ["equal", "updated", "kept"].iter().for_each(|target| copied(target));
    // Files made in the last milliseconds before a run could be its own.
    std::thread::sleep(Duration::from_millis(50));
    let runs = [
        "sync --exclude=rest source excluded",
        "sync --max-size=100000 source smaller",
        "sync --files-from=list source listed",
        "sync source equal",
        "cp -auT source updated",
        "cp -anT source kept",
    ];
    let runs = runs.map(|line| (start(place, &format!("{line} --bwlimit=600K")), line));
    for (run, line) in runs {
        let output = run.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert!(output.status.success(), "{line}: {said}");
        let shown: Vec<Shown> = said.lines().filter_map(figures).collect();
        assert!(shown.len() >= 2, "{line}: {said}");
        for Shown { bytes: (_, all), entries: (done, entries), .. } in shown {
            assert!((1.95e6..2.05e6).contains(&all), "{line}: {said}");
            assert!(done <= entries, "{line}: {said}");
        }
    }
}

#[test]
fn a_part_of_a_large_file_that_is_kept_is_named() {
    let memory = Filesystem::memory();
    fs::create_dir(memory.path().join("source")).unwrap();
    fs::write(memory.path().join("source/large"), vec![b'x'; 200 << 20]).unwrap();
    let run = start(memory.path(), "sync --bwlimit=40M source target");
    std::thread::sleep(Duration::from_millis(3500));
    kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(Signal::TERM.as_raw()));
    let said = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, last) = said.split_once("interrupted after 1/1 entries, ").unwrap_or_else(|| panic!("{said}"));
    assert!(last.contains("/210 MB: created 1, replaced 0, set attributes of 0, deleted 0: 0 B; "), "{said}");
    assert!(last.contains(" MB of incomplete files kept, and all complete ones"), "{said}");
    assert!(last.ends_with("; the same command continues"), "{said}");
}

#[test]
fn the_line_after_a_full_filesystem_has_the_figures_of_progress() {
    if !is_root() {
        skip::<()>("mounting needs root");
        return;
    }
    let memory = Filesystem::memory();
    make(memory.path());
    fs::create_dir(memory.path().join("full")).unwrap();
    for (command, way_on) in [("cp -r", "with -uT the same"), ("sync", "the same")] {
        let script = format!(
            "mount -t tmpfs -o size=3m tmpfs full || exit 99; \
             exec \"$0\" {command} --progress=always --bwlimit=2M source full/target"
        );
        let mut run = Command::new("unshare");
        run.args(["--mount", "sh", "-c", &script, FERRY]).current_dir(memory.path());
        let output = run.output().unwrap();
        if output.status.code() == Some(99) {
            skip::<()>("nothing can be mounted here");
            return;
        }
        let said = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(1), "{said}");
        let cause = "stopped early, because the target's space or quota is used up, after ";
        let (_, last) = said.split_once(cause).unwrap_or_else(|| panic!("{said}"));
        assert!(
            (last.contains("/631 entries, ") || last.contains("/630 entries, ")) && last.contains("/6.0 MB"),
            "{said}"
        );
        assert!(last.contains(" failed; ") && last.contains(" kept; "), "{said}");
        let way_on = format!("; once there is space, {way_on} command continues");
        assert!(last.contains(&way_on), "{said}");
        assert_eq!(said.matches("stopped early").count(), 1, "{said}");
    }
}
