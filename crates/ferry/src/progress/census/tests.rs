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

fn counted(plan: &Plan, most: usize) -> Option<(u64, Option<u64>)> {
    let state = State::default();
    state.count(plan, most);
    state.all(plan.sizes).map(|all| (all.entries, all.bytes))
}

#[test]
fn entries_and_bytes_are_those_of_the_copy() {
    let place = tree();
    let root = place.path().join("tree");
    let plan = Plan { roots: vec![root.clone()], sizes: true, links: true, ..Plan::default() };
    assert_eq!(counted(&plan, MOST), Some((9, Some(3210))));
    assert_eq!(counted(&Plan { links: false, ..plan.clone() }, MOST), Some((9, Some(3220))));
    assert_eq!(counted(&Plan { sizes: false, ..plan.clone() }, MOST), Some((9, None)));
    let roots = vec![root.join("link"), root.join("one"), root.join("missing")];
    assert_eq!(counted(&Plan { roots: roots.clone(), ..plan.clone() }, MOST), Some((2, Some(10))));
    assert_eq!(counted(&Plan { roots, follows: true, links: false, ..plan }, MOST), Some((2, Some(20))));
}

#[test]
fn too_many_folders_at_once_are_not_counted() {
    let place = tempfile::tempdir().unwrap();
    for number in 0..9 {
        fs::create_dir(place.path().join(number.to_string())).unwrap();
    }
    let plan = Plan { roots: vec![place.path().to_owned()], ..Plan::default() };
    assert_eq!(counted(&plan, 8), None);
    assert_eq!(counted(&plan, 9), Some((10, None)));
}

#[test]
fn a_census_that_is_dropped_ends() {
    let place = tree();
    let plan = Plan { roots: vec![place.path().to_owned()], ..Plan::default() };
    let state = State { stops: AtomicBool::new(true), ..State::default() };
    state.count(&plan, MOST);
    assert_eq!(state.all(false), None);
}

#[test]
fn a_total_is_known_after_a_moment() {
    let place = tree();
    let plan = Plan { roots: vec![place.path().join("tree")], ..Plan::default() };
    let census = Census::new(plan);
    let begun = std::time::Instant::now();
    let all = loop {
        match census.all() {
            Some(all) => break all,
            None => assert!(begun.elapsed().as_secs() < 60, "it is not counted"),
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    assert_eq!(all, All { entries: 9, bytes: None });
}
