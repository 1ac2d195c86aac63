//! A trace as what other programs show.

mod html;
mod parts;
mod perfetto;
mod rows;
mod svg;

pub use self::html::html;
pub use self::perfetto::perfetto;
pub use self::svg::svg;
