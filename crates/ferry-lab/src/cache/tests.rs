use super::sample::Sample;
use super::{Proof, State, prepare};
use crate::needs::may_drop_caches;
use ferry_tree::workload::{Workload, make};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The kernel's caches are one for all: who makes them cold takes what another test has just made warm.
fn caches() -> MutexGuard<'static, ()> {
    static CACHES: Mutex<()> = Mutex::new(());
    CACHES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tree() -> (tempfile::TempDir, std::path::PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tree");
    make(&Workload::plain(3, 2, 4, 20_000, 1), &path, 2).unwrap();
    (place, path)
}

#[test]
fn a_tree_that_was_read_is_warm() {
    let _caches = caches();
    let (_place, path) = tree();
    let sample = Sample::of(&path, 1).unwrap();
    let proof = prepare(State::Warm, &sample, &[]).unwrap().unwrap();
    assert!(proof.holds, "{proof:?}");
    assert_eq!((proof.names, proof.names_in_memory), (16, 16), "{proof:?}");
    assert_eq!(proof.data_bytes, 16 * 20_480);
}

#[test]
fn several_files_are_read_and_proved_together() {
    let _caches = caches();
    let place = tempfile::tempdir().unwrap();
    let files = ["one", "other"].map(|name| place.path().join(name));
    files.iter().for_each(|file| std::fs::write(file, [1; 5000]).unwrap());
    let sample = Sample::of_all(&files, 1).unwrap();
    let proof = prepare(State::Warm, &sample, &[]).unwrap().unwrap();
    assert!(proof.holds && proof.names == 2, "{proof:?}");
    assert_eq!(proof.data_bytes, 2 * 8192);
}

#[test]
fn without_files_nothing_is_proved() {
    let sample = Sample::of_all(&[], 1).unwrap();
    assert!(sample.is_none() && Sample::none().is_none());
    assert_eq!(prepare(State::Warm, &sample, &[]).unwrap(), None);
}

#[test]
fn dropped_caches_are_cold() {
    if !may_drop_caches() {
        eprintln!("SKIP: caches can't be dropped here");
        return;
    }
    let _caches = caches();
    let (_place, path) = tree();
    if crate::machine::Machine::look(&path).place.in_memory {
        eprintln!("SKIP: the temporary folder is in memory");
        return;
    }
    let sample = Sample::of(&path, 1).unwrap();
    let proof = prepare(State::Cold, &sample, &["/bin/true".into()]).unwrap().unwrap();
    assert!(proof.holds, "{proof:?}");
    assert_eq!((proof.names_in_memory, proof.data_in_memory_bytes), (0, 0), "{proof:?}");
    let warm = prepare(State::Warm, &sample, &[]).unwrap().unwrap();
    assert!(warm.holds, "{warm:?}");
}

#[test]
fn programs_are_in_memory_though_caches_were_dropped() {
    if !may_drop_caches() {
        eprintln!("SKIP: caches can't be dropped here");
        return;
    }
    let _caches = caches();
    let (place, path) = tree();
    // Much of it is never needed to say a version.
    let program = place.path().join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let found = || {
        prepare(State::Cold, &Sample::of(&path, 1).unwrap(), std::slice::from_ref(&program)).unwrap();
        Sample::of(&program, 1).unwrap().ask_for_data().with_names(&Sample::none().ask_for_names())
    };
    // Other programs drop caches, too.
    let proofs: Vec<Proof> = (0..5).map(|_| found()).collect();
    let is_whole = |proof: &Proof| proof.data_in_memory_bytes == proof.data_bytes;
    assert!(proofs.iter().any(is_whole) && proofs[0].data_bytes > 1 << 20, "{proofs:?}");
}

#[test]
fn what_is_in_memory_is_not_called_cold() {
    let found = |names_in_memory, data_in_memory_bytes| Proof {
        holds: false,
        names_by: String::new(),
        names: 16,
        names_in_memory,
        data_by: String::new(),
        data_files: 16,
        data_bytes: 1_000_000,
        data_in_memory_bytes,
    };
    assert!(found(0, 4096).judge(State::Cold).holds);
    assert!(!found(1, 0).judge(State::Cold).holds);
    assert!(!found(0, 50_000).judge(State::Cold).holds);
    assert!(found(16, 1_000_000).judge(State::Warm).holds);
    assert!(!found(15, 1_000_000).judge(State::Warm).holds);
}

#[test]
fn what_could_not_be_asked_is_not_proved() {
    let proof = |names, data_files, data_bytes| Proof {
        holds: false,
        names_by: String::new(),
        names,
        names_in_memory: 0,
        data_by: String::new(),
        data_files,
        data_bytes,
        data_in_memory_bytes: 0,
    };
    for (names, files) in [(0, 0), (16, 0), (0, 16)] {
        for state in [State::Cold, State::Warm] {
            let bytes = if files == 0 { 0 } else { 4096 };
            assert!(!proof(names, files, bytes).judge(state).holds, "{names} names, data of {files} files");
        }
    }
    // Files without a byte were asked all the same.
    assert!(proof(16, 16, 0).judge(State::Cold).holds);
}

#[test]
fn files_that_cannot_be_opened_are_told() {
    let (_place, path) = tree();
    let sample = Sample::of(&path, 1).unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    let proof = sample.ask_for_data().with_names(&sample.ask_for_names()).judge(State::Cold);
    assert!(!proof.holds && !proof.was_asked(), "{proof:?}");
    assert!(proof.data_by.ends_with("No such file or directory"), "{proof:?}");
}

#[test]
fn a_sample_stands_for_the_whole_tree() {
    let (_place, path) = tree();
    let (one, other) = (Sample::of(&path, 1).unwrap(), Sample::of(&path, 2).unwrap());
    assert_ne!(format!("{one:?}"), format!("{other:?}"));
}
