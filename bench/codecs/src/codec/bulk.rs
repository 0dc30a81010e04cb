use super::{Codec, Read, refused};
use crate::codec::records::{
    HEAD as INFO, RECORD, info_bytes, info_from, point_from, read_points, write_points,
};
use crate::normal::{Cloud, Info, sum};

/// CDR of a struct with a sequence of structs, written and read in one block.
///
/// A point's record is padded to 16 bytes in CDR too, so the sequence is contiguous.
/// ```text
/// | 00 01 00 00 | kind u64 | timestamp u64 | guid u64 | count u32 | pad | points, 16 bytes each |
/// ```
#[derive(Default)]
pub(crate) struct Bulk(Vec<u8>);

impl Codec for Bulk {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        self.0.resize(HEAD + cloud.points.len() * RECORD, 0);
        let (head, points) = self.0.split_at_mut(HEAD);
        head[..4].copy_from_slice(&ENCAPSULATION);
        head[4..4 + INFO].copy_from_slice(&info_bytes(cloud.info));
        head[4 + INFO..].copy_from_slice(&(cloud.points.len() as u32).to_le_bytes());
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
    let (head, rest) = bytes.split_at_checked(HEAD).ok_or_else(|| refused("too short"))?;
    if head[..4] != ENCAPSULATION {
        return Err(refused("not little-endian CDR"));
    }
    let info = head[4..].first_chunk().ok_or_else(|| refused("too short"))?;
    let count = head.last_chunk().map_or(0, |four| u32::from_le_bytes(*four)) as usize;
    let (records, _) = rest.as_chunks::<RECORD>();
    let records = records.get(..count).ok_or_else(|| refused("fewer points than promised"))?;
    Ok((info_from(info), records))
}

const ENCAPSULATION: [u8; 4] = [0, 1, 0, 0];
const HEAD: usize = 4 + INFO + 4;
