//! Theory of the streaming code: what one repair packet per interval achieves and costs.
//!
//! Source: \[STREAM\], sections III.B to III.D. Some of its formulas are wrong or lost terms in
//! print. Every function here returns the corrected value and says where the paper differs; those
//! that end in `_printed` return the paper's value.
//!
//! # The model
//! A slot is the time of one packet. In every interval of `l` slots, `l - 1` source packets are
//! followed by one repair packet that combines all source packets the receiver lacks. Each packet
//! is erased independently with probability `e`. Every repair packet that arrives while something
//! is missing recovers one missing packet, as in a large field ([`innovative_probability`] shows
//! how close GF(256) comes). With `z = l e < 1` the backlog of missing packets returns to zero.
//!
//! ```
//! use tautline_fec::theory::{Stream, Target, largest_interval};
//!
//! // One repair packet after every four source packets, where one packet in ten is lost.
//! let stream = Stream::new(5, 0.1)?;
//! assert!((stream.delay().mean() - 2.604).abs() < 0.001); // slots
//! assert_eq!(stream.delay().percentile(0.99)?, 36); // slots
//!
//! // The least overhead that holds the mean delay to one slot.
//! let planned = largest_interval(0.1, Target::Mean { slots: 1.0 }, 255)?;
//! assert_eq!(planned.interval(), 3);
//! # Ok::<(), tautline_fec::theory::Error>(())
//! ```

mod binomial;
mod busy;
mod complexity;
mod delay;
mod error;
mod gaussian;
mod innovation;
mod order;
mod plan;
mod stream;
mod throughput;

// Too slow under an interpreter (hours), and the code has no unsafe blocks.
#[cfg(test)]
#[cfg(not(miri))]
mod simulation;
#[cfg(test)]
#[cfg(not(miri))]
mod tests;

pub use busy::BusyTime;
pub use delay::{Delay, PERCENTILE_MAX};
pub use error::Error;
pub use gaussian::Gaussian;
pub use innovation::innovative_probability;
pub use order::OrderStatistic;
pub use plan::{Target, largest_interval};
pub use stream::Stream;

impl Stream {
    /// Returns the distribution of the busy time, in intervals.
    pub fn busy_time(&self) -> BusyTime {
        BusyTime::new(*self)
    }

    /// Returns the distribution of a source packet's in-order delay, in slots.
    pub fn delay(&self) -> Delay {
        Delay::new(*self)
    }
}
