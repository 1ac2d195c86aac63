use super::{Parameter, ParameterKind, Settings};
use crate::record::Scale;

const PARAMETERS: &[Parameter] = &[
    Parameter::new("size", "BYTES", "", ParameterKind::Size(1, 1 << 30), "1M").quick("4K").published("1G"),
    Parameter::new("depths", "N,...", "", ParameterKind::Numbers(1, 64), "1,64"),
    Parameter::new("states", "STATE,...", "", ParameterKind::Words(&["cold", "warm"]), "cold,warm"),
    Parameter::new("vs", "COMMAND", "", ParameterKind::Texts, ""),
    Parameter::new("fast", "", "", ParameterKind::Switch, "no"),
    Parameter::new("url", "URL", "", ParameterKind::Text, ""),
];

fn settings(given: &[(&str, &str)], scale: Scale) -> Result<Settings, String> {
    let given: Vec<_> = given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Settings::new(PARAMETERS, &given, scale).map_err(|error| error.to_string())
}

#[test]
fn defaults_follow_the_scale() {
    let size = |scale| settings(&[], scale).unwrap().number("size");
    assert_eq!(
        (size(Scale::Quick), size(Scale::Default), size(Scale::AsPublished)),
        (4096, 1 << 20, 1 << 30)
    );
}

#[test]
fn what_is_given_counts() {
    let given =
        [("size", "2M"), ("depths", "2, 4"), ("vs", "a b"), ("vs", "c"), ("fast", "yes"), ("size", "8")];
    let found = settings(&given, Scale::Quick).unwrap();
    assert_eq!((found.number("size"), found.numbers("depths")), (8, vec![2, 4]));
    assert_eq!(found.texts("vs"), ["a b", "c"]);
    assert!(found.is_on("fast"));
    assert_eq!(
        (found.texts("states"), found.text("url")),
        (vec!["cold".to_owned(), "warm".to_owned()], String::new())
    );
    let again = Settings::of_record(PARAMETERS, found.values()).unwrap();
    assert_eq!(again.values(), found.values());
}

#[test]
fn what_makes_no_sense_is_refused_in_a_line() {
    let refused = |name, text| settings(&[(name, text)], Scale::Default).unwrap_err();
    assert_eq!(refused("size", "4X"), "invalid value '4X' for '--size'; it must be from 1 to 1073741824");
    assert_eq!(refused("depths", "1,65"), "invalid value '65' for '--depths'; it must be from 1 to 64");
    assert_eq!(refused("depths", ","), "invalid value ',' for '--depths'; at least one is needed");
    assert_eq!(refused("states", "hot"), "invalid value 'hot' for '--states'; valid are: cold, warm");
}
