//! The codec interface of the harness, and all codecs.

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

/// Properties of a codec other than speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traits {
    /// True if old readers accept new writers and vice versa, within the format's rules.
    pub(crate) evolves: bool,
    /// True if bytes are validated before use.
    pub(crate) checked: bool,
}

/// A codec of the tables: its name, its traits, and a function that creates it.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) traits: Traits,
    pub(crate) make: fn() -> Box<dyn Codec>,
}

/// Returns every codec of this build, the paper's first.
pub(crate) fn all() -> Vec<Entry> {
    let mut entries = of_the_paper();
    entries.extend(of_today());
    entries.push(entry("no operation", FROZEN, || Box::new(noop::Noop)));
    entries
}

fn of_the_paper() -> Vec<Entry> {
    vec![
        entry("bincode 1.3.3", FROZEN, || Box::new(serde::Bincode::default())),
        entry("capnp packed", EVOLVES, || Box::new(capnp::Capnp::packed())),
        entry("capnp", EVOLVES, || Box::new(capnp::Capnp::standard())),
        #[cfg(colfer)]
        entry("Colfer (C)", FROZEN, || Box::new(foreign::Foreign::new(foreign::colfer_calls()))),
        #[cfg(fastcdr)]
        entry("Fast-CDR (C++)", FROZEN, || {
            Box::new(foreign::Foreign::new(foreign::fastcdr_calls()))
        }),
        entry("FlatBuffers, structs", EVOLVES, || Box::new(flat::Structs::verified())),
        entry("serde_json", EVOLVES, || Box::new(json::Json::default())),
        #[cfg(lcm)]
        entry("LCM (C)", FROZEN, || Box::new(foreign::Foreign::new(foreign::lcm_calls()))),
        entry("prost", EVOLVES, || Box::new(protobuf::Prost::default())),
        entry("quick-protobuf", EVOLVES, || Box::new(quick::Quick::default())),
        // Substitute for the paper's commercial DDS.
        #[cfg(cyclone)]
        entry("Cyclone DDS (C)", FROZEN, || {
            Box::new(foreign::Foreign::new(foreign::cyclone_calls()))
        }),
    ]
}

fn of_today() -> Vec<Entry> {
    vec![
        entry("Tautline", EVOLVES, || Box::new(ours::Ours::default())),
        entry("records", FROZEN, || Box::new(records::Records::default())),
        entry("FlatBuffers, tables", EVOLVES, || Box::new(flat::Tables::default())),
        entry("FlatBuffers, bulk", EVOLVES, || Box::new(flat::Bulk::default())),
        entry("FlatBuffers, unchecked", UNCHECKED, || Box::new(flat::Structs::unchecked())),
        entry("cdr (serde)", FROZEN, || Box::new(cdr::Serde::default())),
        entry("cdr-encoding", FROZEN, || Box::new(cdr::Encoding::default())),
        entry("CDR by hand, bulk", FROZEN, || Box::new(bulk::Bulk::default())),
        entry("ROS 2 PointCloud2", FROZEN, || Box::new(ros::PointCloud2::default())),
        entry("foxglove Protobuf", EVOLVES, || Box::new(foxglove::Protobuf::default())),
        entry("LCM by hand", FROZEN, || Box::new(lcm::Lcm::default())),
        entry("rkyv, bytecheck", FROZEN, || Box::new(rkyv::Rkyv::checked())),
        entry("rkyv, unchecked", Traits { checked: false, ..FROZEN }, || {
            Box::new(rkyv::Rkyv::unchecked())
        }),
        entry("wincode", FROZEN, || Box::new(serde::Wincode::default())),
        entry("postcard", FROZEN, || Box::new(serde::Postcard::default())),
        entry("bitcode", FROZEN, || Box::new(serde::Bitcode::default())),
        entry("Arrow IPC", EVOLVES, || Box::new(arrow::Arrow::default())),
        entry("SBE", EVOLVES, || Box::new(sbe::Sbe::default())),
        entry("Thrift", EVOLVES, || Box::new(thrift::Thrift::default())),
        #[cfg(protobuf)]
        entry("protobuf (C++)", EVOLVES, || {
            Box::new(foreign::Foreign::new(foreign::protobuf_calls()))
        }),
        #[cfg(protobuf_java)]
        entry("protobuf (Java)", EVOLVES, || Box::new(runtime::Runtime::protobuf_java())),
        #[cfg(colfer_go)]
        entry("Colfer (Go)", FROZEN, || Box::new(runtime::Runtime::colfer_go())),
    ]
}

/// Returns the names of the codecs that this build lacks, with the reason for each.
pub(crate) fn skipped() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = [
        ("Colfer (C)", env!("CODEC_COLFER")),
        ("Fast-CDR (C++)", env!("CODEC_FASTCDR")),
        ("LCM (C)", env!("CODEC_LCM")),
        ("Cyclone DDS (C)", env!("CODEC_CYCLONE")),
        ("protobuf (C++)", env!("CODEC_PROTOBUF")),
        ("protobuf (Java)", env!("CODEC_PROTOBUF_JAVA")),
        ("Colfer (Go)", env!("CODEC_COLFER_GO")),
    ];
    all.into_iter().filter(|(_, needs)| !needs.is_empty())
}

const fn entry(name: &'static str, traits: Traits, make: fn() -> Box<dyn Codec>) -> Entry {
    Entry { name, traits, make }
}

const EVOLVES: Traits = Traits { evolves: true, checked: true };
const FROZEN: Traits = Traits { evolves: false, checked: true };
const UNCHECKED: Traits = Traits { evolves: true, checked: false };

/// Returns a refusal with a message.
pub(crate) fn refused(words: &'static str) -> Refused {
    words.into()
}
