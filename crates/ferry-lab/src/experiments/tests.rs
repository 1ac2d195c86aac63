use super::{ALL, named};
use crate::record::Scale;
use crate::settings::Settings;

#[test]
fn every_experiment_has_defaults_that_it_understands() {
    for experiment in ALL {
        for scale in [Scale::Default, Scale::Quick, Scale::AsPublished] {
            let settings = Settings::new(experiment.parameters(), &[], scale);
            assert!(settings.is_ok(), "{}: {settings:?}", experiment.name());
            assert!(experiment.runs(scale) >= 1);
        }
        for operand in experiment.operands() {
            assert!(experiment.parameters().iter().any(|parameter| parameter.name == *operand), "{operand}");
        }
        assert!(!experiment.measures().is_empty());
        assert_eq!(named(experiment.name()).map(|found| found.name()), Some(experiment.name()));
    }
    assert!(named("no-such-experiment").is_none());
}
