//! Tautline's own H.264 encoder: one strip, one slice a picture, each of the size that is asked for.

mod activity;
mod bits;
mod cavlc;
mod deblock;
mod decide;
mod encoder;
mod headers;
mod intra;
mod joiner;
mod kernel;
mod macroblock;
mod pace;
mod plane;
mod planner;
mod quantize;
mod reference;
mod residual;
mod search;
mod slice;
mod sweep;
mod syntax;
mod vector;

pub use encoder::{Config, StripEncoder};
pub use headers::Shape;
pub use joiner::{Joined, Joiner};
pub use planner::Planner;
pub use sweep::Healing;
