//! Copies beside hostile programs on real filesystems. Each target name must hold a version of its source or
//! be reported, and no other program's data may be lost.
//!
//! One thread replaces, changes, links, renames and removes names of the source. Another renames complete
//! files of its own over names of the target, removes and exchanges them, and links them to sources. Every
//! file has unique bytes, so a copy's origin is known. `FERRY_CHAOS_SECONDS` sets the time per filesystem.
//! `FERRY_CHAOS_SEED` repeats the round of one seed; the threads' timing still varies.

mod bytes;
mod judge;
mod source;
mod target;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ferry_tree::fill::{SplitMix64, derive};

use self::judge::{Reported, Rules, Verdict, judge};
use self::source::{Shape, Slot, Source};
use self::target::{Habits, Target};
use crate::manifest::listed;
use crate::random::filesystem::{Filesystem, within};
use crate::scene::{FERRY, scaled, skip, text};

const SECONDS: u64 = 4;
const PATIENCE: Duration = Duration::from_secs(60);
const OPTIONS: [&str; 12] = [
    "-r",
    "-a",
    "-r --atomic",
    "-a --atomic",
    "-rf",
    "-af",
    "-r -u",
    "-a -u",
    "-a --atomic -u",
    "-r --remove-destination",
    "-a --sparse=always",
    "-a --fsync",
];
const SECRET: &str = "what lies outside";

#[derive(Debug)]
struct Round {
    seed: u64,
    words: String,
    rules: Rules,
    shape: Shape,
    /// Limit of the copy's descriptors, if it is low.
    descriptors: Option<u32>,
    is_filled: bool,
    habits: Habits,
    is_source_quiet: bool,
    is_target_quiet: bool,
    /// Set if a manifest is written. Two names of one existing target would make a line wrong.
    lists: bool,
    /// Longest pause between a hostile thread's actions, in microseconds.
    pause_us: u64,
}

impl Round {
    fn of(seed: u64, parts_links: bool) -> Self {
        let mut numbers = SplitMix64::new(derive(seed, 1));
        let options = OPTIONS[numbers.index(OPTIONS.len())];
        let backend = ["uring", "posix"][numbers.index(2)];
        let workers = ["", "--workers=1", "--block-size=16K", "--route=pool"][numbers.index(4)];
        let descriptors = numbers.percent(25).then(|| 24 + u32::try_from(numbers.below(30)).unwrap());
        let (is_source_quiet, is_target_quiet) =
            [(false, true), (true, false), (false, false)][numbers.index(3)];
        let archive = options.starts_with("-a");
        // Writing to one name also changes its other links.
        let tears = !archive && !is_source_quiet && numbers.percent(30);
        let habits = Habits { tears, links_sources: is_source_quiet };
        let crowd = if numbers.percent(10) { 2_500 } else { 0 };
        let shape = Shape { folders: 4 + numbers.index(9), names: 6 + numbers.index(12), crowd };
        let update = options.contains("-u");
        let removes =
            !options.contains("--atomic") && ["-a", "f", "--remove"].iter().any(|has| options.contains(has));
        let is_filled = numbers.percent(60);
        let pause_us = [5, 40, 200][numbers.index(3)];
        let lists = !is_filled && numbers.percent(60);
        let manifest = if lists { "--manifest=m" } else { "" };
        Self {
            seed,
            words: format!("{options} --backend={backend} {workers} {manifest}"),
            rules: Rules { archive, update, removes, parts_links },
            shape,
            descriptors,
            is_filled,
            habits,
            is_source_quiet,
            is_target_quiet,
            lists,
            pause_us,
        }
    }

    /// Runs the round in `place`; `dress` returns the directory to work in, given the source's.
    fn run(&self, place: &Path, dress: &dyn Fn(&Path) -> PathBuf) -> (Verdict, Output) {
        let mut numbers = SplitMix64::new(derive(self.seed, 2));
        let hot: Vec<Slot> =
            self.shape.slots().filter(|slot| slot.1 < self.shape.names && numbers.percent(60)).collect();
        fs::create_dir(place.join("w")).unwrap();
        let mut source = Source::new(place.join("s"), place.join("w"), self.shape, hot.clone());
        source.fill(&mut numbers);
        let place = dress(place);
        (source.root, source.work) = (place.join("s"), place.join("w"));
        fs::write(place.join("secret"), SECRET).unwrap();
        let mut target = Target::new(&place, self.shape, hot, self.habits);
        if self.is_filled {
            target.fill(&mut numbers);
        }
        let ended = AtomicBool::new(false);
        let output = std::thread::scope(|scope| {
            if !self.is_source_quiet {
                scope.spawn(|| self.disturb(&ended, 3, |numbers| source.step(numbers)));
            }
            if !self.is_target_quiet {
                scope.spawn(|| self.disturb(&ended, 4, |numbers| target.step(numbers)));
            }
            let output = self.copy(&place);
            ended.store(true, Ordering::Relaxed);
            output
        });
        let reported = Reported::read(&place.join("errors"));
        let lines = self.lists.then(|| listed(&fs::read(place.join("m")).unwrap_or_default()));
        let mut verdict = judge(&source, &target, (&reported, lines.as_ref()), self.rules);
        let code = i32::from(reported.count() > 0);
        if output.status.code() != Some(code) {
            let how = format!("{}, {} failures are recorded", output.status, reported.count());
            verdict.wrong.push(format!("it ended with {how}"));
        }
        if fs::read_to_string(place.join("secret")).ok().as_deref() != Some(SECRET) {
            verdict.wrong.push("what lies outside was changed".to_owned());
        }
        (verdict, output)
    }

