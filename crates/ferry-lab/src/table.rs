//! Tables: their text in a terminal, in Markdown, the tables of a record's cells, and the footnote about absent cells.

mod absent;
mod cells;
mod grid;
mod layout;

pub use self::absent::not_measured;
pub(crate) use self::cells::listed;
pub use self::cells::{Columns, of_cells, of_record};
pub use self::grid::{Table, measured};
pub(crate) use self::layout::wrapped;

#[cfg(test)]
mod tests;
