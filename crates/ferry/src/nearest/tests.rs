use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::nearest;

const COMMANDS: [&str; 9] = ["cp", "sync", "verify", "plan", "lab", "trace", "tune", "completions", "man"];

#[test]
fn a_misspelt_word_means_the_nearest_one() {
    let table = [
        ("cpp", Some("cp")),
        ("c", Some("cp")),
        ("snyc", Some("sync")),
        ("sycn", Some("sync")),
        ("verfy", Some("verify")),
        ("verifiy", Some("verify")),
        ("lba", Some("lab")),
        ("tun", Some("tune")),
        ("completion", Some("completions")),
        // Beginnings are meant too, if no word is near.
        ("ver", Some("verify")),
        ("comp", Some("completions")),
        ("zork", None),
        ("copy", None),
        ("", None),
        ("x", None),
    ];
    for (word, expected) in table {
        assert_eq!(nearest(OsStr::new(word), &COMMANDS), expected, "{word}");
    }
}

#[test]
fn the_nearest_of_several_words_is_found() {
    let options = ["delete", "delete-excluded", "exclude", "exclude-from", "include", ""];
    let table = [
        ("delet-excluded", Some("delete-excluded")),
        ("exclud", Some("exclude")),
        ("xclude-form", Some("exclude-from")),
        ("inclde", Some("include")),
        ("e", None),
    ];
    for (word, expected) in table {
        assert_eq!(nearest(OsStr::new(word), &options), expected, "{word}");
    }
}

#[test]
fn a_misspelt_beginning_means_the_option_that_it_abbreviates() {
    let options = ["runs", "work-dir", "block-sizes", "no-clobber", "as-published"];
    let table = [
        ("zork", Some("work-dir")),
        ("blokc", Some("block-sizes")),
        // Of a whole word, fewer letters may be meant; short beginnings are those of too many words.
        ("rnus", Some("runs")),
        ("nn", None),
        ("az", None),
        ("xyzzy", None),
    ];
    for (word, expected) in table {
        assert_eq!(nearest(OsStr::new(word), &options), expected, "{word}");
    }
}

#[test]
fn a_word_of_other_bytes_or_of_any_length_means_nothing() {
    assert_eq!(nearest(OsStr::from_bytes(b"cp\xff"), &COMMANDS), None);
    let begun = std::time::Instant::now();
    assert_eq!(nearest(OsStr::new(&"sync".repeat(25_000)), &COMMANDS), None);
    assert!(begun.elapsed().as_secs() < 1, "the distance to a long word was computed");
}
