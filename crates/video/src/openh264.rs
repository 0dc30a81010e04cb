//! The openh264 backend: encoder and decoder of Cisco's library, built from its bundled source.

mod decoder;
mod encoder;
mod native;

pub use decoder::StripDecoder;
pub use encoder::{RateControlled, StripEncoder};
