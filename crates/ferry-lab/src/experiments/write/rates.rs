//! Rates of the lab's own server: what the option accepts, and the bytes a second on this device.

use crate::error::Failure;
use crate::message::quoted;
use crate::settings::{Settings, bytes};
use crate::units::size;

/// Name of the option.
pub(super) const OPTION: &str = "rates";
/// Name of the settled value: bytes a second that the device writes.
pub(super) const DEVICE_RATE: &str = "device_b_s";
/// Largest percentage of the device's rate.
const MOST_PERCENT: u64 = 10_000;
const UNLIMITED: &str = "unlimited";

/// The rate at which the server sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rate {
    /// As fast as the client receives.
    Unlimited,
    /// A percentage of the device's rate.
    OfDevice(u64),
    /// Bytes a second.
    Bytes(u64),
}

impl Rate {
    /// Parses `0` or `unlimited`, a percentage, or bytes a second.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text == UNLIMITED {
            return Some(Self::Unlimited);
        }
        if let Some(percent) = text.strip_suffix('%') {
            let percent = percent.parse::<u64>().ok().filter(|percent| (1..=MOST_PERCENT).contains(percent));
            return percent.map(Self::OfDevice);
        }
        bytes(text).map(|rate| if rate == 0 { Self::Unlimited } else { Self::Bytes(rate) })
    }

    /// Returns the rates that were asked for, each once.
    ///
    /// # Errors
    /// If the option has another value.
    pub(super) fn all(settings: &Settings) -> Result<Vec<Self>, Failure> {
        let mut rates = Vec::new();
        for text in settings.texts(OPTION) {
            let rate = Self::parse(&text).ok_or_else(|| {
                let allowed = "it must be 0, a percentage such as 50%, or bytes a second";
                let text = quoted(text.as_ref());
                Failure::Misuse(format!("invalid value {text} for '--{OPTION}'; {allowed}"))
            })?;
            if !rates.contains(&rate) {
                rates.push(rate);
            }
        }
        Ok(rates)
    }

    /// Returns the name in cells, which [`Self::parse`] understands: `unlimited`, `50%`, `62M`.
    pub(super) fn name(self) -> String {
        match self {
            Self::Unlimited => UNLIMITED.to_owned(),
            Self::OfDevice(percent) => format!("{percent}%"),
            Self::Bytes(rate) => size(rate),
        }
    }

    /// Describes it: `at 50 % of the device's rate`.
    pub(super) fn words(self) -> String {
        match self {
            Self::Unlimited => "at an unlimited rate".to_owned(),
            Self::OfDevice(percent) => format!("at {percent} % of the device's rate"),
            Self::Bytes(rate) => format!("at {} bytes a second", size(rate)),
        }
    }

    /// Returns the bytes a second; 0 means without a limit.
    pub(super) fn bytes_per_second(self, device: u64) -> u64 {
        match self {
            Self::Unlimited => 0,
            Self::OfDevice(percent) => (device / 100).saturating_mul(percent).max(1),
            Self::Bytes(rate) => rate,
        }
    }
}
