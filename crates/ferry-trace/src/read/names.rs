//! Meaning of a recording's numbers. The header names operations, routes, reasons and ways, so that another version's
//! recording is understood as long as the names are known.

use ferry_io::event::file::{Broken, Fields};
use ferry_io::{Operation, Reason, Route, Way};

/// The header's lists, mapped to the values of this version.
pub(super) struct Names {
    kinds: Vec<Operation>,
    routes: Vec<Route>,
    reasons: Vec<Reason>,
    ways: Vec<Way>,
}

impl Names {
    pub(super) fn of(header: &Fields) -> Result<Self, Broken> {
        Ok(Self {
            kinds: known(header, "operations", &Operation::ALL, Operation::name)?,
            routes: known(header, "routes", &Route::ALL, Route::name)?,
            reasons: known(header, "reasons", &Reason::ALL, Reason::name)?,
            ways: known(header, "ways", &Way::ALL, Way::name)?,
        })
    }

    pub(super) fn kind(&self, number: u8) -> Option<Operation> {
        self.kinds.get(usize::from(number)).copied()
    }

    pub(super) fn route(&self, number: u8) -> Option<Route> {
        self.routes.get(usize::from(number)).copied()
    }

    pub(super) fn reason(&self, number: u8) -> Option<Reason> {
        self.reasons.get(usize::from(number)).copied()
    }

    pub(super) fn way(&self, number: u8) -> Option<Way> {
        self.ways.get(usize::from(number)).copied()
    }
}

fn known<T: Copy>(
    header: &Fields,
    list: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<Vec<T>, Broken> {
    let find =
        |text: String| all.iter().find(|one| name(**one) == text).copied().ok_or(Broken::Unknown(text));
    header.texts(list).map(find).collect()
}
