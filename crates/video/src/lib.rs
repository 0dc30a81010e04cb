//! Slices, encoders, decoders and quality. Knows no network.

mod error;
mod picture;

pub use error::Error;
pub use picture::Picture;
