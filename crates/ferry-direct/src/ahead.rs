//! Predicts the next reads of a direct file. Recognises readers that go on where they stopped, and readers in equal
//! strides.
//!
//! Bounds: up to [`STREAMS`] readers are told apart; the one idle longest is replaced. A reader's window doubles as it
//! goes on, up to the options' bound (guard: `the_window_grows_to_its_bound`).

use std::ops::Range;

/// Maximum number of readers told apart.
const STREAMS: usize = 8;
/// Maximum number of places read ahead of a reader in strides.
const MOST_STRIDES: u64 = 32;

/// One reader, as its reads show it.
#[derive(Debug, Clone, Copy)]
struct Stream {
    /// Offsets of its last read.
    start: u64,
    end: u64,
    /// Distance in bytes between the starts of its last two reads.
    stride: i128,
    /// Number of expected reads in a row.
    run: u32,
    /// Read-ahead window in bytes, or in places for strides.
    window: u64,
    /// End of read-ahead so far, as an offset, or in places for strides.
    ahead: u64,
    /// Number of the last read that matched.
    last_match: u64,
}

/// Outcome of noting one read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Noted {
    /// The read starts exactly where an earlier one ended.
    pub(crate) goes_on: bool,
    /// Ranges to read ahead, nearest first.
    pub(crate) ahead: Vec<Range<u64>>,
}

/// The readers of one file.
#[derive(Debug)]
pub(crate) struct Streams {
    streams: Vec<Stream>,
    /// Smallest and largest window in bytes.
    least: u64,
    most: u64,
    reads: u64,
}

impl Streams {
    /// Windows grow from `least` to `most` bytes; 0 for `most` switches read-ahead off.
    pub(crate) fn new(least: u64, most: u64) -> Self {
        Self { streams: Vec::new(), least: least.min(most), most, reads: 0 }
    }

    /// Notes a read of `size` bytes at `at`.
    pub(crate) fn note(&mut self, at: u64, size: u64) -> Noted {
        if size == 0 || self.most == 0 {
            return Noted::default();
        }
        self.reads += 1;
        let (reads, least, most) = (self.reads, self.least, self.most);
        let end = at.saturating_add(size);
        // Requests of parallel readers arrive slightly out of order.
        let follows = |s: &&mut Stream| {
            let is_in_strides = s.stride != 0 && s.run > 0;
            !is_in_strides && (at == s.end || s.run > 0 && at > s.start && at <= s.end.saturating_add(size))
        };
        if let Some(stream) = self.streams.iter_mut().find(follows) {
            let goes_on = at == stream.end;
            stream.last_match = reads;
            return Noted { goes_on, ahead: stream.go_on(at, end, least, most) };
        }
        let is_expected = |s: &&mut Stream| s.stride != 0 && i128::from(at) - i128::from(s.start) == s.stride;
        if let Some(stream) = self.streams.iter_mut().find(is_expected) {
            stream.last_match = reads;
            return Noted { goes_on: false, ahead: stream.stride_on(at, end, most) };
        }
        self.begin(at, end);
        Noted::default()
    }

    /// Adds a reader; its first stride is the distance from the last read of any reader.
    fn begin(&mut self, start: u64, end: u64) {
        let last = self.streams.iter().max_by_key(|stream| stream.last_match);
        let stride = last.map_or(0, |last| i128::from(start) - i128::from(last.start));
        let stream = Stream { start, end, stride, run: 0, window: 0, ahead: end, last_match: self.reads };
        if self.streams.len() < STREAMS {
            self.streams.push(stream);
        } else if let Some(oldest) = self.streams.iter_mut().min_by_key(|stream| stream.last_match) {
            *oldest = stream;
        }
    }
}

impl Stream {
    /// Notes a sequential read; returns ranges to read ahead once half of the window is used up.
    fn go_on(&mut self, at: u64, end: u64, least: u64, most: u64) -> Vec<Range<u64>> {
        if self.stride != 0 {
            (self.stride, self.ahead) = (0, end);
        }
        self.run += 1;
        (self.start, self.end) = (at.max(self.start), end.max(self.end));
        if self.window == 0 {
            // A reader of large parts would wait for a smaller window.
            self.window = least.max((end - at).saturating_mul(2)).min(most);
        }
        let from = self.ahead.max(self.end);
        if from - self.end > self.window / 2 {
            return Vec::new();
        }
        let to = self.end.saturating_add(self.window);
        self.ahead = to;
        self.window = (self.window * 2).min(most);
        (from < to).then_some(from..to).into_iter().collect()
    }

    /// Notes a read at the expected stride.
    fn stride_on(&mut self, at: u64, end: u64, most: u64) -> Vec<Range<u64>> {
        self.run += 1;
        (self.start, self.end) = (at, end);
        if self.window == 0 {
            (self.window, self.ahead) = (1, 1);
        }
        let bound = (most / (end - at)).min(MOST_STRIDES);
        let had = self.ahead.saturating_sub(1);
        self.window = (self.window * 2).min(bound);
        self.ahead = self.window.max(had);
        let place = |number: u64| {
            let start = i128::from(at) + self.stride * i128::from(number);
            let start = u64::try_from(start).ok()?;
            Some(start..start.saturating_add(end - at))
        };
        (had + 1..=self.window).filter_map(place).collect()
    }
}

#[cfg(test)]
mod tests;
