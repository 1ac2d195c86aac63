//! Names of the kernel's functions (/proc/kallsyms).

/// The kernel's functions, by address.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    text: String,
    /// Address, and where the name is in the text.
    functions: Vec<(u64, std::ops::Range<usize>)>,
}

impl Symbols {
    /// As this kernel shows them to this process; none if it hides the addresses.
    pub(super) fn read() -> Self {
        std::fs::read_to_string("/proc/kallsyms").map(Self::parse).unwrap_or_default()
    }

    /// `ffffffff81000000 T _stext`, and a module's name after some.
    pub(super) fn parse(text: String) -> Self {
        let mut functions = Vec::new();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            if address != 0 && matches!(kind, "t" | "T" | "w" | "W") {
                let start = name.as_ptr().addr() - text.as_ptr().addr();
                functions.push((address, start..start + name.len()));
            }
        }
        functions.sort_by_key(|(address, _)| *address);
        Self { text, functions }
    }

    /// Whether nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function that this address is in; the address itself if that is not known.
    pub(super) fn name(&self, address: u64) -> String {
        let after = self.functions.partition_point(|(start, _)| *start <= address);
        match after.checked_sub(1).map(|index| &self.functions[index]) {
            Some((_, name)) => self.text[name.clone()].to_owned(),
            None => format!("{address:#x}"),
        }
    }

    /// Names of a chain's functions, innermost first, as far as the entry into the kernel that they began with: what an
    /// interrupt has interrupted is not part of why it came.
    pub(super) fn chain(&self, addresses: &[u64]) -> Vec<String> {
        let mut chain = Vec::new();
        for (index, address) in addresses.iter().enumerate() {
            // All but the innermost are where a call returns to, which may be behind the function's end.
            let name = self.name(address.saturating_sub(u64::from(index > 0)));
            let is_entry = name.starts_with("asm_") || name.starts_with("entry_SYSCALL");
            chain.push(name);
            if is_entry {
                break;
            }
        }
        chain
    }
}
