//! The codec interface of the harness.

use std::error::Error;

use crate::normal::Cloud;

mod arrow;
mod bulk;
mod capnp;
mod cdr;
mod flat;
#[cfg(foreign)]
mod foreign;
mod foxglove;
mod json;
mod lcm;
pub(crate) mod list;
mod noop;
mod ours;
mod protobuf;
mod quick;
mod records;
mod rkyv;
mod ros;
#[cfg(any(colfer_go, protobuf_java))]
mod runtime;
mod sbe;
mod serde;
mod thrift;

/// Reason why bytes are not a valid message.
pub(crate) type Refused = Box<dyn Error + Send + Sync>;
pub(crate) type Read<T> = Result<T, Refused>;

/// A codec with its own buffers, which are reused from message to message.
///
/// The input may be any bytes, aligned to a multiple of 16.
pub(crate) trait Codec {
    /// Encodes into the codec's preallocated buffer, and returns the complete message.
    fn encode(&mut self, cloud: &Cloud) -> &[u8];
    /// Decodes into a new message in normal form.
    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud>;
    /// Sums every number, by the cheapest method that the codec offers.
    fn sum(&mut self, bytes: &[u8]) -> Read<f64> {
        Ok(self.decode(bytes)?.sum())
    }
    /// Reads the guid, a field of fixed size.
    fn guid(&mut self, bytes: &[u8]) -> Read<u64> {
        Ok(self.decode(bytes)?.info.guid)
    }
    /// Reads y of the middle point; zero if there is none.
    fn middle_y(&mut self, bytes: &[u8]) -> Read<f32> {
        Ok(self.decode(bytes)?.middle_y())
    }
    /// Returns the interface in two steps; `None` if the codec has no structures of its own.
    fn staged(&mut self) -> Option<&mut dyn Staged> {
        None
    }
    /// Returns the seconds per call over `repeats` calls with the last encoded message; `None` for
    /// a codec without its own runtime, which this process times.
    ///
    /// The metric is an index into `measure::METRICS`, followed by `measure::PHASES`.
    fn time_itself(&mut self, _metric: usize, _repeats: u32) -> Option<f64> {
        None
    }
    /// Returns the outcome for any bytes as a letter of `hostile.rs`; `None` for a codec without
    /// its own runtime, which this process judges.
    fn judge_itself(&mut self, _bytes: &[u8]) -> Option<u8> {
        None
    }
}

/// A codec that converts to and from its own structures.
pub(crate) trait Staged {
    /// Converts from normal form to the codec's own structures.
    fn fill(&mut self, cloud: &Cloud);
    /// Writes the filled structures as a message into the codec's own buffer, and returns the
    /// message.
    fn write(&mut self) -> &[u8];
    /// Parses a message into the codec's own structures.
    fn parse(&mut self, bytes: &[u8]) -> Read<()>;
    /// Converts the parsed structures to a new message in normal form.
    fn normal(&self) -> Read<Cloud>;
    /// Returns the sum of every number of the parsed structures.
    fn own_sum(&self) -> f64;
    /// Returns the guid of the parsed structures.
    fn own_guid(&self) -> u64;
    /// Returns y of the middle point of the parsed structures.
    fn own_middle_y(&self) -> f32;
}

impl<T: Staged> Codec for T {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        self.fill(cloud);
        self.write()
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        self.parse(bytes)?;
        self.normal()
    }

    fn sum(&mut self, bytes: &[u8]) -> Read<f64> {
        self.parse(bytes)?;
        Ok(self.own_sum())
    }

    fn guid(&mut self, bytes: &[u8]) -> Read<u64> {
        self.parse(bytes)?;
        Ok(self.own_guid())
    }

    fn middle_y(&mut self, bytes: &[u8]) -> Read<f32> {
        self.parse(bytes)?;
        Ok(self.own_middle_y())
    }

    fn staged(&mut self) -> Option<&mut dyn Staged> {
        Some(self)
    }
}

/// Returns a refusal with a message.
pub(crate) fn refused(words: &'static str) -> Refused {
    words.into()
}
