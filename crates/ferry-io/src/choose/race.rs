//! The race of the ways: whose turn it is, and who leads.
//!
//! A trial is compared with the leader's pieces just before and just after it. A way needs fewer trials to take the lead
//! the faster it is. One that is slower rests, each time for longer.

use super::way::Way;

/// Bytes of a usual piece. Less would misjudge mappings, which cost some microseconds each.
const PIECE: usize = 4 << 20;
/// Bytes of a way's first trial in a round: it may be far slower than the leader.
const FIRST_TRIAL: usize = 1 << 20;
/// Bytes of a later trial.
const TRIAL: usize = 2 << 20;
/// Bytes of the leader's pieces while another way may be faster.
const SHORT_PIECE: usize = 512 << 10;
/// Bytes from one round, in which each way gets a piece, to the next.
const BETWEEN_ROUNDS: u64 = 96 << 20;
/// Bytes for which a way rests after its first loss; four times as many after each further one.
const REST: u64 = 64 << 20;
/// Bytes for which a way rests whose trial was ended early.
const LONG_REST: u64 = 512 << 20;
/// Latest samples whose median counts.
const SAMPLES: usize = 9;
/// Fewer bytes are no sample.
const SMALLEST_SAMPLE: usize = 256 << 10;

/// Order to move one piece.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) way: Way,
    pub(crate) bytes: usize,
    /// Time after which a trial is to end early, in nanoseconds; pages that are mapped first may take longer.
    pub(crate) limit_ns: u64,
    /// Comparison that it belongs to; `None` if it is not compared.
    comparison: Option<u64>,
}

impl Piece {
    /// Returns true if another way than the leader's is compared with it.
    pub(super) fn is_trial(&self) -> bool {
        self.limit_ns < u64::MAX
    }

    /// A piece that is not compared.
    #[cfg(test)]
    pub(crate) fn alone(way: Way, bytes: usize) -> Self {
        Self { way, bytes, limit_ns: u64::MAX, comparison: None }
    }
}

/// Use of one way so far.
///
/// ```
/// use ferry_io::{Tried, Way};
///
/// let tried = Tried { way: Way::Kernel, bytes: 1 << 20, took_ns: 1_000_000, percent: None };
/// assert_eq!(tried.speed(), (1 << 20) * 1000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried {
    /// The way.
    pub way: Way,
    /// Bytes moved by it.
    pub bytes: u64,
    /// Time of its calls in nanoseconds.
    pub took_ns: u64,
    /// Time in percent of the leader's, when they were last compared. `None` for the leader, and for a way that was not
    /// compared with it.
    ///
    /// The mean speeds of ways should not be compared: they are of different moments.
    pub percent: Option<u64>,
}

impl Tried {
    /// Returns the mean speed in bytes per second.
    #[must_use]
    pub fn speed(&self) -> u64 {
        let speed = u128::from(self.bytes) * 1_000_000_000 / u128::from(self.took_ns.max(1));
        u64::try_from(speed).unwrap_or(u64::MAX)
    }
}

/// The latest samples; the newest first.
#[derive(Debug, Clone, Copy, Default)]
struct Samples {
    latest: [u64; SAMPLES],
    count: usize,
}

impl Samples {
    fn of(sample: u64) -> Self {
        let mut samples = Self::default();
        samples.add(sample);
        samples
    }

    fn add(&mut self, sample: u64) {
        self.latest.rotate_right(1);
        self.latest[0] = sample;
        self.count = (self.count + 1).min(SAMPLES);
    }

    fn median(&self) -> Option<u64> {
        let mut latest = self.latest;
        let latest = latest.get_mut(..self.count)?;
        latest.sort_unstable();
        latest.get(self.count.checked_sub(1)? / 2).copied()
    }

    fn largest(&self) -> Option<u64> {
        self.latest.get(..self.count)?.iter().max().copied()
    }
}

/// Record of one way: its use, its trials, its rest.
#[derive(Debug, Clone, Copy, Default)]
struct Arm {
    bytes: u64,
    took_ns: u64,
    /// Its times in percent of the leader's.
    ratios: Samples,
    /// Median of the ratios at the last comparison.
    percent: Option<u64>,
    /// Set once it had a piece in this round.
    is_tried: bool,
    losses: u32,
    /// Bytes moved in all before it is tried again.
    rests_until: u64,
    /// Set if the way is unsupported here.
    is_excluded: bool,
}

impl Arm {
    /// Returns true if it is faster than the leader beyond doubt. A single trial has to take half of the time, because
    /// any piece may be disturbed. The way that was first needs less: of nearly equal ways, it is cp's.
    fn is_faster(&self, is_first: bool) -> bool {
        let Some(median) = self.ratios.median() else { return false };
        match self.ratios.count {
            1 => median <= 50,
            2 => self.ratios.largest().is_some_and(|largest| largest <= 80),
            3..=5 => median <= if is_first { 98 } else { 94 },
            _ => median <= if is_first { 99 } else { 98 },
        }
    }

