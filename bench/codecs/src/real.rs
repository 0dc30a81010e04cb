//! Recordings: lidar scans and CAN bus frames.

use std::fs;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use flatbuffers::FlatBufferBuilder;
use prost::Message;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::lidar_generated::lidar as wire;
use crate::normal::{Cloud, Info, Point};

/// File names of decoded scans of three Ouster lidars.
pub(crate) const SCANS: [&str; 3] = [
    "OS-1-32-G_v2.1.1_1024x10.scan0.bin",
    "OS-1-128_v2.3.0_1024x10_lb_n3.scan0.bin",
    "OS-2-128-U1_v2.3.0_1024x10.scan0.bin",
];
/// File name of one minute of a car's CAN bus.
pub(crate) const CAN: &str = "comma2k19_rav4.candump.log.gz";

/// Returns the scan in this file: x, y, z and intensity per point, four bytes each. `None` if the
/// file does not exist.
pub(crate) fn scan(path: &Path) -> Result<Option<Cloud>> {
    if !path.exists() {
        return Ok(None);
    }
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (records, rest) = bytes.as_chunks::<16>();
    ensure!(rest.is_empty(), "{} is no whole number of points", path.display());
    let points = records.iter().map(|record| {
        let (fours, _) = record.as_chunks::<4>();
        let [x, y, z, intensity] = [0, 1, 2, 3].map(|at| f32::from_le_bytes(fours[at]));
        Point { position: [x, y, z], intensity: intensity.clamp(0.0, 255.0) as u8 }
    });
    let info = Info { kind: 7, timestamp: 1_542_848_736_123_456_789, guid: 0x5EED_0123_4567_89AB };
    Ok(Some(Cloud { info, points: points.collect() }))
}

/// One frame of a CAN bus.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Debug,
    Serialize,
    Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
    wincode::SchemaWrite,
    wincode::SchemaRead,
    bitcode::Encode,
    bitcode::Decode,
)]
pub(crate) struct Frame {
    /// Microseconds of Unix time.
    time: u64,
    id: u32,
    data: [u8; 8],
}

/// Returns the frames of this log, `(seconds) bus id#data`, or `None` if it does not exist.
pub(crate) fn can(path: &Path) -> Result<Option<Vec<Frame>>> {
    if !path.exists() {
        return Ok(None);
    }
    let mut text = String::new();
    flate2::read::GzDecoder::new(fs::File::open(path)?).read_to_string(&mut text)?;
    text.lines().map(frame).collect::<Result<_>>().map(Some)
}

fn frame(line: &str) -> Result<Frame> {
    let mut words = line.split_ascii_whitespace();
    let (time, _bus, rest) = (words.next(), words.next(), words.next());
    let seconds = time.context("no time")?.trim_matches(['(', ')']);
    let (whole, part) = seconds.split_once('.').context("no fraction")?;
    let time = whole.parse::<u64>()? * 1_000_000 + part.get(..6).unwrap_or(part).parse::<u64>()?;
    let (id, digits) = rest.context("no frame")?.split_once('#').context("no data")?;
    let mut data = [0; 8];
    for (byte, at) in data.iter_mut().zip((0..digits.len()).step_by(2)) {
        *byte = u8::from_str_radix(digits.get(at..at + 2).context("half a byte")?, 16)?;
    }
    Ok(Frame { time, id: u32::from_str_radix(id, 16)?, data })
}

