use super::{Manifest, Purpose};

fn check(text: &str, expected: &[(Purpose, &str, &str)]) {
    let manifest = Manifest::parse(text);
    let found: Vec<(Purpose, &str, &str)> = manifest
        .dependencies
        .iter()
        .map(|((purpose, key), package)| (*purpose, key.as_str(), package.as_str()))
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn name_is_the_package_s() {
    let text = "[lib]\nname = \"other\"\n[package] # here\nname = \"ferry-io\" # there\n";
    assert_eq!(Manifest::parse(text).name, "ferry-io");
}

#[test]
fn every_way_to_write_a_dependency_is_read() {
    check("[dependencies]\na = \"1\"", &[(Purpose::Crate, "a", "a")]);
    check("[dependencies]\na.workspace = true", &[(Purpose::Crate, "a", "a")]);
    check("[dependencies]\n\"a\" = { version = \"1\" }", &[(Purpose::Crate, "a", "a")]);
    check("[dependencies.a]\nversion = \"1\"", &[(Purpose::Crate, "a", "a")]);
    check("[build-dependencies]\na = \"1\"", &[(Purpose::Crate, "a", "a")]);
    check("[target.'cfg(unix)'.dependencies]\na = \"1\"", &[(Purpose::Crate, "a", "a")]);
    check("[dev-dependencies]\na = \"1\"", &[(Purpose::Tests, "a", "a")]);
    check("[workspace.dependencies]\na = \"1\"", &[(Purpose::Crate, "a", "a")]);
}

#[test]
fn renamed_package_is_found_under_its_own_name() {
    let renamed = &[(Purpose::Crate, "a", "b")];
    check("[dependencies]\na = { path = \"x\", package = \"b\" }", renamed);
    check("[dependencies]\na.path = \"x\"\na.package = \"b\"", renamed);
    check("[dependencies.a]\npath = \"x\"\npackage = \"b\"", renamed);
}

#[test]
fn what_is_no_dependency_is_left_out() {
    check("[features]\na = []\n[lints.rust]\nb = \"deny\"\n# [dependencies]\n", &[]);
    check("[dependencies]\n# a = \"1\"", &[]);
}

#[test]
fn value_over_several_lines_is_one_statement() {
    let text =
        "[dependencies]\na = { version = \"1\", features = [\n  \"b#\", # = c\n  \"d\",\n] }\ne = \"1\"";
    check(text, &[(Purpose::Crate, "a", "a"), (Purpose::Crate, "e", "e")]);
}
