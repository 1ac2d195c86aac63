//! A trace as what other programs show.

mod parts;
mod perfetto;
mod rows;

pub use self::perfetto::perfetto;
