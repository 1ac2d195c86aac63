//! Profiles that no longer describe the current system.

use super::figures::{About, Place, Profile};

impl Profile {
    /// Returns why the profile is outdated, if it is: another kernel, another device, or a version of ferry whose
    /// figures have another meaning.
    #[must_use]
    pub fn stale(&self, place: &Place, kernel: &str) -> Option<String> {
        let differs = |what: &str, then: &str, now: &str| {
            (then != now).then(|| format!("it was measured {what} {then}, but this is {now}"))
        };
        let tool = About::here(false).tool;
        differs("with kernel", &self.about.kernel, kernel)
            .or_else(|| differs("on", &self.place.filesystem, &place.filesystem))
            .or_else(|| differs("on", &self.place.device, &place.device))
            .or_else(|| differs("by", series(&self.about.tool), series(&tool)))
    }
}

/// `ferry 0.1` of `ferry 0.1.7`: versions whose figures have the same meaning (semantic versioning).
fn series(tool: &str) -> &str {
    let (name, version) = tool.split_once(' ').unwrap_or((tool, ""));
    let parts = if version.starts_with("0.") { 2 } else { 1 };
    let kept: usize = version.split('.').take(parts).map(|part| part.len() + 1).sum();
    tool.get(..name.len() + kept).unwrap_or(tool)
}
