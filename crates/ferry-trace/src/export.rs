//! A trace as what other programs show.

mod html;
mod parts;
mod perfetto;
mod rows;

pub use self::html::html;
pub use self::perfetto::perfetto;
