//! What a codec is to the harness, and all that take part.

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

/// Why bytes are not a message.
pub(crate) type Refused = Box<dyn Error + Send + Sync>;
pub(crate) type Read<T> = Result<T, Refused>;

/// One codec with buffers of its own, kept from one message to the next.
///
/// What comes in may be any bytes; they start at a multiple of 16 in memory.
pub(crate) trait Codec {
    /// Encodes into the codec's own buffer, which has room, and gives the finished message.
    fn encode(&mut self, cloud: &Cloud) -> &[u8];
    /// Decodes to a new message in normal form.
    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud>;
    /// Reads every number and sums them, by the cheapest way that the codec offers.
    fn sum(&mut self, bytes: &[u8]) -> Read<f64> {
        Ok(self.decode(bytes)?.sum())
    }
    /// Reads the guid, of the part of fixed size.
    fn guid(&mut self, bytes: &[u8]) -> Read<u64> {
        Ok(self.decode(bytes)?.info.guid)
    }
    /// Reads y of the point in the middle; zero where there is none.
    fn middle_y(&mut self, bytes: &[u8]) -> Read<f32> {
        Ok(self.decode(bytes)?.middle_y())
    }
    /// Returns the two steps each way, of a codec that has structures of its own.
    fn staged(&mut self) -> Option<&mut dyn Staged> {
        None
    }
    /// Returns the seconds of a call for the message encoded last, of a codec with a runtime of its
    /// own.
    ///
    /// The metric is an index of `measure::METRICS`, and behind them of `measure::PHASES`.
    fn time_itself(&mut self, _metric: usize, _repeats: u32) -> Option<f64> {
        None
    }
    /// Returns what came of any bytes, as a letter of `hostile.rs`, of a codec with a runtime of
    /// its own.
    fn judge_itself(&mut self, _bytes: &[u8]) -> Option<u8> {
        None
    }
}

/// A codec that goes through structures of its own, either way.
pub(crate) trait Staged {
    /// Converts from normal form to the codec's own structures.
    fn fill(&mut self, cloud: &Cloud);
    /// Writes them as a message in the codec's own buffer.
    fn write(&mut self) -> &[u8];
    /// Reads a message into the codec's own structures.
    fn parse(&mut self, bytes: &[u8]) -> Read<()>;
    /// Converts what was parsed to a new message in normal form.
    fn normal(&self) -> Read<Cloud>;
    /// Returns the sum of what was parsed.
    fn own_sum(&self) -> f64;
    /// Returns the guid of what was parsed.
    fn own_guid(&self) -> u64;
    /// Returns y of the point in the middle of what was parsed.
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

/// What is known of a codec beside its speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traits {
    /// Old readers read new writers and the reverse, within the format's own rules.
    pub(crate) evolves: bool,
    /// Bytes are checked before they are believed.
    pub(crate) checked: bool,
}

/// One line of the tables.
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
        // Stands for the paper's commercial one.
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

/// Codecs that this build lacks, and what each needs.
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

/// Returns a refusal in words.
pub(crate) fn refused(words: &'static str) -> Refused {
    words.into()
}
