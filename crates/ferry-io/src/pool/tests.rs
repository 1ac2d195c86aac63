use std::time::Duration;

use super::work::*;
use super::*;
use crate::buffers::Blocks;
use crate::descriptor::{Descriptor, Fd};
use crate::entry::Entries;
use crate::preload::{Preload, Preloaded};
use crate::sys::Patience;

fn write(file: &Arc<Descriptor>) -> Op {
    Op::Write { file: Arc::clone(file), block: None, skip: 0, at: 0 }
}

fn request(index: u32, op: Op, owner: &Arc<Inbox>) -> Request {
    let (key, lane) = (Key { index, generation: 0 }, lane_of(&op));
    Request { key, op, rest: Vec::new(), owner: Arc::clone(owner), lane, missed: false, wait: None }
}

fn file() -> Arc<Descriptor> {
    Arc::new(Descriptor::Real(std::fs::File::open("/dev/null").unwrap().into()))
}

#[test]
fn one_files_writes_are_done_in_order_by_one_thread() {
    let (a, b, owner) = (file(), file(), Arc::new(Inbox::of_this_thread()));
    let mut state = State::default();
    for (index, file) in [&a, &a, &a, &b].into_iter().enumerate() {
        state.queue.push_back(request(u32::try_from(index).unwrap(), write(file), &owner));
    }
    assert_eq!(state.runnable(), 2, "one of each file");
    let first = state.take().unwrap();
    assert_eq!((first.key.index, state.runnable()), (0, 1));
    assert_eq!(state.take().unwrap().key.index, 3, "the other file's goes before");
    assert!(state.take().is_none());
    state.busy.retain(|&busy| Some(busy) != first.lane);
    assert_eq!(state.take().unwrap().key.index, 1);
}

#[test]
fn what_waits_without_end_is_given_up_between_two_whiles() {
    let pool = Pool::new(1, None, None);
    let owner = Arc::new(Inbox::of_this_thread());
    let mut waiter = request(7, write(&file()), &owner);
    waiter.lane = None;
    waiter.wait = Some(Box::default());
    pool.lock().queue.push_back(waiter);
    let (key, begun) = (Key { index: 7, generation: 0 }, pool.lock().take().unwrap());
    pool.go_on(begun, None);
    assert_eq!(pool.lock().queue.len(), 1, "it stands in line again");
    let begun = pool.lock().take().unwrap();
    assert!(pool.withdraw(key, &owner).is_none(), "a thread has it");
    pool.go_on(begun, None);
    let given_up = owner.collect();
    assert!(matches!(given_up[..], [(known, (_, Err(Errno::CANCELED)))] if known == key));
}

/// Writes of ten bytes each, one behind the other, with a gap before the sixth.
fn writes(file: &Arc<Descriptor>, owner: &Arc<Inbox>) -> State {
    let blocks = Blocks::map(16, 4096).unwrap();
    let mut state = State::default();
    for index in 0..12_u32 {
        let mut block = blocks.try_take().unwrap();
        block.as_mut_capacity()[..10].fill(b'a' + u8::try_from(index).unwrap());
        block.set_filled(10);
        let at = u64::from(index) * 10 + if index < 5 { 0 } else { 100 };
        let op = Op::Write { file: Arc::clone(file), block: Some(block), skip: 0, at };
        state.queue.push_back(request(index, op, owner));
    }
    state
}

#[test]
fn writes_that_follow_one_another_become_one_call() {
    let file = tempfile::tempfile().unwrap();
    let target = Arc::new(Descriptor::Real(file.try_clone().unwrap().into()));
    let owner = Arc::new(Inbox::of_this_thread());
    let mut state = writes(&target, &owner);
    for (first, joined) in [(0, 2), (2, 2), (4, 1), (5, 2), (7, 2), (9, 2), (11, 1)] {
        let request = state.take().unwrap();
        assert_eq!((request.key.index, request.rest.len() + 1), (first, joined));
        state.busy.clear();
        sys::take_calls();
        perform(request);
        assert_eq!(sys::take_calls(), 1);
    }
    let done = owner.collect();
    assert!(done.iter().all(|(_, (_, result))| matches!(result, Ok(Outcome::Count(10)))));
    assert_eq!(done.iter().map(|(key, _)| key.index).collect::<Vec<_>>(), (0..12).collect::<Vec<_>>());
    let mut found = Vec::new();
    std::io::Read::read_to_end(&mut &file, &mut found).unwrap();
    let expected = |index: u8| [b'a' + index; 10];
    assert_eq!(found[..50], (0..5).flat_map(expected).collect::<Vec<_>>());
    assert_eq!(found[150..], (5..12).flat_map(expected).collect::<Vec<_>>());
}

