//! What will be read next: readers that go on where they stopped, or at a distance equal to the last, are recognised, and
//! run ahead of.
//!
//! Bounds: so many readers are told apart ([`STREAMS`]), the one that was not heard of longest giving way; what is read
//! ahead of one doubles as it goes on, up to the options' window (guard: `the_window_grows_to_its_bound`).

use std::ops::Range;

/// Readers told apart.
const STREAMS: usize = 8;
/// The most places that are read ahead of a reader in strides.
const MOST_STRIDES: u64 = 32;

/// One reader, as far as its reads tell.
#[derive(Debug, Clone, Copy)]
struct Stream {
    /// Its last read.
    start: u64,
    end: u64,
    /// From the start of a read to the next one's.
    stride: i128,
    /// Reads in a row that came where they were expected.
    run: u32,
    /// Bytes to be ahead of it, or places if it reads in strides.
    window: u64,
    /// Where reading ahead has come to; in strides, how many places.
    ahead: u64,
    heard_of: u64,
}

/// What one read tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Noted {
    /// It goes on exactly where another one ended.
    pub(super) goes_on: bool,
    /// What to read ahead, nearest first.
    pub(super) ahead: Vec<Range<u64>>,
}

/// The readers of one file.
#[derive(Debug)]
pub(super) struct Streams {
    streams: Vec<Stream>,
    /// Bytes a window, at least and at most.
    least: u64,
    most: u64,
    reads: u64,
}

impl Streams {
    /// Windows grow from `least` to `most` bytes; none at all if `most` is zero.
    pub(super) fn new(least: u64, most: u64) -> Self {
        Self { streams: Vec::new(), least: least.min(most), most, reads: 0 }
    }

    /// Notes a read of `size` bytes at `at`.
    pub(super) fn note(&mut self, at: u64, size: u64) -> Noted {
        if size == 0 || self.most == 0 {
            return Noted::default();
        }
        self.reads += 1;
        let (reads, least, most) = (self.reads, self.least, self.most);
        let end = at.saturating_add(size);
        // Those that read side by side come a little out of turn.
        let follows = |s: &&mut Stream| {
            let is_in_strides = s.stride != 0 && s.run > 0;
            !is_in_strides && (at == s.end || s.run > 0 && at > s.start && at <= s.end.saturating_add(size))
        };
        if let Some(stream) = self.streams.iter_mut().find(follows) {
            let goes_on = at == stream.end;
            stream.heard_of = reads;
            return Noted { goes_on, ahead: stream.go_on(at, end, least, most) };
        }
        let is_expected = |s: &&mut Stream| s.stride != 0 && i128::from(at) - i128::from(s.start) == s.stride;
        if let Some(stream) = self.streams.iter_mut().find(is_expected) {
            stream.heard_of = reads;
            return Noted { goes_on: false, ahead: stream.stride_on(at, end, most) };
        }
        self.begin(at, end);
        Noted::default()
    }

    /// A reader not known yet; perhaps the last one in strides.
    fn begin(&mut self, start: u64, end: u64) {
        let last = self.streams.iter().max_by_key(|stream| stream.heard_of);
        let stride = last.map_or(0, |last| i128::from(start) - i128::from(last.start));
        let stream = Stream { start, end, stride, run: 0, window: 0, ahead: end, heard_of: self.reads };
        if self.streams.len() < STREAMS {
            self.streams.push(stream);
        } else if let Some(oldest) = self.streams.iter_mut().min_by_key(|stream| stream.heard_of) {
            *oldest = stream;
        }
    }
}

impl Stream {
    /// It reads on; what is to be read ahead, once half of its window is used up.
    fn go_on(&mut self, at: u64, end: u64, least: u64, most: u64) -> Vec<Range<u64>> {
        if self.stride != 0 {
            (self.stride, self.ahead) = (0, end);
        }
        self.run += 1;
        (self.start, self.end) = (at.max(self.start), end.max(self.end));
        if self.window == 0 {
            // Whoever reads much at a time waits for it else.
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

    /// It reads at the next place of equal distance.
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
