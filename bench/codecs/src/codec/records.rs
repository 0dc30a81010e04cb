use super::{Codec, Read, refused};
use crate::normal::{Cloud, Info, Point, sum};

/// Fixed records of 16 bytes after a fixed header: the lower bound, without schema evolution.
///
/// ```text
/// | kind u64 | timestamp u64 | guid u64 | count u64 | points: x y z f32, intensity u8, 3 zero |
/// ```
#[derive(Default)]
pub(crate) struct Records(Vec<u8>);

impl Codec for Records {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        self.0.resize(WHOLE_HEAD + cloud.points.len() * RECORD, 0);
        let (head, points) = self.0.split_at_mut(WHOLE_HEAD);
        head[..HEAD].copy_from_slice(&info_bytes(cloud.info));
        head[HEAD..].copy_from_slice(&(cloud.points.len() as u64).to_le_bytes());
        write_points(&cloud.points, points);
        &self.0
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        let (info, records) = split(bytes)?;
        Ok(Cloud { info, points: read_points(records) })
    }

    fn sum(&mut self, bytes: &[u8]) -> Read<f64> {
        let (info, records) = split(bytes)?;
        Ok(sum(info, records.iter().map(point_from)))
    }

    fn guid(&mut self, bytes: &[u8]) -> Read<u64> {
        Ok(split(bytes)?.0.guid)
    }

    fn middle_y(&mut self, bytes: &[u8]) -> Read<f32> {
        let (_, records) = split(bytes)?;
        Ok(records.get(records.len() / 2).map_or(0.0, |record| point_from(record).position[1]))
    }
}

fn split(bytes: &[u8]) -> Read<(Info, &[[u8; RECORD]])> {
    let (head, rest) = bytes.split_at_checked(WHOLE_HEAD).ok_or_else(|| refused("too short"))?;
    let info = head.first_chunk().ok_or_else(|| refused("too short"))?;
    let count = head.last_chunk().map_or(0, |eight| u64::from_le_bytes(*eight));
    let (records, _) = rest.as_chunks::<RECORD>();
    let records = usize::try_from(count).ok().and_then(|count| records.get(..count));
    Ok((info_from(info), records.ok_or_else(|| refused("fewer points than promised"))?))
}

pub(crate) fn info_bytes(info: Info) -> [u8; HEAD] {
    let mut bytes = [0; HEAD];
    let numbers = [info.kind, info.timestamp, info.guid];
    for (eight, number) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
        *eight = number.to_le_bytes();
    }
    bytes
}

pub(crate) fn info_from(bytes: &[u8; HEAD]) -> Info {
    let (eights, _) = bytes.as_chunks::<8>();
    let [kind, timestamp, guid] = [0, 1, 2].map(|at| u64::from_le_bytes(eights[at]));
    Info { kind, timestamp, guid }
}

pub(crate) fn write_points(points: &[Point], bytes: &mut [u8]) {
    for (record, point) in bytes.as_chunks_mut::<RECORD>().0.iter_mut().zip(points) {
        *record = record_of(point);
    }
}

pub(crate) fn read_points(records: &[[u8; RECORD]]) -> Vec<Point> {
    records.iter().map(point_from).collect()
}

pub(crate) fn record_of(point: &Point) -> [u8; RECORD] {
    // An array's `map` is a call per point if it is not inlined.
    let [x, y, z] = point.position;
    let bits = u128::from(x.to_bits())
        | u128::from(y.to_bits()) << 32
        | u128::from(z.to_bits()) << 64
        | u128::from(point.intensity) << 96;
    bits.to_le_bytes()
}

/// Reads a point on a little-endian machine; all measurements use one.
pub(crate) fn point_from(record: &[u8; RECORD]) -> Point {
    // One move of 16 bytes; the bytes after the intensity are ignored.
    zerocopy::transmute!(*record)
}

/// Bytes of the three numbers of [`Info`].
pub(crate) const HEAD: usize = 24;
/// Bytes of a point's record.
pub(crate) const RECORD: usize = 16;
const WHOLE_HEAD: usize = HEAD + 8;
