use ferry_tree::workload::Sizes;

use super::{Tree, sizes, workload};
use crate::experiment::Experiment;
use crate::record::Scale;
use crate::settings::Settings;

fn settings(given: &[(&str, &str)]) -> Settings {
    let given: Vec<_> = given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Settings::new(Tree.spec().parameters, &given, Scale::Default).unwrap()
}

#[test]
fn a_presets_numbers_can_be_changed() {
    let found =
        workload(&settings(&[("preset", "small"), ("depth", "2"), ("sizes", "1M"), ("holes", "7")]), 3)
            .unwrap();
    assert_eq!((found.fanout, found.depth, found.files, found.seed), (5, 2, 5, 3));
    assert_eq!((found.sizes, found.sparse_percent), (Sizes::Fixed(1 << 20), 7));
}

#[test]
fn distributions_of_sizes_are_understood() {
    assert_eq!(sizes("0-3K"), Some(Sizes::Uniform { least: 0, most: 3072 }));
    let expected = Sizes::LogNormal { median: 8192, deviation_percent: 250, most: 64 << 20 };
    assert_eq!(sizes("log-normal:8K:250:64M"), Some(expected));
    for text in ["", "x", "3K-1K", "log-normal:8K", "log-normal:8K:9999:1M", "99999G"] {
        assert_eq!(sizes(text), None, "{text}");
    }
}

#[test]
fn what_cannot_be_made_is_refused() {
    let refused = |given: &[(&str, &str)]| {
        let settings = settings(given);
        Tree.needs(&settings).unwrap_err().to_string()
    };
    assert_eq!(refused(&[]), "missing operand: the path of the new tree");
    assert_eq!(refused(&[("target", "/")]), "cannot create '/': File exists");
    assert!(refused(&[("target", "/x"), ("preset", "tiny")]).starts_with("'tiny' is none of small, wide,"));
    assert!(
        refused(&[("target", "/x"), ("sizes", "big")])
            .starts_with("invalid value 'big' for '--sizes'; it must")
    );
    let links = [("target", "/x"), ("symlinks", "60"), ("hard-links", "60")];
    assert_eq!(refused(&links), "'--symlinks' and '--hard-links' are more than 100 percent together");
}
