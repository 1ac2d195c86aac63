//! Whether a profile still speaks of what is there.

use super::{About, Place, Profile};

impl Profile {
    /// Why it does not, if so: it was measured with another kernel, on another device, or by a ferry whose figures mean
    /// something else.
    #[must_use]
    pub fn stale(&self, place: &Place, kernel: &str) -> Option<String> {
        let differs = |what: &str, then: &str, now: &str| {
            (then != now).then(|| format!("it was measured {what} {then}, and this is {now}"))
        };
        let tool = About::here(false).tool;
        differs("with kernel", &self.about.kernel, kernel)
            .or_else(|| differs("on", &self.place.filesystem, &place.filesystem))
            .or_else(|| differs("on", &self.place.device, &place.device))
            .or_else(|| differs("by", series(&self.about.tool), series(&tool)))
    }
}

/// `ferry 0.1` of `ferry 0.1.7`: what has the same figures (semantic versioning).
fn series(tool: &str) -> &str {
    let (name, version) = tool.split_once(' ').unwrap_or((tool, ""));
    let parts = if version.starts_with("0.") { 2 } else { 1 };
    let kept: usize = version.split('.').take(parts).map(|part| part.len() + 1).sum();
    tool.get(..name.len() + kept).unwrap_or(tool)
}
