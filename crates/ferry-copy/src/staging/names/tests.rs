use super::*;

fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).unwrap()
}

#[test]
fn hidden_names_are_recognised_in_their_own_folder_alone() {
    let hidden = hidden_name(0x2a, 0x1f40, 0);
    assert_eq!(hidden.as_bytes(), b".ferry-2a-1f40-0");
    assert!(is_hidden_name(&hidden, 0x2a));
    assert!(!is_hidden_name(&hidden, 0x2b));
}

#[test]
fn what_only_looks_like_a_hidden_name_is_somebody_s() {
    for text in [
        ".ferry",
        ".ferry-",
        ".ferry-2a",
        ".ferry-2a-1",
        ".ferry-2a-1-0-0",
        ".ferry-2a-1-",
        ".ferry-2a--0",
        ".ferry-2A-1-0",
        ".ferry-02a-1-0",
        ".ferry-+2a-1-0",
        ".ferry-2a-1-0~",
        ".ferry-2a-1-0.txt",
        ".ferry-2a-notes-0",
        "ferry-2a-1-0",
        "x.ferry-2a-1-0",
    ] {
        assert!(!is_hidden_name(&name(text), 0x2a), "{text}");
    }
    assert!(!is_hidden_name(&Name::new(b".ferry-2a-1-\xff").unwrap(), 0x2a));
}

#[test]
fn parts_and_journals_are_recognised_in_their_own_folder_alone() {
    let (part, journal) = part_names(0x2a, &name("film"));
    assert!(part.as_bytes().starts_with(b".ferry-2a-") && part.as_bytes().ends_with(b".part"));
    assert_ne!(part_names(0x2a, &name("other")), (part.clone(), journal.clone()));
    assert_eq!((part_of(&journal), journal_of(&part)), (Some(part.clone()), Some(journal.clone())));
    assert_eq!((part_of(&part), journal_of(&journal)), (None, None));
    for hidden in [part, journal] {
        assert!(
            is_part_name(&hidden, 0x2a) && !is_part_name(&hidden, 0x2b) && !is_hidden_name(&hidden, 0x2a)
        );
    }
    for text in [".ferry-2a-.part", ".ferry-2a-1-0", ".ferry-2a-00112233445566778899aabbccddeeff", "x.part"] {
        assert!(!is_part_name(&name(text), 0x2a), "{text}");
    }
}

#[test]
fn names_of_entries_moved_aside_describe_them_in_their_own_folder_alone() {
    for original in [&b"film"[..], b"-", b"a-b-c", b"\xff", &[b'n'; 150]] {
        let aside = Aside { made: 0, seen: u64::MAX, name: Name::new(original).unwrap() };
        let name = aside_name(0x2a, 0x1f40, 0, Some(&aside));
        assert_eq!(aside_of(&name, 0x2a), Some(aside));
        assert_eq!(aside_of(&name, 0x2b), None);
        assert!(!is_hidden_name(&name, 0x2a) && !is_part_name(&name, 0x2a));
    }
    let long = Aside { made: 1, seen: 1, name: Name::new(&[b'n'; 255]).unwrap() };
    let name = aside_name(0x2a, 0x1f40, 0, Some(&long));
    assert_eq!((name.as_bytes(), aside_of(&name, 0x2a)), (&b".ferry-aside-2a-1f40-0"[..], None));
    assert_eq!(aside_of(&Name::new(b".ferry-aside-1f40-0").unwrap(), 0x1f40), None);
}

#[test]
fn marks_are_recognised_in_their_own_folder_alone() {
    let mark = Mark::new(&name("film"), 0x1f40);
    let marked = mark.name(0x2a);
    assert_eq!((Mark::of(&marked, 0x2a), Mark::of(&marked, 0x2b)), (Some(mark.clone()), None));
    assert_eq!([mark.is_of(&name("film")), mark.is_of(&name("other"))], [true, false]);
    assert!(!is_hidden_name(&marked, 0x2a) && !is_part_name(&marked, 0x2a));
    for text in [".ferry-2a-1-1.inplace", ".ferry-2a-00112233445566778899aabbccddeeff-01.inplace"] {
        assert_eq!(Mark::of(&name(text), 0x2a), None, "{text}");
    }
}
