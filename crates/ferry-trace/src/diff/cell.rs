//! Cells: the groups of operations whose mean times are compared.

use ferry_io::{Operation as Kind, Reason, Route};

use crate::model::Operation;

/// Operations of one kind on one route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) kind: Kind,
    pub(super) route: Route,
    /// Set for operations that have this route because data was not in memory.
    pub(super) is_cold: bool,
}

/// Number of cells of one kind.
pub(super) const OF_KIND: usize = 2 * Route::ALL.len();
/// Number of all cells.
pub(super) const CELLS: usize = Kind::ALL.len() * OF_KIND;

impl Cell {
    pub(super) fn of(operation: &Operation) -> Self {
        let is_cold = matches!(operation.reason, Reason::Missed | Reason::WithFolder | Reason::RecentlySlow);
        Self { kind: operation.kind, route: operation.route, is_cold }
    }

    /// All cells of a kind.
    pub(super) fn of_kind(kind: Kind) -> [Self; OF_KIND] {
        std::array::from_fn(|index| {
            let route = Route::ALL[index / 2];
            Self { kind, route, is_cold: index % 2 == 1 }
        })
    }

    pub(super) fn index(self) -> usize {
        self.kind as usize * OF_KIND + self.route as usize * 2 + usize::from(self.is_cold)
    }
}
