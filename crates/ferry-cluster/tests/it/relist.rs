//! Jobs that are interrupted while a folder is being listed, and that list it again.

use std::collections::BTreeSet;

use ferry_cluster::{
    At, Coordinator, Grant, Line, NewFiles, NewLarge, Outcome, Report, Settings, Text, ToCoordinator, ToRank,
    Totals, Version, Work,
};
use ferry_tree::fill::SplitMix64;

use crate::job::{Ended, run};
use crate::model::{Copied, Model};

/// Size of a range.
const RANGE: u64 = 100;
/// A version of the file `x`, and a later one.
const OLD: Version = Version { inode: 7, size: 250, seconds: 1, nanoseconds: 0 };
const NEW: Version = Version { inode: 7, size: 350, seconds: 2, nanoseconds: 0 };

/// A job of one rank, whose reports are written by hand.
struct Job {
    coordinator: Coordinator,
    lines: Vec<Line>,
    is_asking: bool,
}

impl Job {
    /// Begins a job, or goes on with one.
    fn begin(lines: &[Line]) -> Self {
        let mut coordinator = Coordinator::new(Settings::new(1).in_ranges(RANGE), 1);
        let mut lines = lines.to_vec();
        if !lines.is_empty() {
            lines.push(Line::Resumed);
        }
        lines.iter().for_each(|line| coordinator.replay(line).unwrap());
        coordinator.begin();
        Self { coordinator, lines, is_asking: false }
    }

    /// Returns the next lease, if there is one.
    fn next(&mut self) -> Option<Grant> {
        if !std::mem::replace(&mut self.is_asking, true) {
            self.coordinator.take(0, ToCoordinator::Want).unwrap();
        }
        let grant = self.coordinator.sends().into_iter().find_map(|(_, message)| match message {
            ToRank::Grant(grant) => Some(grant),
            ToRank::Taken(_) | ToRank::Split(_) | ToRank::Stop(_) | ToRank::End => None,
        });
        self.is_asking = grant.is_none();
        grant
    }

    /// Returns the next lease, which has one piece of work.
    fn expect(&mut self, work: &str) -> u64 {
        let Grant { lease, works } = self.next().unwrap_or_else(|| panic!("nothing instead of {work}"));
        let works: Vec<_> = works.iter().map(said).collect();
        assert_eq!(works, [work]);
        lease
    }

    fn answer(
        &mut self,
        lease: u64,
        (ended, outcome): (bool, Outcome),
        large: &[NewLarge],
        given_back: &[Text],
    ) {
        let files =
            (!given_back.is_empty()).then(|| NewFiles { at: At::Work(0), names: given_back.to_vec() });
        let report = Report {
            lease,
            ended,
            outcomes: vec![outcome],
            folders: Vec::new(),
            made: Vec::new(),
            files: files.into_iter().collect(),
            large: large.to_vec(),
            linked: Vec::new(),
            totals: Totals::default(),
            failures: Vec::new(),
        };
        let record = self.coordinator.take(0, ToCoordinator::Report(Box::new(report))).unwrap();
        self.lines.extend(record.map(|record| Line::Record(Box::new(record))));
    }

    /// Performs work that has to be granted next.
    fn perform(&mut self, work: &str) {
        let lease = self.expect(work);
        self.answer(lease, (true, Outcome::Done), &[], &[]);
    }

    fn expect_complete(&mut self) {
        assert_eq!(self.next(), None);
        assert!(self.coordinator.is_complete());
    }
}

fn said(work: &Work) -> String {
    match work {
        Work::Folder { again, .. } => if *again { "folder again" } else { "folder" }.to_owned(),
        Work::Files { .. } => "files".to_owned(),
        Work::Range { file, start, size, makes_part } => {
            let part = if *makes_part { ", part" } else { "" };
            format!("{start} + {size} of {}{part}", file.version.size)
        }
        Work::Close { file } => format!("close {}", file.version.size),
        Work::Finish { .. } => "finish".to_owned(),
        Work::Discard { file } => format!("discard {}", file.version.size),
        Work::Owner { .. } | Work::Link { .. } => panic!("{work:?}"),
    }
}

fn found(version: Version, lacks_part: bool) -> [NewLarge; 1] {
    [NewLarge { at: At::Work(0), name: "x".into(), version, lacks_part }]
}

/// Returns the journal of a job whose listing goes on, and that has copied all ranges of a file.
fn interrupted() -> Vec<Line> {
    let mut job = Job::begin(&[]);
    let lease = job.expect("folder");
    job.answer(lease, (false, Outcome::Listing), &found(OLD, false), &[]);
    for range in ["0 + 100 of 250", "100 + 100 of 250", "200 + 50 of 250"] {
        job.perform(range);
    }
    job.expect("close 250");
    job.lines
}

