//! What a codec is to the harness, and all that take part.

use std::error::Error;

use crate::normal::Cloud;

mod arrow;
mod bulk;
mod capnp;
mod cdr;
mod flat;
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
    /// Its name in the paper's Table 1.
    pub(crate) published: Option<&'static str>,
    pub(crate) traits: Traits,
    pub(crate) make: fn() -> Box<dyn Codec>,
}

/// Every codec of this build, the paper's first.
pub(crate) fn all() -> Vec<Entry> {
    vec![
        entry("bincode 1.3.3", Some("Bincode"), FROZEN, || Box::new(serde::Bincode::default())),
        entry(
            "capnp packed",
            Some("CapnprotoPacked"),
            EVOLVES,
            || Box::new(capnp::Capnp::packed()),
        ),
        entry("capnp", Some("CapnprotoStandard"), EVOLVES, || Box::new(capnp::Capnp::standard())),
        entry("FlatBuffers, structs", Some("FlatBuffers"), EVOLVES, || {
            Box::new(flat::Structs::verified())
        }),
        entry("serde_json", Some("Json"), EVOLVES, || Box::new(json::Json::default())),
        entry("LCM's wire", Some("Lcm"), FROZEN, || Box::new(lcm::Lcm::default())),
        entry("prost", Some("ProstProtobuf"), EVOLVES, || Box::new(protobuf::Prost::default())),
        entry("quick-protobuf", Some("QuickProtobuf"), EVOLVES, || {
            Box::new(quick::Quick::default())
        }),
        entry("Tautline", None, EVOLVES, || Box::new(ours::Ours::default())),
        entry("records", None, FROZEN, || Box::new(records::Records::default())),
        entry("FlatBuffers, tables", None, EVOLVES, || Box::new(flat::Tables::default())),
        entry("FlatBuffers, bulk", None, EVOLVES, || Box::new(flat::Bulk::default())),
        entry("FlatBuffers, unchecked", None, UNCHECKED, || Box::new(flat::Structs::unchecked())),
        entry("cdr (serde)", None, FROZEN, || Box::new(cdr::Serde::default())),
        entry("cdr-encoding", None, FROZEN, || Box::new(cdr::Encoding::default())),
        entry("CDR by hand, bulk", None, FROZEN, || Box::new(bulk::Bulk::default())),
        entry("ROS 2 PointCloud2", None, FROZEN, || Box::new(ros::PointCloud2::default())),
        entry("foxglove Protobuf", None, EVOLVES, || Box::new(foxglove::Protobuf::default())),
        entry("rkyv, bytecheck", None, FROZEN, || Box::new(rkyv::Rkyv::checked())),
        entry("rkyv, unchecked", None, Traits { checked: false, ..FROZEN }, || {
            Box::new(rkyv::Rkyv::unchecked())
        }),
        entry("wincode", None, FROZEN, || Box::new(serde::Wincode::default())),
        entry("postcard", None, FROZEN, || Box::new(serde::Postcard::default())),
        entry("bitcode", None, FROZEN, || Box::new(serde::Bitcode::default())),
        entry("Arrow IPC", None, EVOLVES, || Box::new(arrow::Arrow::default())),
        entry("SBE", None, EVOLVES, || Box::new(sbe::Sbe::default())),
        entry("Thrift", None, EVOLVES, || Box::new(thrift::Thrift::default())),
        entry("no operation", None, FROZEN, || Box::new(noop::Noop)),
    ]
}

const fn entry(
    name: &'static str,
    published: Option<&'static str>,
    traits: Traits,
    make: fn() -> Box<dyn Codec>,
) -> Entry {
    Entry { name, published, traits, make }
}

const EVOLVES: Traits = Traits { evolves: true, checked: true };
const FROZEN: Traits = Traits { evolves: false, checked: true };
const UNCHECKED: Traits = Traits { evolves: true, checked: false };

/// A refusal in words.
pub(crate) fn refused(words: &'static str) -> Refused {
    words.into()
}
