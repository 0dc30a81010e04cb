//! Slices of video, their encoders and decoders, and sources of pictures; independent of the
//! network.
//!
//! A picture is cut into six [strips](Layout). Each strip is an H.264 stream with an [`Encoder`]
//! and a [`Decoder`] of its own: it is encoded as soon as its rows are read and shown as soon as it
//! arrives. One coded picture of one strip is a [`Slice`]. At the receiver, a [`Concealer`] per
//! strip replaces each lost slice by a skip slice.

mod access_unit;
pub mod avc;
mod backend;
#[cfg(feature = "openh264")]
pub mod budgeted;
mod conceal;
mod decode;
mod digest;
mod encode;
mod enlargement;
mod error;
mod h264;
pub mod jpeg;
mod layout;
#[cfg(feature = "libavcodec")]
pub mod libavcodec;
mod motion;
#[cfg(feature = "openh264")]
pub mod openh264;
mod picture;
pub mod pixels;
#[cfg(feature = "openh264")]
mod quantizer;
mod reduction;
mod sensor;
mod slice;
pub mod stamp;
pub mod v4l2;

pub use access_unit::AccessUnit;
pub use backend::{Backend, External, Factory};
pub use conceal::{Concealer, ParsedAccessUnit};
pub use decode::Decoder;
pub use digest::Digest;
pub use encode::{Encoded, Encoder, QuantizerEncoder, Quantizers, Refresh, Rows};
pub use enlargement::Enlargement;
pub use error::Error;
pub use layout::Layout;
pub use motion::{Flow, Motion};
pub use picture::Picture;
pub use reduction::Reduction;
pub use sensor::{Losses, Origin, Sensor};
pub use slice::{Slice, SliceKind};