/// Goes on with a job, until its folder was listed again with this result.
fn listed_again(lines: &[Line], outcome: Outcome, large: &[NewLarge], given_back: &[Text]) -> Job {
    let mut job = Job::begin(lines);
    let lease = job.expect("folder again");
    assert_eq!(job.next(), None, "the file was not found again");
    job.answer(lease, (true, outcome), large, given_back);
    job
}

fn expect_all_copied(job: &mut Job) {
    for work in ["0 + 100 of 250, part", "100 + 100 of 250", "200 + 50 of 250", "close 250", "finish"] {
        job.perform(work);
    }
    job.expect_complete();
}

#[test]
fn all_ranges_of_a_file_without_its_part_are_granted_again() {
    expect_all_copied(&mut listed_again(&interrupted(), Outcome::Listed, &found(OLD, true), &[]));
}

#[test]
fn nothing_else_of_a_file_is_granted_until_its_part_is_made() {
    let mut job = listed_again(&interrupted(), Outcome::Listed, &found(OLD, true), &[]);
    let lease = job.expect("0 + 100 of 250, part");
    assert_eq!(job.next(), None);
    let mut resumed = Job::begin(&job.lines);
    expect_all_copied(&mut resumed);
    job.answer(lease, (true, Outcome::Untouched), &[], &[]);
    expect_all_copied(&mut job);
}

#[test]
fn ranges_of_a_file_that_has_its_part_stay_done() {
    let mut job = listed_again(&interrupted(), Outcome::Listed, &found(OLD, false), &[]);
    job.perform("close 250");
    job.perform("finish");
    job.expect_complete();
}

#[test]
fn a_file_of_another_version_is_copied_as_a_whole_and_the_part_of_the_old_one_is_removed() {
    for (lacks_part, first) in [(true, "0 + 100 of 350, part"), (false, "0 + 100 of 350")] {
        let works = [first, "100 + 100 of 350", "200 + 100 of 350", "300 + 50 of 350", "close 350", "finish"];
        let mut job = listed_again(&interrupted(), Outcome::Listed, &found(NEW, lacks_part), &[]);
        let mut resumed = Job::begin(&job.lines);
        for job in [&mut job, &mut resumed] {
            job.perform("discard 250");
            works.iter().for_each(|work| job.perform(work));
            job.expect_complete();
        }
    }
}

#[test]
fn a_file_that_has_its_old_version_again_is_copied_as_a_whole() {
    let mut job = Job::begin(&interrupted());
    let lease = job.expect("folder again");
    job.answer(lease, (false, Outcome::Listing), &found(NEW, true), &[]);
    let mut job = listed_again(&job.lines, Outcome::Listed, &found(OLD, true), &[]);
    job.perform("discard 350");
    expect_all_copied(&mut job);
}

#[test]
fn a_file_that_is_not_found_again_is_ended_after_the_listing() {
    for outcome in [Outcome::Listed, Outcome::Done] {
        let mut job = listed_again(&interrupted(), outcome, &[], &[]);
        job.perform("close 250");
        job.perform("finish");
        job.expect_complete();
    }
}

#[test]
fn a_file_that_may_be_in_a_batch_waits_for_the_batch() {
    for is_resumed in [false, true] {
        let mut job = listed_again(&interrupted(), Outcome::Listed, &[], &["x".into()]);
        if is_resumed {
            job = Job::begin(&job.lines);
        }
        let lease = job.expect("files");
        assert_eq!(job.next(), None);
        job.answer(lease, (true, Outcome::Done), &found(OLD, true), &[]);
        expect_all_copied(&mut job);
    }
}

/// Kills jobs, and removes parts before they go on. The trees in memory check that no file is complete without its bytes.
#[test]
fn a_file_whose_part_was_removed_fails_or_is_copied_from_its_beginning() {
    let (mut whole, mut failed) = (0, 0);
    for seed in 0..200 {
        let (model, mut copied, mut journal) = (Model::wide(seed, 2 * RANGE), Copied::default(), Vec::new());
        let mut random = SplitMix64::new(seed);
        let settings = Settings { lease_entries: 1 + random.below(30), ..Settings::new(4).in_ranges(RANGE) };
        let mut lost = BTreeSet::new();
        for kills in 0.. {
            let parameters = (1 + u32::try_from(random.below(6)).unwrap(), random.next_u64(), 0);
            let after = (kills < 6).then(|| random.below(400));
            match run(&model, &mut copied, &mut journal, settings, parameters, (kills > 0, after)) {
                Ended::Complete(_) => break,
                Ended::Killed(_) => {}
            }
            for path in copied.parts.clone() {
                if random.percent(50) {
                    copied.lose(&path);
                    lost.insert(path);
                }
            }
        }
        copied.check(&model);
        failed += copied.failed.len();
        whole += lost.difference(&copied.failed).count();
    }
    assert!(failed > 0 && whole > 200, "{failed} files failed, and {whole} are whole");
    println!("{failed} files failed, and {whole} are whole");
}
