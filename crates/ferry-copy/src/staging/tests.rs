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