    /// Returns true if more trials are not worth their time for now.
    fn is_slower(&self) -> bool {
        let Some(median) = self.ratios.median() else { return false };
        self.ratios.latest[0] > 110 && self.ratios.count < 3
            || self.ratios.count >= 3 && median >= 99
            || self.ratios.count >= SAMPLES
    }
}

/// A trial that awaits the leader's next piece.
#[derive(Debug, Clone, Copy)]
struct Pending {
    arm: usize,
    pace: u64,
    /// The leader's pace before it.
    before: u64,
    was_cut: bool,
}

/// State of the race.
#[derive(Debug)]
pub(super) struct Race {
    arms: [Arm; Way::ALL.len()],
    /// The way that leads at first, and moves what others cannot: `cp`'s own.
    first: usize,
    leader: usize,
    /// The leader's times for a mebibyte, in nanoseconds.
    paces: Samples,
    /// The leader's usual pace since the ways were last compared anew.
    usual: Option<u64>,
    /// Pace of the way that took the lead last, at that time.
    took_lead_at: Option<u64>,
    pending: Option<Pending>,
    /// Set while a trial is under way, on any thread.
    is_trying: bool,
    /// Number of times that the leader or the round has changed. What was ordered before is not compared.
    comparison: u64,
    /// Pieces of the leader in a row that took 1.5 times as long as usual.
    slow: u32,
    moved: u64,
    /// Bytes moved when the ways were last compared anew.
    round_began: u64,
}

impl Race {
    /// A race between `first`, which leads at first, and `others`.
    pub(super) fn new(first: Way, others: &[Way]) -> Self {
        let takes_part = |way: Way| way == first || others.contains(&way);
        Self {
            arms: Way::ALL.map(|way| Arm { is_excluded: !takes_part(way), ..Arm::default() }),
            first: index(first),
            leader: index(first),
            paces: Samples::default(),
            usual: None,
            took_lead_at: None,
            pending: None,
            is_trying: false,
            comparison: 0,
            slow: 0,
            moved: 0,
            round_began: 0,
        }
    }

    /// Orders the next piece, of at most `left` bytes.
    pub(super) fn next(&mut self, left: usize, only_first: bool) -> Piece {
        let comparison = Some(self.comparison);
        let piece = |arm: usize, bytes| Piece { way: Way::ALL[arm], bytes, limit_ns: u64::MAX, comparison };
        if only_first {
            return Piece { comparison: None, ..piece(self.first, left.min(PIECE)) };
        }
        let Some(pace) = self.paces.median() else {
            return piece(self.leader, left.min(SHORT_PIECE));
        };
        if self.pending.is_none()
            && !self.is_trying
            && left >= PIECE
            && let Some(arm) = self.challenger()
        {
            let bytes = if self.arms[arm].is_tried { TRIAL } else { FIRST_TRIAL };
            self.is_trying = true;
            let limit_ns = (pace.saturating_mul(bytes as u64) >> 20).saturating_mul(3) / 2;
            return Piece { limit_ns, ..piece(arm, bytes) };
        }
        piece(self.leader, left.min(if self.is_comparing() { SHORT_PIECE } else { PIECE }))
    }

    /// The ways that may be tried now.
    fn due(&self) -> impl Iterator<Item = usize> {
        let is_due = |arm: &Arm| !arm.is_excluded && self.moved >= arm.rests_until;
        (0..self.arms.len()).filter(move |&at| at != self.leader && is_due(&self.arms[at]))
    }

    /// Returns true while a way that may be faster is being compared.
    fn is_comparing(&self) -> bool {
        self.due().next().is_some()
    }

    /// The way that is tried next, if one is due: one without a piece in this round, else the fastest.
    fn challenger(&self) -> Option<usize> {
        let fastest = || self.due().min_by_key(|&at| self.arms[at].ratios.latest[0]);
        self.due().find(|&at| !self.arms[at].is_tried).or_else(fastest)
    }

    /// Notes that an ordered piece moved `count` bytes.
    pub(super) fn note(&mut self, piece: &Piece, count: usize, took_ns: u64) {
        let at = index(piece.way);
        self.moved += count as u64;
        let arm = &mut self.arms[at];
        arm.bytes += count as u64;
        arm.took_ns += took_ns;
        if piece.comparison != Some(self.comparison) || count == 0 {
            return;
        }
        let pace = took_ns.saturating_mul(1 << 20) / count as u64;
        if at != self.leader {
            (arm.is_tried, self.is_trying) = (true, false);
            let (before, was_cut) = (self.paces.latest[0], took_ns > piece.limit_ns);
            if was_cut || count >= SMALLEST_SAMPLE {
                self.pending = Some(Pending { arm: at, pace, before, was_cut });
            }
        } else if count >= SMALLEST_SAMPLE {
            self.note_leader(pace);
        }
    }

