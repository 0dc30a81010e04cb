use super::{Codec, Read, refused};
use crate::codec::foxglove::{frame_id, parse_frame_id};
use crate::codec::records::{point_from, read_points, write_points};
use crate::normal::{Cloud, Info, sum};

/// sensor_msgs/PointCloud2 in CDR (XCDR1, little-endian), its data in one block.
///
/// It has no kind and no guid: they are stored in `frame_id`, in hexadecimal.
#[derive(Default)]
pub(crate) struct PointCloud2(Vec<u8>);

impl Codec for PointCloud2 {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        let count = cloud.points.len() as u32;
        // For messages of equal size the buffer keeps its length, so nothing is cleared.
        let mut writer = Writer { bytes: std::mem::take(&mut self.0), at: 0 };
        writer.bytes.resize(HEAD_MAX + 16 * cloud.points.len(), 0);
        writer.raw(&ENCAPSULATION);
        writer.u32((cloud.info.timestamp / NANOS) as u32);
        writer.u32((cloud.info.timestamp % NANOS) as u32);
        writer.string(&frame_id(cloud.info));
        writer.u32(1);
        writer.u32(count);
        writer.u32(FIELDS.len() as u32);
        for (name, offset, datatype) in FIELDS {
            writer.string(name);
            writer.u32(offset);
            writer.raw(&[datatype]);
            writer.u32(1);
        }
        writer.raw(&[0]);
        writer.u32(16);
        writer.u32(16 * count);
        writer.u32(16 * count);
        let data = writer.at..writer.at + 16 * cloud.points.len();
        write_points(&cloud.points, &mut writer.bytes[data.clone()]);
        writer.at = data.end;
        writer.raw(&[1]);
        let Writer { mut bytes, at } = writer;
        bytes.truncate(at);
        self.0 = bytes;
        &self.0
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        let (info, records) = read(bytes)?;
        Ok(Cloud { info, points: read_points(records) })
    }

    fn sum(&mut self, bytes: &[u8]) -> Read<f64> {
        let (info, records) = read(bytes)?;
        Ok(sum(info, records.iter().map(point_from)))
    }

    fn guid(&mut self, bytes: &[u8]) -> Read<u64> {
        Ok(read(bytes)?.0.guid)
    }

    fn middle_y(&mut self, bytes: &[u8]) -> Read<f32> {
        let (_, records) = read(bytes)?;
        Ok(records.get(records.len() / 2).map_or(0.0, |record| point_from(record).position[1]))
    }
}

fn read(bytes: &[u8]) -> Read<(Info, &[[u8; 16]])> {
    let mut reader = Reader { bytes, at: 0 };
    if reader.raw(4)? != ENCAPSULATION {
        return Err(refused("not little-endian CDR"));
    }
    let (seconds, nanos) = (reader.u32()?, reader.u32()?);
    let (kind, guid) = parse_frame_id(reader.string()?)?;
    let (_height, _width, fields) = (reader.u32()?, reader.u32()?, reader.u32()?);
    if fields as usize != FIELDS.len() {
        return Err(refused("another layout"));
    }
    for (name, offset, datatype) in FIELDS {
        let same = reader.string()? == name && reader.u32()? == offset;
        if !(same && reader.raw(1)? == [datatype] && reader.u32()? == 1) {
            return Err(refused("another layout"));
        }
    }
    let _big_endian = reader.raw(1)?;
    let (_step, _row, length) = (reader.u32()?, reader.u32()?, reader.u32()?);
    let data = reader.raw(length as usize)?;
    let timestamp = u64::from(seconds) * NANOS + u64::from(nanos);
    Ok((Info { kind, timestamp, guid }, data.as_chunks().0))
}

struct Writer {
    bytes: Vec<u8>,
    at: usize,
}

impl Writer {
    fn raw(&mut self, bytes: &[u8]) {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    fn u32(&mut self, number: u32) {
        // Alignment is relative to the end of the encapsulation, which itself has 4 bytes.
        while !self.at.is_multiple_of(4) {
            self.raw(&[0]);
        }
        self.raw(&number.to_le_bytes());
    }

    fn string(&mut self, string: &str) {
        self.u32(string.len() as u32 + 1);
        self.raw(string.as_bytes());
        self.raw(&[0]);
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn raw(&mut self, length: usize) -> Read<&'a [u8]> {
        let bytes = self.bytes.get(self.at..).and_then(|rest| rest.get(..length));
        self.at += length;
        bytes.ok_or_else(|| refused("too short"))
    }

    fn u32(&mut self) -> Read<u32> {
        self.at = self.at.next_multiple_of(4);
        let four = self.raw(4)?.first_chunk().ok_or_else(|| refused("too short"))?;
        Ok(u32::from_le_bytes(*four))
    }

    fn string(&mut self) -> Read<&'a str> {
        let length = self.u32()? as usize;
        let bytes = self.raw(length)?.split_last().ok_or_else(|| refused("no string"))?.1;
        Ok(std::str::from_utf8(bytes)?)
    }
}

/// Name, offset in bytes and datatype (7: FLOAT32, 2: UINT8) of each number of a point.
const FIELDS: [(&str, u32, u8); 4] = [("x", 0, 7), ("y", 4, 7), ("z", 8, 7), ("intensity", 12, 2)];
const ENCAPSULATION: [u8; 4] = [0, 1, 0, 0];
const NANOS: u64 = 1_000_000_000;
/// Maximum bytes of everything but the data.
const HEAD_MAX: usize = 256;
