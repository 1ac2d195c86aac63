use super::*;
use crate::op::Descriptor;

fn write(file: &Arc<Descriptor>) -> Op {
    Op::Write { file: Arc::clone(file), block: None, skip: 0, at: 0, write_back: false }
}

fn request(index: u32, op: Op, owner: &Arc<Inbox>) -> Request {
    let (key, lane) = (Key { index, generation: 0 }, lane_of(&op));
    Request { key, op, owner: Arc::clone(owner), lane, missed: false, wait: None }
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
    let pool = Pool::new(1);
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