    /// Notes that an ordered piece moved nothing.
    pub(super) fn give_up(&mut self, piece: &Piece) {
        if piece.comparison == Some(self.comparison) && index(piece.way) != self.leader {
            self.is_trying = false;
        }
    }

    fn note_leader(&mut self, pace: u64) {
        self.paces.add(pace);
        if let Some(trial) = self.pending.take() {
            self.judge(trial, pace);
        }
        let Some(median) = self.paces.median() else { return };
        if self.paces.count == SAMPLES {
            self.usual.get_or_insert(median);
        }
        let Some(usual) = self.usual else { return };
        self.slow = if pace > usual + usual / 2 { self.slow + 1 } else { 0 };
        let is_slow = self.slow >= 2 || median > usual + usual / 7;
        if is_slow && self.moved - self.round_began >= BETWEEN_ROUNDS {
            self.begin_round();
        }
    }

    /// Judges a trial by the leader's paces before and after it.
    fn judge(&mut self, trial: Pending, after: u64) {
        // One that would lose is compared with the slower one, in case the other was disturbed.
        let (fast, slow) = (trial.before.min(after).max(1), trial.before.max(after).max(1));
        let percent = |of: u64| trial.pace.saturating_mul(100) / of;
        let ratio = if trial.pace < fast { percent(fast) } else { percent(slow).max(100) };
        // A trial is cut early, too, if the leader had slowed down just before.
        let was_far_slower = trial.was_cut && ratio > 100;
        let moved = self.moved;
        let arm = &mut self.arms[trial.arm];
        arm.ratios.add(ratio);
        arm.percent = arm.ratios.median();
        if arm.is_faster(trial.arm == self.first) {
            self.promote(trial.arm);
            let took_lead_at = self.took_lead_at.replace(trial.pace);
            // The device has changed: what was known of the resting ways is void.
            if took_lead_at.is_some_and(|before| trial.pace > before + before / 7) {
                self.begin_round();
            }
        } else if was_far_slower || arm.is_slower() {
            let rest = if was_far_slower { LONG_REST } else { REST << (2 * arm.losses.min(4)) };
            arm.losses += 1;
            (arm.ratios, arm.rests_until) = (Samples::default(), moved + rest);
        }
    }

    /// Gives the lead to a way. The one before is tried soon, in case that was a mistake.
    fn promote(&mut self, arm: usize) {
        let won_by = self.arms[arm].ratios.median().unwrap_or(100).max(1);
        let before = std::mem::replace(&mut self.leader, arm);
        for other in &mut self.arms {
            // Its time in percent of the new leader's.
            let of_new_leader = |ratio: u64| ratio.saturating_mul(100) / won_by;
            let ratio = other.ratios.median().map(of_new_leader);
            (other.losses, other.percent) = (0, other.percent.map(of_new_leader));
            other.ratios = ratio.map_or_else(Samples::default, Samples::of);
            if ratio.is_some_and(|ratio| ratio > 110) {
                (other.ratios, other.rests_until) = (Samples::default(), self.moved + REST);
            }
        }
        (self.arms[arm].ratios, self.arms[arm].percent) = (Samples::default(), None);
        (self.arms[before].ratios, self.arms[before].rests_until) = (Samples::default(), 0);
        self.arms[before].percent = Some(10_000 / won_by);
        self.compare_anew();
    }

    /// Compares all ways anew: the device, or what shares its time, has changed.
    fn begin_round(&mut self) {
        self.round_began = self.moved;
        self.compare_anew();
        for arm in &mut self.arms {
            let Arm { bytes, took_ns, percent, is_excluded, .. } = *arm;
            *arm = Arm { bytes, took_ns, percent, is_excluded, ..Arm::default() };
        }
    }

    /// Forgets the leader's paces. Pieces under way are not compared.
    fn compare_anew(&mut self) {
        self.comparison += 1;
        (self.paces, self.usual, self.slow) = (Samples::default(), None, 0);
        (self.pending, self.is_trying) = (None, false);
    }

    /// Excludes a way that is unsupported here.
    pub(super) fn exclude(&mut self, way: Way) {
        let at = index(way);
        self.arms[at].is_excluded = at != self.first;
        if at == self.leader {
            self.leader = self.first;
            for arm in &mut self.arms {
                arm.percent = None;
            }
        }
        self.compare_anew();
    }

    /// The ways that moved bytes: the leader, then the others, from the fastest when compared to those not compared.
    pub(super) fn tried(&self) -> Vec<Tried> {
        let mut order: Vec<_> = (0..self.arms.len()).filter(|&at| self.arms[at].bytes > 0).collect();
        order.sort_by_key(|&at| (at != self.leader, self.arms[at].percent.unwrap_or(u64::MAX)));
        let tried = |at: usize| Tried {
            way: Way::ALL[at],
            bytes: self.arms[at].bytes,
            took_ns: self.arms[at].took_ns,
            percent: self.arms[at].percent,
        };
        order.into_iter().map(tried).collect()
    }
}

fn index(way: Way) -> usize {
    way as usize
}
