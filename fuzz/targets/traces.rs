//! Recordings: refused in a line, or read, checked and summed up without end or panic, whatever their bytes are.
#![no_main]

use ferry_trace::check::{check, counts};
use ferry_trace::{Summary, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let trace = match read::read(bytes) {
        Err(why) => {
            let why = why.to_string();
            assert!(!why.is_empty() && !why.contains('\n'), "{why:?}");
            return;
        }
        Ok(trace) => trace,
    };
    assert!(check(&trace).len() <= 100);
    let total: u64 = counts(&trace).into_iter().filter(|(name, _)| name == "operations").map(|(_, n)| n).sum();
    assert_eq!(total, trace.operations.len() as u64);
    drop(Summary::of(&trace, 60));
});
