//! Names of the kernel's functions (/proc/kallsyms).

use std::collections::HashMap;

/// Names of the kernel's functions that are looked up, by address.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    names: HashMap<u64, String>,
    is_hidden: bool,
}

impl Symbols {
    /// Reads the symbols that the kernel shows to this process; takes some 20 ms.
    pub(super) fn text() -> Vec<u8> {
        std::fs::read("/proc/kallsyms").unwrap_or_default()
    }

    /// Finds the functions of these chains in a text of lines such as `ffffffff81000000 T _stext`, some with a module's
    /// name. The kernel has a hundred times as many, unordered.
    pub(super) fn find(text: &[u8], chains: &[Box<[u64]>]) -> Self {
        let mut wanted: Vec<u64> = chains.iter().flat_map(|chain| called_from(chain)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        // For each address, the nearest function before it and after the previous address.
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

    /// Returns true if the kernel hides all addresses.
    pub(super) fn is_hidden(&self) -> bool {
        self.is_hidden
    }

    /// Name of the function that contains an address, or the address itself.
    fn name(&self, address: u64) -> String {
        self.names.get(&address).cloned().unwrap_or_else(|| format!("{address:#x}"))
    }

    /// Names of a chain's functions, innermost first, up to the entry into the kernel. Code that an interrupt has
    /// interrupted is left out.
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

/// Addresses within a chain's functions. All but the innermost are return addresses, which may lie behind the
/// function's end, so they are reduced by one.
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