#[test]
fn what_one_call_leaves_over_has_its_own_answer() {
    let full =
        Arc::new(Descriptor::Real(std::fs::File::options().write(true).open("/dev/full").unwrap().into()));
    let owner = Arc::new(Inbox::of_this_thread());
    perform(writes(&full, &owner).take().unwrap());
    let answers = owner.collect();
    assert_eq!(answers.len(), 2);
    assert!(answers.iter().all(|(_, (_, result))| matches!(result, Err(Errno::NOSPC))));
    assert_eq!(share_out(25, vec![10; 4]).collect::<Vec<_>>(), [10, 10, 5, 0]);
}

/// Calls of which one panics.
struct Panicking {
    /// Index of the panicking call.
    at: usize,
    made: usize,
}

impl Calls for Panicking {
    const IS_RECORDED: bool = false;

    fn perform(&mut self, _: &mut Op, _: Patience) -> Result<Outcome, Errno> {
        self.made += 1;
        assert!(self.made != self.at + 1, "a call panics");
        Ok(Outcome::Count(1))
    }

    fn write_joined(&mut self, _: &[&Op]) -> Result<usize, Errno> {
        panic!("a joined call panics");
    }

    fn preload(&mut self, _: &Fd, _: &Entries, _: &Preload) -> (Vec<Preloaded>, Duration) {
        unreachable!("no folder is entered")
    }
}

/// The answers of a piece of work, and the text of its panic.
fn answers_despite(
    work: Work,
    owner: &Inbox,
    at: usize,
) -> (Vec<Result<Outcome, Errno>>, Option<&'static str>) {
    let (mut work, mut calls) = (work, Panicking { at, made: 0 });
    while work.step(&mut calls) {}
    work.deliver(Instant::now());
    let answers = owner.collect().into_iter().map(|(_, (_, result))| result).collect();
    (answers, owner.take_panic().and_then(|panic| panic.downcast_ref().copied()))
}

#[test]
fn a_batch_is_answered_whichever_of_its_files_panics() {
    for at in 0..3 {
        let owner = Arc::new(Inbox::of_this_thread());
        let load = |index| {
            let name = crate::name::Name::new(b"f").unwrap();
            let dir = file();
            let op =
                Op::Load { dir, name, xattrs: false, alone: false, block: None, opened: None, into: None };
            (Key { index, generation: 0 }, op)
        };
        let ((key, op), rest) = (load(0), vec![load(1), load(2)]);
        let request =
            Request { key, op, rest, owner: Arc::clone(&owner), lane: None, missed: true, wait: None };
        let (answers, panic) = answers_despite(Work::new(request, Instant::now()), &owner, at);
        assert_eq!(panic, Some("a call panics"));
        assert_eq!(answers.len(), 3);
        for (place, answer) in answers.iter().enumerate() {
            let is_given_up = matches!(answer, Err(Errno::CANCELED));
            assert!(is_given_up == (place == at) && (is_given_up || matches!(answer, Ok(Outcome::Count(1)))));
        }
    }
}

#[test]
fn writes_whose_joined_call_panics_are_answered_one_by_one() {
    let owner = Arc::new(Inbox::of_this_thread());
    let request = writes(&file(), &owner).take().unwrap();
    assert_eq!(request.rest.len(), 1);
    let (answers, panic) = answers_despite(Work::new(request, Instant::now()), &owner, usize::MAX - 1);
    assert_eq!(panic, Some("a joined call panics"));
    assert!(answers.len() == 2 && answers.iter().all(|answer| matches!(answer, Ok(Outcome::Count(1)))));
}

#[test]
fn the_first_panic_of_several_is_kept() {
    let owner = Arc::new(Inbox::of_this_thread());
    let request = writes(&file(), &owner).take().unwrap();
    let (answers, panic) = answers_despite(Work::new(request, Instant::now()), &owner, 1);
    assert_eq!(panic, Some("a joined call panics"));
    assert_eq!(answers.iter().filter(|answer| matches!(answer, Err(Errno::CANCELED))).count(), 1);
}

