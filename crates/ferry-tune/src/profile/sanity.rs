//! Plausibility of figures, wherever a profile comes from.
//!
//! A wrong figure makes a copy slower than no profile: for example, a device that seems to need only one request in
//! flight gets only one. So a profile is used only if its figures are possible and consistent.

use super::date;
use super::figures::{About, Block, Calls, Can, Depth, Direct, Figure, LONGEST_TEXT, Place, Profile};

/// Maximum number of depths, block sizes, or handed-over operations.
const LONGEST_LIST: usize = 64;
/// Maximum of median/minimum and of maximum/median for bandwidths and rates. On a shared disk the ratio reaches 2.
const WIDEST: f64 = 3.0;
/// Maximum of these ratios for the cost of calls: one interrupt takes longer than the call.
const WIDEST_CALL: f64 = 10.0;
/// Maximum bandwidth in MB/s: ten times that of memory.
const FASTEST: f64 = 1e6;
/// Maximum cost of a call in microseconds: one second.
const SLOWEST_CALL: f64 = 1e6;
/// Rates of all block sizes that differ by less show that the number of requests was the limit.
const EQUAL: f64 = 0.05;
/// Ways in which the kernel executes an operation.
const EXECUTIONS: [&str; 4] = ["inline", "ring", "worker", "worker, one at a time"];

/// The error completes the sentence "this profile is not plausible: ".
type Check = Result<(), String>;

impl Profile {
    /// Checks that the figures are possible and consistent.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Check {
        self.about.check()?;
        self.place.check()?;
        if let Some(direct) = &self.direct {
            direct.check()?;
        }
        self.calls.check()?;
        self.can.check()?;
        ensure(self.handed_over.len() <= LONGEST_LIST, || "handed_over is too long".to_owned())?;
        for (operation, how) in &self.handed_over {
            text("the name of an operation", operation)?;
            ensure(EXECUTIONS.contains(&how.as_str()), || {
                format!("{operation:?} was executed in an unknown way: {how:?}")
            })?;
        }
        Ok(())
    }
}

impl About {
    fn check(&self) -> Check {
        let texts = [("tool", &self.tool), ("kernel", &self.kernel), ("date", &self.date)];
        texts.into_iter().try_for_each(|(name, value)| text(name, value))?;
        ensure(date::since_1970(&self.date).is_some(), || format!("{:?} is not a date", self.date))?;
        ensure(self.processors > 0, || "the number of processors is 0".to_owned())
    }
}

impl Place {
    fn check(&self) -> Check {
        text("filesystem", &self.filesystem)?;
        text("identity", &self.identity)?;
        text("source", &self.source)?;
        text("device", &self.device)?;
        text("options", &self.options)
    }
}

impl Direct {
    fn check(&self) -> Check {
        rate("sequential_read", &self.sequential_read, FASTEST)?;
        rate("sequential_write", &self.sequential_write, FASTEST)?;
        rate("random_read", &self.random_read, FASTEST * 1e6 / 4096.0)?;
        rate("random_write", &self.random_write, FASTEST * 1e6 / 4096.0)?;
        not_above("reads", &self.random_read, &self.sequential_read)?;
        not_above("writes", &self.random_write, &self.sequential_write)?;
        self.check_depths()?;
        self.check_blocks()
    }

    fn check_depths(&self) -> Check {
        let depth = |of: &Depth| u64::from(of.depth);
        list("depths", &self.depths, depth, 1..=65_536)?;
        self.depths
            .iter()
            .try_for_each(|of| rate(&format!("depth {}", of.depth), &of.iops, FASTEST * 1e6 / 4096.0))?;
        let enough = self.depths.iter().find(|of| of.depth == self.enough_depth);
        let enough =
            enough.ok_or_else(|| format!("enough_depth {} is not one of the depths", self.enough_depth))?;
        let ratio = self.random_read.median / enough.iops.median;
        ensure((1.0 / WIDEST..=WIDEST).contains(&ratio), || {
            format!("random_read is {ratio:.2} times what depth {} gave", self.enough_depth)
        })
    }

