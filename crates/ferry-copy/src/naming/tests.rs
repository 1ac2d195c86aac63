use std::ffi::OsStr;

use super::{Backup, Control};

fn name(control: Control, suffix: &str, original: &str, others: &[&str]) -> String {
    let backup = Backup { control, suffix: suffix.into() };
    let mut naming = backup.of(OsStr::new(original));
    others.iter().for_each(|other| naming.see(OsStr::new(other)));
    naming.name().into_string().expect("text")
}

#[test]
fn simple_backups_end_with_the_suffix() {
    assert_eq!(name(Control::Simple, "~", "f", &["f.~3~"]), "f~");
    assert_eq!(name(Control::Simple, ".old", "f", &[]), "f.old");
    assert_eq!(name(Control::Existing, ".old", "f", &["g.~3~", "f.~x~", "f.~0~", "f.~07~", "f.~~"]), "f.old");
}

#[test]
fn numbers_are_one_more_than_the_highest() {
    assert_eq!(name(Control::Numbered, "~", "f", &[]), "f.~1~");
    assert_eq!(name(Control::Existing, "~", "f", &["f.~2~", "f.~10~", "f.~9~"]), "f.~11~");
    let large = "f.~99999999999999999999999~";
    assert_eq!(name(Control::Numbered, "~", "f", &[large, "f.~1~"]), "f.~100000000000000000000000~");
}

#[test]
fn names_that_grow_too_long_are_cut() {
    let (whole, cut) = ("a".repeat(255), "a".repeat(253) + "~");
    assert_eq!(name(Control::Simple, "~", &whole, &[]), cut);
    assert_eq!(name(Control::Simple, "~", &whole[..254], &[]), cut);
    assert_eq!(name(Control::Simple, "~", &whole[..253], &[]), cut);
    assert_eq!(name(Control::Simple, ".orig", &whole[..252], &[]), format!("{}~", &whole[..252]));
}

#[test]
fn numbers_that_do_not_fit_are_left_out() {
    let long = "a".repeat(255);
    assert_eq!(name(Control::Numbered, ".old", &long[..250], &[]), format!("{}.~1~", &long[..250]));
    for size in [251, 252, 253, 254, 255] {
        let kept = &long[..size.min(253)];
        assert_eq!(name(Control::Numbered, ".old", &long[..size], &[]), format!("{kept}~"), "{size}");
    }
}
