//! Tables: their text in a terminal, in Markdown, and the tables of a record's cells.

mod cells;
mod grid;
mod layout;

pub(crate) use self::cells::listed;
pub use self::cells::{Columns, not_measured, of_cells, of_record};
pub use self::grid::{Table, measured};
pub(crate) use self::layout::wrapped;

#[cfg(test)]
mod tests;
