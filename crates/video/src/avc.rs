//! Tautline's own H.264 encoder: it codes one strip, as one slice per picture, to a requested size.

mod activity;
mod bits;
mod border4;
mod cavlc;
mod deblock;
mod decide;
mod encoder;
mod headers;
mod intra;
mod intra_refresh;
mod joiner;
mod kernel;
mod loss_cost;
mod loss_recovery;
mod macroblock;
mod plane;
mod planner;
mod quantize;
mod rate_control;
mod reference;
mod residual;
mod search;
mod slice;
mod syntax;
mod vector;

pub use encoder::{Config, StripEncoder};
pub use headers::Shape;
pub use joiner::{Joined, Joiner};
pub use loss_cost::LossCost;
pub use loss_recovery::LossRecovery;
pub use planner::Planner;
