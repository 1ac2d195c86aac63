//! Bytes of a simulated file: pages of data between holes.
//!
//! A hole of any size occupies nothing. Clones share pages until one of them is written to. Reserved space
//! (fallocate(2)) counts as allocated and reads as zero. Invariant: reserved ranges contain no page of data (guard:
//! `a_reserved_page_is_used_up_by_data`).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Size of a page in bytes, which is also the granularity of holes, as on most filesystems.
pub(super) const PAGE: usize = 4096;
const PAGE_BYTES: u64 = PAGE as u64;

type Page = Arc<[u8; PAGE]>;

/// Bytes of a file, with holes. Equality compares bytes: a hole equals zeros.
#[derive(Debug, Clone, Default)]
pub struct Sparse {
    size: u64,
    pages: BTreeMap<u64, Page>,
    /// Reserved pages: first page and end of each range.
    reserved: BTreeMap<u64, u64>,
    reserved_pages: u64,
}

impl Sparse {
    /// Size in bytes, including holes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn allocated(&self) -> u64 {
        (self.pages.len() as u64 + self.reserved_pages) * PAGE_BYTES
    }

    /// Reads at offset `at` and returns the number of bytes read.
    pub fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let left = usize::try_from(self.size.saturating_sub(at)).unwrap_or(usize::MAX);
        let count = into.len().min(left);
        let mut done = 0;
        while done < count {
            let position = at + done as u64;
            let within = offset_in_page(position);
            let size = (PAGE - within).min(count - done);
            let part = &mut into[done..done + size];
            match self.pages.get(&(position / PAGE_BYTES)) {
                Some(page) => part.copy_from_slice(&page[within..within + size]),
                None => part.fill(0),
            }
            done += size;
        }
        count
    }

    /// Returns the number of bytes of a write of `size` at `at` that fit if only `free` bytes may be allocated.
    pub(super) fn fitting(&self, at: u64, size: usize, mut free: u64) -> usize {
        for page in pages_of(at, size as u64) {
            let is_there = self.pages.contains_key(&page) || self.reserved_range(page).is_some();
            if is_there {
                continue;
            }
            if free < PAGE_BYTES {
                let room = (page * PAGE_BYTES).saturating_sub(at);
                return usize::try_from(room).unwrap_or(size).min(size);
            }
            free -= PAGE_BYTES;
        }
        size
    }

    /// Writes at offset `at` and extends the file if needed.
    pub fn write(&mut self, at: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let position = at + done as u64;
            let within = offset_in_page(position);
            let size = (PAGE - within).min(bytes.len() - done);
            let index = position / PAGE_BYTES;
            self.use_up(index);
            let page = self.pages.entry(index).or_insert_with(|| Arc::new([0; PAGE]));
            Arc::make_mut(page)[within..within + size].copy_from_slice(&bytes[done..done + size]);
            done += size;
        }
        self.size = self.size.max(at + bytes.len() as u64);
    }

    /// Truncates the file, or extends it with a hole.
    pub fn set_size(&mut self, size: u64) {
        if size < self.size {
            let keep = size.div_ceil(PAGE_BYTES);
            self.pages.split_off(&keep);
            self.give_up_reserved_from(keep);
            let within = offset_in_page(size);
            if let Some(page) = self.pages.get_mut(&(size / PAGE_BYTES)) {
                Arc::make_mut(page)[within..].fill(0);
            }
        }
        self.size = size;
    }

    /// Reserves the holes of a range; the file's size stays.
    pub(super) fn reserve(&mut self, at: u64, size: u64) {
        for free in self.free_ranges(at, size) {
            self.reserved_pages += free.end - free.start;
            self.reserved.insert(free.start, free.end);
        }
    }

    /// Number of bytes that reserving the range would allocate.
    pub(super) fn cost_of_reserve(&self, at: u64, size: u64) -> u64 {
        self.free_ranges(at, size).iter().map(|free| (free.end - free.start) * PAGE_BYTES).sum()
    }

    /// Returns the offset of the first data at or after `at`; `None` after the last data.
    pub(super) fn next_data(&self, at: u64) -> Option<u64> {
        if at >= self.size {
            return None;
        }
        let (&index, _) = self.pages.range(at / PAGE_BYTES..).next()?;
        Some((index * PAGE_BYTES).max(at)).filter(|&found| found < self.size)
    }

    /// Returns the offset of the first hole at or after `at`; the end counts as one. `None` past the end.
    pub(super) fn next_hole(&self, at: u64) -> Option<u64> {
        if at >= self.size {
            return None;
        }
        let mut index = at / PAGE_BYTES;
        for (&page, _) in self.pages.range(index..) {
            if page != index {
                break;
            }
            index += 1;
        }
        Some((index * PAGE_BYTES).max(at).min(self.size))
    }

    /// Returns the ranges of data, in order.
    #[must_use]
    pub fn data_ranges(&self) -> Vec<Range<u64>> {
        let mut ranges = Vec::new();
        let mut at = 0;
        while let Some(start) = self.next_data(at) {
            let end = self.next_hole(start).unwrap_or(self.size);
            ranges.push(start..end);
            at = end;
        }
        ranges
    }

    fn reserved_range(&self, page: u64) -> Option<Range<u64>> {
        let (&start, &end) = self.reserved.range(..=page).next_back()?;
        (page < end).then_some(start..end)
    }

    /// Turns a reserved page into a page of data.
    fn use_up(&mut self, page: u64) {
        let Some(range) = self.reserved_range(page) else { return };
        self.reserved.remove(&range.start);
        self.reserved_pages -= 1;
        for rest in [range.start..page, page + 1..range.end] {
            if !rest.is_empty() {
                self.reserved.insert(rest.start, rest.end);
            }
        }
    }

    fn give_up_reserved_from(&mut self, page: u64) {
        if let Some(range) = self.reserved_range(page)
            && range.start < page
        {
            self.reserved.insert(range.start, page);
            self.reserved.insert(page, range.end);
        }
        let given_up = self.reserved.split_off(&page);
        self.reserved_pages -= given_up.iter().map(|(start, end)| end - start).sum::<u64>();
    }

    /// Returns the pages of a byte range that are neither data nor reserved.
    fn free_ranges(&self, at: u64, size: u64) -> Vec<Range<u64>> {
        let wanted = pages_of(at, size);
        let data = self.pages.range(wanted.clone()).map(|(&page, _)| page..page + 1);
        let before = self.reserved_range(wanted.start).into_iter();
        let reserved = before.chain(self.reserved.range(wanted.clone()).map(|(&start, &end)| start..end));
        let mut taken: Vec<Range<u64>> = data.chain(reserved).collect();
        taken.sort_by_key(|range| range.start);
        let mut free = Vec::new();
        let mut next = wanted.start;
        for range in taken {
            if range.start > next {
                free.push(next..range.start.min(wanted.end));
            }
            next = next.max(range.end);
        }
        if next < wanted.end {
            free.push(next..wanted.end);
        }
        free
    }
}

impl From<&[u8]> for Sparse {
    fn from(bytes: &[u8]) -> Self {
        let mut content = Self::default();
        content.write(0, bytes);
        content
    }
}

impl PartialEq for Sparse {
    fn eq(&self, other: &Self) -> bool {
        let is_zero = |page: &Page| page.iter().all(|&byte| byte == 0);
        let covers = |one: &Self, other: &Self| {
            one.pages.iter().all(|(index, page)| match other.pages.get(index) {
                Some(same) => same == page,
                None => is_zero(page),
            })
        };
        self.size == other.size && covers(self, other) && covers(other, self)
    }
}

impl Eq for Sparse {}

fn offset_in_page(position: u64) -> usize {
    usize::try_from(position % PAGE_BYTES).unwrap_or_default()
}

fn pages_of(at: u64, size: u64) -> Range<u64> {
    at / PAGE_BYTES..at.saturating_add(size).div_ceil(PAGE_BYTES)
}