    fn disturb(&self, ended: &AtomicBool, index: u64, mut step: impl FnMut(&mut SplitMix64)) {
        let mut numbers = SplitMix64::new(derive(self.seed, index));
        while !ended.load(Ordering::Relaxed) {
            step(&mut numbers);
            std::thread::sleep(Duration::from_micros(numbers.below(self.pause_us)));
        }
    }

    fn copy(&self, place: &Path) -> Output {
        let limit = self.descriptors.map_or(String::new(), |count| format!("ulimit -n {count}; "));
        let line = format!("{limit}exec {FERRY} cp --errors=errors {} -T s t 2>said", self.words);
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(place).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let status = end_of(&mut child, self);
        Output { status, stdout: Vec::new(), stderr: fs::read(place.join("said")).unwrap() }
    }
}

fn end_of(child: &mut Child, round: &Round) -> std::process::ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it does not end: {round:?}");
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Runs rounds on a filesystem until the time is up.
fn rounds(filesystem: &Filesystem, parts_links: bool, dress: &dyn Fn(&Path) -> PathBuf) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seconds = number("FERRY_CHAOS_SECONDS").unwrap_or(scaled(SECONDS));
    let only = number("FERRY_CHAOS_SEED");
    let first = only.unwrap_or_else(|| u64::from(std::process::id()) << 20);
    let begun = Instant::now();
    let (mut done, mut copied, mut touched, mut hashed, mut wrong) = (0, 0, 0, 0, Vec::new());
    while begun.elapsed() < Duration::from_secs(seconds) {
        let seed = if only.is_some() { first } else { first + done };
        let round = Round::of(seed, parts_links);
        let place = filesystem.path().join(done.to_string());
        fs::create_dir(&place).unwrap();
        let (verdict, output) = round.run(&place, dress);
        copied += verdict.copied;
        touched += verdict.touched;
        hashed += verdict.hashed;
        done += 1;
        if !verdict.wrong.is_empty() {
            let said: String = text(&output.stderr).lines().take(10).collect::<Vec<_>>().join("\n  ");
            wrong.push(format!("{round:?}\n{}\n  {said}", verdict.wrong.join("\n")));
        }
        if place.join("merged").exists() {
            assert!(Command::new("umount").arg(place.join("merged")).status().unwrap().success());
        }
        ferry_tree::remove::remove(&place).unwrap();
        if wrong.len() >= 20 {
            break;
        }
    }
    println!(
        "SEEDS: {done} rounds from seed {first}: {copied} names copied, {touched} of them touched meanwhile, {hashed} hashes \
         right"
    );
    assert!(wrong.is_empty(), "{} of {done} rounds are wrong:\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(touched > 0, "nothing was touched");
    assert!(hashed > 0 || only.is_some() || done < 20, "no manifest had a line");
}

fn plain(place: &Path) -> PathBuf {
    place.to_owned()
}

#[test]
fn copies_amid_chaos_are_true_on_ext4() {
    within("chaos::copies_amid_chaos_are_true_on_ext4", "ext4", |ext4| rounds(ext4, false, &plain));
}

#[test]
fn copies_amid_chaos_are_true_on_xfs() {
    within("chaos::copies_amid_chaos_are_true_on_xfs", "xfs", |xfs| rounds(xfs, false, &plain));
}

#[test]
fn copies_amid_chaos_are_true_on_btrfs() {
    within("chaos::copies_amid_chaos_are_true_on_btrfs", "btrfs", |btrfs| rounds(btrfs, false, &plain));
}

#[test]
fn copies_amid_chaos_are_true_in_memory() {
    within("chaos::copies_amid_chaos_are_true_in_memory", "tmpfs", |memory| rounds(memory, false, &plain));
}

/// On an overlay, the source starts in the lower layer.
#[test]
fn copies_amid_chaos_are_true_on_overlayfs() {
    let overlay = |place: &Path| {
        for folder in ["lower", "upper", "work", "merged"] {
            fs::create_dir(place.join(folder)).unwrap();
        }
        for folder in ["s", "w"] {
            fs::rename(place.join(folder), place.join("lower").join(folder)).unwrap();
        }
        let options = "lowerdir=lower,upperdir=upper,workdir=work,index=on";
        let mut command = Command::new("mount");
        command.args(["-t", "overlay", "-o", options, "overlay", "merged"]).current_dir(place);
        assert!(command.status().unwrap().success(), "no overlayfs");
        place.join("merged")
    };
    let is_known = fs::read_to_string("/proc/filesystems").is_ok_and(|known| known.contains("\toverlay"));
    if !is_known && !Path::new("/sys/module/overlay").exists() {
        skip::<()>("no overlayfs");
        return;
    }
    within("chaos::copies_amid_chaos_are_true_on_overlayfs", "tmpfs", |memory| {
        rounds(memory, true, &overlay)
    });
}