/// Returns for some codecs the name, the mean bytes of a frame, and the minimum seconds to encode
/// and to decode one.
pub(crate) fn time_frames(
    frames: &[Frame],
    rounds: usize,
) -> Result<Vec<(&'static str, f64, f64, f64)>> {
    let mut buffer = Vec::new();
    let mut aligned = rkyv::util::AlignedVec::<16>::new();
    let mut builder = FlatBufferBuilder::new();
    let mut bits = (bitcode::Buffer::new(), bitcode::Buffer::new());
    Ok(vec![
        time(
            "bincode 1.3.3",
            frames,
            rounds,
            |f, out| {
                bincode::serialize_into(out, f).expect("a vector grows");
            },
            |bytes| Ok(bincode::deserialize(bytes)?),
        )?,
        time(
            "postcard",
            frames,
            rounds,
            |f, out| {
                *out = postcard::to_extend(f, std::mem::take(out)).expect("a vector grows");
            },
            |bytes| Ok(postcard::from_bytes(bytes)?),
        )?,
        time(
            "wincode",
            frames,
            rounds,
            |f, out| {
                wincode::serialize_into(out, f).expect("a vector grows");
            },
            |bytes| Ok(wincode::deserialize(bytes)?),
        )?,
        time(
            "bitcode",
            frames,
            rounds,
            |f, out| out.extend(bits.0.encode(f)),
            |bytes| Ok(bits.1.decode(bytes)?),
        )?,
        time(
            "serde_json",
            frames,
            rounds,
            |f, out| {
                serde_json::to_writer(out, f).expect("a vector grows");
            },
            |bytes| Ok(serde_json::from_slice(bytes)?),
        )?,
        time(
            "prost",
            frames,
            rounds,
            |f, out| {
                buffer.clear();
                buffer.extend(f.data);
                let message =
                    WireFrame { time: f.time, id: f.id, data: std::mem::take(&mut buffer) };
                message.encode(out).expect("a vector grows");
                buffer = message.data;
            },
            |bytes| {
                let WireFrame { time, id, data } = WireFrame::decode(bytes)?;
                Ok(Frame { time, id, data: data.as_slice().try_into()? })
            },
        )?,
        time(
            "rkyv, bytecheck",
            frames,
            rounds,
            |f, out| {
                aligned.clear();
                let written = rkyv::api::high::to_bytes_in::<_, rkyv::rancor::Error>(
                    f,
                    std::mem::take(&mut aligned),
                );
                aligned = written.expect("a vector grows");
                out.extend_from_slice(&aligned);
            },
            |bytes| {
                let frame = rkyv::access::<ArchivedFrame, rkyv::rancor::Error>(bytes)?;
                Ok(rkyv::deserialize::<Frame, rkyv::rancor::Error>(frame)?)
            },
        )?,
        time(
            "FlatBuffers, struct",
            frames,
            rounds,
            |f, out| {
                builder.reset();
                let frame = wire::Frame::new(f.time, f.id, &f.data);
                let arguments = wire::FrameMessageArgs { frame: Some(&frame) };
                let root = wire::FrameMessage::create(&mut builder, &arguments);
                builder.finish(root, None);
                out.extend_from_slice(builder.finished_data());
            },
            |bytes| {
                let message = flatbuffers::root::<wire::FrameMessage<'_>>(bytes)?;
                let frame = message.frame().context("no frame")?;
                Ok(Frame { time: frame.time(), id: frame.id(), data: frame.data().into() })
            },
        )?,
    ])
}

fn time(
    name: &'static str,
    frames: &[Frame],
    rounds: usize,
    mut encode: impl FnMut(&Frame, &mut Vec<u8>),
    mut decode: impl FnMut(&[u8]) -> Result<Frame>,
) -> Result<(&'static str, f64, f64, f64)> {
    let mut outs: Vec<Vec<u8>> = (0..PART).map(|_| Vec::with_capacity(128)).collect();
    let (mut best_encode, mut best_decode, mut bytes) = (f64::MAX, f64::MAX, 0);
    // All of them are checked once; the rounds time only as many as fit the caches.
    for part in frames.chunks(PART).chain(frames.chunks(PART).take(1).cycle().take(rounds)) {
        outs.iter_mut().for_each(Vec::clear);
        let started = clock::now();
        for (frame, out) in part.iter().zip(&mut outs) {
            encode(black_box(frame), out);
        }
        let per_frame =
            |started: std::time::Instant| started.elapsed().as_secs_f64() / part.len() as f64;
        best_encode = best_encode.min(per_frame(started));
        let started = clock::now();
        for out in &outs[..part.len()] {
            let _ = black_box(decode(black_box(out)));
        }
        best_decode = best_decode.min(per_frame(started));
        for (frame, out) in part.iter().zip(&outs) {
            ensure!(decode(out)? == *frame, "{name}: another frame comes back");
        }
        bytes = outs[..part.len()].iter().map(Vec::len).sum::<usize>() / part.len().max(1);
    }
    Ok((name, bytes as f64, best_encode, best_decode))
}

#[derive(Clone, PartialEq, Message)]
struct WireFrame {
    #[prost(uint64, tag = "1")]
    time: u64,
    #[prost(uint32, tag = "2")]
    id: u32,
    #[prost(bytes = "vec", tag = "3")]
    data: Vec<u8>,
}

/// Number of frames that are timed together.
const PART: usize = 1000;