#[cfg(feature = "sim")]
#[test]
fn a_wait_that_panics_is_answered() {
    let world = crate::sim::World::default();
    let (root, _) = crate::run(&world.options(0), async |io| io.open_dir("/".as_ref()).unwrap()).unwrap();
    let (pool, owner) = (Pool::new(1, None, None), Arc::new(Inbox::of_this_thread()));
    let waits = Op::Open {
        dir: root.as_file().fd(),
        name: crate::name::Name::new(b"fifo").unwrap(),
        flags: rustix::fs::OFlags::RDONLY,
        mode: rustix::fs::Mode::empty(),
        follow: false,
    };
    assert!(sys::may_wait_for_ever(&waits));
    pool.push(Key { index: 3, generation: 0 }, waits, &owner, Reason::Unbounded);
    pool.close();
    let answers = owner.collect();
    assert!(matches!(&answers[..], [(key, (_, Err(Errno::CANCELED)))] if key.index == 3));
    assert!(owner.take_panic().is_some());
    assert!(pool.lock().waiters.is_empty());
}

#[test]
fn a_folder_that_is_entered_with_a_plan_has_its_files_on_the_shelf() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("folder")).unwrap();
    for text in ["one", "two"] {
        std::fs::write(place.path().join("folder").join(text), text).unwrap();
    }
    let opened = std::fs::File::open(place.path()).unwrap();
    let device = sys::device_of(std::os::fd::AsFd::as_fd(&opened));
    let (one, two) = (crate::name::Name::new(b"one").unwrap(), crate::name::Name::new(b"two").unwrap());
    for (device, expected) in [(device, true), (device + 1, false)] {
        let dir = Arc::new(Descriptor::Real(opened.try_clone().unwrap().into()).on(device));
        let preload = Preload { xattrs: true, alone: true, largest: 1000, at_once: 4 };
        let name = crate::name::Name::new(b"folder").unwrap();
        let owner = Arc::new(Inbox::of_this_thread());
        let request = request(0, Op::Enter { dir, name, preload: Some(preload) }, &owner);
        perform(request);
        let mut answers = owner.collect();
        let Some((_, (_, Ok(Outcome::Entered(entered))))) = answers.pop() else { panic!("it is entered") };
        let shelf = entered.0.preloaded();
        assert_eq!((shelf.has(&one), shelf.has(&two)), (expected, expected), "on its device: {expected}");
        if let Some(file) = shelf.take(&two) {
            assert_eq!((&file.bytes[..], file.stat.size), (&b"two"[..], 3));
            assert!(file.xattrs.is_some() && !shelf.has(&two) && shelf.take(&two).is_none());
        }
    }
}

/// Calls of which a preload takes longer than a blocking call that is slow.
struct Preloading;

impl Calls for Preloading {
    const IS_RECORDED: bool = false;

    fn perform(&mut self, op: &mut Op, _: Patience) -> Result<Outcome, Errno> {
        let Op::Enter { dir, .. } = op else { return Err(Errno::INVAL) };
        let found = crate::entry::Stat::from_kernel(&rustix::fs::fstat(dir.fd())?);
        let stat = crate::entry::Stat { device: dir.device(), ..found };
        Ok(Outcome::Entered(Box::new((Arc::clone(dir), stat, Entries::default()))))
    }

    fn write_joined(&mut self, _: &[&Op]) -> Result<usize, Errno> {
        unreachable!("nothing is written")
    }

    fn preload(&mut self, _: &Fd, _: &Entries, _: &Preload) -> (Vec<Preloaded>, Duration) {
        (Vec::new(), Duration::from_secs(1))
    }
}

#[test]
fn time_for_files_that_nobody_waits_for_does_not_make_a_refusal_worth_it() {
    let owner = Arc::new(Inbox::of_this_thread());
    for _ in 0..100 {
        let preload = Some(Preload { xattrs: false, alone: false, largest: 1, at_once: 4 });
        let name = crate::name::Name::new(b"folder").unwrap();
        let mut request = request(0, Op::Enter { dir: file(), name, preload }, &owner);
        request.missed = true;
        let begun = Instant::now();
        let mut work = Work::new(request, begun);
        while work.step(&mut Preloading) {}
        work.deliver(begun + Duration::from_secs(1));
    }
    assert!(!owner.fruitless.is_asking_worth_it(), "a hundred refusals were followed by fast calls");
}