    fn check_blocks(&self) -> Check {
        list("blocks", &self.blocks, |block| block.bytes, 512..=64 << 20)?;
        self.blocks.iter().try_for_each(|of| rate(&format!("block {}", of.bytes), &of.mb_per_s, FASTEST))?;
        let best = self.blocks.iter().any(|block| block.bytes == self.best_block);
        ensure(best, || format!("best_block {} is not one of the blocks", self.best_block))?;
        let each = |block: &Block| block.mb_per_s.median / ferry_lab::units::real(block.bytes);
        let rates = || self.blocks.iter().map(each);
        let (least, most) = (rates().fold(f64::MAX, f64::min), rates().fold(0.0, f64::max));
        ensure(self.blocks.len() < 3 || most > least * (1.0 + EQUAL), || {
            "requests of every size have the same rate: the number in flight was the limit, not the device"
                .to_owned()
        })
    }
}

impl Calls {
    fn check(&self) -> Check {
        call("inline_create", &self.inline_create)?;
        call("pool_hand_over", &self.pool_hand_over)?;
        self.ring_hand_over.as_ref().map_or(Ok(()), |figure| call("ring_hand_over", figure))
    }
}

impl Can {
    fn check(&self) -> Check {
        for alignment in [self.direct_memory_alignment, self.direct_offset_alignment].into_iter().flatten() {
            let is_one = alignment.is_power_of_two() && alignment <= 1 << 20;
            ensure(is_one, || format!("{alignment} is not a valid alignment"))?;
        }
        Ok(())
    }
}

fn ensure(holds: bool, why_not: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(why_not()) }
}

fn text(name: &str, value: &str) -> Check {
    ensure(value.chars().count() <= LONGEST_TEXT, || format!("{name} is too long"))?;
    ensure(!value.chars().any(char::is_control), || format!("{name} has control characters"))
}

fn rate(name: &str, figure: &Figure, most: f64) -> Check {
    within(name, figure, most, WIDEST)
}

fn call(name: &str, figure: &Figure) -> Check {
    within(name, figure, SLOWEST_CALL, WIDEST_CALL)
}

fn within(name: &str, figure: &Figure, most: f64, widest: f64) -> Check {
    let Figure { median, low, high, runs } = *figure;
    let all = [low, median, high];
    ensure(all.iter().all(|value| value.is_finite() && *value > 0.0), || {
        format!("{name} is {median}, from {low} to {high}")
    })?;
    ensure(low <= median && median <= high, || {
        format!("{name}'s median {median} is not within {low} to {high}")
    })?;
    ensure(runs > 0, || format!("{name} was not measured"))?;
    ensure(high <= most, || format!("{name} is {high}, beyond any device"))?;
    ensure(median <= low * widest && high <= median * widest, || {
        format!("{name} varied from {low:.1} to {high:.1}: the spread is too wide")
    })
}

/// Compares random requests in MB/s with sequential ones. Only a difference beyond the spread is refused.
fn not_above(what: &str, random: &Figure, sequential: &Figure) -> Check {
    let random = random.low * 4096.0 / 1e6;
    ensure(random <= sequential.high, || {
        format!(
            "random {what} reach {random:.0} MB/s, more than sequential ones ({:.0} MB/s)",
            sequential.high
        )
    })
}

fn list<T>(name: &str, items: &[T], key: impl Fn(&T) -> u64, range: std::ops::RangeInclusive<u64>) -> Check {
    ensure((1..=LONGEST_LIST).contains(&items.len()), || format!("{name} has {} items", items.len()))?;
    ensure(items.iter().all(|item| range.contains(&key(item))), || format!("{name} are out of bounds"))?;
    ensure(items.is_sorted_by(|a, b| key(a) < key(b)), || format!("{name} are not in order"))
}
