use super::{COPIERS, Evict, cell};
use crate::experiments::Experiment;
use crate::experiments::tests::every_verdict_goes_every_way;
use crate::record::Scale;
use crate::settings::Settings;

#[test]
fn sizes_that_show_nothing_are_refused() {
    let needs = |given: &[(&str, &str)]| {
        let given: Vec<_> =
            given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        Evict.needs(&Settings::new(Evict.parameters(), &given, Scale::Default).unwrap())
    };
    assert_eq!(needs(&[]).unwrap().len(), 3);
    let why = "'--memory' must be more than '--resident' and less than '--size'";
    for given in [("memory", "512M"), ("memory", "4G")] {
        assert_eq!(needs(&[given]).unwrap_err().to_string(), why);
    }
}

#[test]
fn every_finding_can_hold_or_not_or_be_unclear() {
    let settings = Settings::new(Evict.parameters(), &[], Scale::Default).unwrap();
    let cells = COPIERS.iter().map(|(name, _)| cell(name)).collect();
    every_verdict_goes_every_way(&Evict, cells, settings.values());
}
