use prost::Message;
use prost::bytes::Bytes;

use super::{Codec, Read, refused};
use crate::codec::records::{point_from, read_points, record_of};
use crate::normal::{self, Cloud, sum};

/// foxglove.PointCloud in Protocol Buffers: points in one byte field, described by field
/// descriptors.
///
/// It has no kind and no guid: they are stored in `frame_id`, in hexadecimal.
#[derive(Default)]
pub(crate) struct Protobuf {
    scratch: Vec<u8>,
    buffer: Vec<u8>,
}

impl Codec for Protobuf {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        self.scratch.clear();
        self.scratch.extend(cloud.points.iter().flat_map(record_of));
        let wire = WireCloud {
            timestamp: Some(Time {
                seconds: (cloud.info.timestamp / NANOS) as i64,
                nanos: (cloud.info.timestamp % NANOS) as i32,
            }),
            frame_id: frame_id(cloud.info),
            pose: Some(Pose {
                position: Some(Vector3::default()),
                orientation: Some(Quaternion { w: 1.0, ..Quaternion::default() }),
            }),
            point_stride: 16,
            fields: FIELDS
                .iter()
                .map(|&(name, offset, number)| Field { name: name.to_owned(), offset, number })
                .collect(),
            data: Bytes::from(std::mem::take(&mut self.scratch)),
        };
        self.buffer.clear();
        wire.encode(&mut self.buffer).expect("a vector grows");
        self.scratch = Vec::from(wire.data);
        &self.buffer
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        let wire = read(bytes)?;
        Ok(Cloud { info: wire.info()?, points: read_points(wire.records()) })
    }

    fn sum(&mut self, bytes: &[u8]) -> Read<f64> {
        let wire = read(bytes)?;
        Ok(sum(wire.info()?, wire.records().iter().map(point_from)))
    }

    fn guid(&mut self, bytes: &[u8]) -> Read<u64> {
        Ok(read(bytes)?.info()?.guid)
    }

    fn middle_y(&mut self, bytes: &[u8]) -> Read<f32> {
        let wire = read(bytes)?;
        let records = wire.records();
        Ok(records.get(records.len() / 2).map_or(0.0, |record| point_from(record).position[1]))
    }
}

/// Returns the message if its records have our layout.
fn read(bytes: &[u8]) -> Read<WireCloud> {
    let wire = WireCloud::decode(bytes)?;
    let fields = wire.fields.iter().map(|field| (field.name.as_str(), field.offset, field.number));
    if wire.point_stride != 16 || !fields.eq(FIELDS.iter().copied()) {
        return Err(refused("another layout"));
    }
    Ok(wire)
}

pub(crate) fn frame_id(info: normal::Info) -> String {
    format!("{:016x}{:016x}", info.kind, info.guid)
}

/// Reads kind and guid from a [`frame_id`].
pub(crate) fn parse_frame_id(frame_id: &str) -> Read<(u64, u64)> {
    let (halves, rest) = frame_id.as_bytes().as_chunks::<16>();
    match halves {
        [kind, guid] if rest.is_empty() => Ok((hexadecimal(kind)?, hexadecimal(guid)?)),
        _ => Err(refused("no frame")),
    }
}

fn hexadecimal(digits: &[u8; 16]) -> Read<u64> {
    let (mut number, mut wrong) = (0, 0);
    for digit in digits {
        let value = DIGITS[usize::from(*digit)];
        wrong |= value;
        number = number << 4 | u64::from(value & 15);
    }
    if wrong > 15 { Err(refused("no number")) } else { Ok(number) }
}

#[derive(Clone, PartialEq, Message)]
struct WireCloud {
    #[prost(message, optional, tag = "1")]
    timestamp: Option<Time>,
    #[prost(string, tag = "2")]
    frame_id: String,
    #[prost(message, optional, tag = "3")]
    pose: Option<Pose>,
    #[prost(fixed32, tag = "4")]
    point_stride: u32,
    #[prost(message, repeated, tag = "5")]
    fields: Vec<Field>,
    #[prost(bytes = "bytes", tag = "6")]
    data: Bytes,
}

impl WireCloud {
    fn info(&self) -> Read<normal::Info> {
        let (kind, guid) = parse_frame_id(&self.frame_id)?;
        let time = self.timestamp.ok_or_else(|| refused("no time"))?;
        let timestamp = (time.seconds as u64).wrapping_mul(NANOS).wrapping_add(time.nanos as u64);
        Ok(normal::Info { kind, timestamp, guid })
    }

    fn records(&self) -> &[[u8; 16]] {
        self.data.as_chunks().0
    }
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Time {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Pose {
    #[prost(message, optional, tag = "1")]
    position: Option<Vector3>,
    #[prost(message, optional, tag = "2")]
    orientation: Option<Quaternion>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Vector3 {
    #[prost(double, tag = "1")]
    x: f64,
    #[prost(double, tag = "2")]
    y: f64,
    #[prost(double, tag = "3")]
    z: f64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Quaternion {
    #[prost(double, tag = "1")]
    x: f64,
    #[prost(double, tag = "2")]
    y: f64,
    #[prost(double, tag = "3")]
    z: f64,
    #[prost(double, tag = "4")]
    w: f64,
}

#[derive(Clone, PartialEq, Message)]
struct Field {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(fixed32, tag = "2")]
    offset: u32,
    #[prost(int32, tag = "3")]
    number: i32,
}

/// Name, offset in bytes and number type (7: float32, 1: uint8) of each number of a point.
const FIELDS: [(&str, u32, i32); 4] = [("x", 0, 7), ("y", 4, 7), ("z", 8, 7), ("intensity", 12, 1)];
const NANOS: u64 = 1_000_000_000;

/// Value of each byte as a hexadecimal digit; 16 if it is not one.
const DIGITS: [u8; 256] = {
    let mut digits = [16; 256];
    let mut value = 0;
    while value < 16 {
        digits[b"0123456789abcdef"[value] as usize] = value as u8;
        value += 1;
    }
    digits
};
