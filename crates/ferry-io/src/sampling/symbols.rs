//! Names of the kernel's functions (/proc/kallsyms).

use std::collections::HashMap;

/// Names of those of the kernel's functions that are asked for, by the addresses in them.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    names: HashMap<u64, String>,
    is_hidden: bool,
}

impl Symbols {
    /// What the kernel shows of its functions to this process; some 20 ms.
    pub(super) fn text() -> Vec<u8> {
        std::fs::read("/proc/kallsyms").unwrap_or_default()
    }

    /// Finds the functions of these chains in such a text: `ffffffff81000000 T _stext`, and a module's name after some.
    /// The kernel has a hundred times as many, in no order.
    pub(super) fn find(text: &[u8], chains: &[Box<[u64]>]) -> Self {
        let mut wanted: Vec<u64> = chains.iter().flat_map(|chain| called_from(chain)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        // The last function that begins in front of each, but behind the one before it.
        let mut nearest: Vec<Option<(u64, &[u8])>> = vec![None; wanted.len()];
        let mut is_hidden = true;
        for (start, name) in text.split(|byte| *byte == b'\n').filter_map(function) {
            is_hidden = false;
            let first = wanted.partition_point(|address| *address < start);
            if let Some(nearest) = nearest.get_mut(first)
                && nearest.is_none_or(|(known, _)| known <= start)
            {
                *nearest = Some((start, name));
            }
        }
        let mut names = HashMap::new();
        let mut last = None;
        for (address, nearest) in wanted.into_iter().zip(nearest) {
            last = nearest.or(last);
            if let Some((_, name)) = last {
                names.insert(address, String::from_utf8_lossy(name).into_owned());
            }
        }
        Self { names, is_hidden }
    }

    /// Whether the kernel told no function's address.
    pub(super) fn is_hidden(&self) -> bool {
        self.is_hidden
    }

    /// The function that this address is in; the address itself if that is not known.
    fn name(&self, address: u64) -> String {
        self.names.get(&address).cloned().unwrap_or_else(|| format!("{address:#x}"))
    }

    /// Names of a chain's functions, innermost first, as far as the entry into the kernel that they began with: what an
    /// interrupt has interrupted is not part of why it came.
    pub(super) fn chain(&self, addresses: &[u64]) -> Vec<String> {
        let mut chain = Vec::new();
        for address in called_from(addresses) {
            let name = self.name(address);
            let is_entry = name.starts_with("asm_") || name.starts_with("entry_SYSCALL");
            chain.push(name);
            if is_entry {
                break;
            }
        }
        chain
    }
}

/// Addresses within a chain's functions: all but the innermost are where a call returns to, which may be behind the
/// function's end.
fn called_from(chain: &[u64]) -> impl Iterator<Item = u64> {
    chain.iter().enumerate().map(|(index, address)| address.saturating_sub(u64::from(index > 0)))
}

/// A function's address and name.
fn function(line: &[u8]) -> Option<(u64, &[u8])> {
    let mut words = line.split(u8::is_ascii_whitespace);
    let address = words.next()?;
    if !matches!(words.next()?, b"t" | b"T" | b"w" | b"W") {
        return None;
    }
    let address = u64::from_str_radix(str::from_utf8(address).ok()?, 16).ok()?;
    Some((address, words.next()?)).filter(|(address, _)| *address != 0)
}
