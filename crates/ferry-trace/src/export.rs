//! Traces in formats for other programs.

mod html;
mod parts;
mod perfetto;
mod rows;
mod svg;
mod xml;

pub use self::html::html;
pub use self::perfetto::perfetto;
pub use self::svg::svg;
pub use self::xml::escaped;
