//! All codecs of this build, and those that it lacks.

#[cfg(foreign)]
use super::foreign;
#[cfg(any(colfer_go, protobuf_java))]
use super::runtime;
use super::{
    Codec, arrow, bulk, capnp, cdr, flat, foxglove, json, lcm, noop, ours, protobuf, quick,
    records, rkyv, ros, sbe, serde, thrift,
};

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
