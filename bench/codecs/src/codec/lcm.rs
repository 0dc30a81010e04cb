use super::{Codec, Read, refused};
use crate::normal::{Cloud, Info, Point, sum};

/// LCM's wire format, implemented by hand: big-endian, packed, after a fingerprint of the type.
///
/// ```text
/// | fingerprint u64 | kind i64 | timestamp i64 | guid i64 | count i32 | points, 13 bytes each |
/// ```
#[derive(Default)]
pub(crate) struct Lcm(Vec<u8>);

impl Codec for Lcm {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        self.0.resize(HEAD + cloud.points.len() * POINT, 0);
        let (head, points) = self.0.split_at_mut(HEAD);
        let Info { kind, timestamp, guid } = cloud.info;
        let numbers = [FINGERPRINT, kind, timestamp, guid];
        for (eight, number) in head.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
            *eight = number.to_be_bytes();
        }
        head[32..].copy_from_slice(&(cloud.points.len() as u32).to_be_bytes());
        for (bytes, point) in points.as_chunks_mut::<POINT>().0.iter_mut().zip(&cloud.points) {
            let (floats, intensity) = bytes.split_at_mut(12);
            for (four, number) in floats.as_chunks_mut::<4>().0.iter_mut().zip(point.position) {
                *four = number.to_be_bytes();
            }
            intensity[0] = point.intensity;
        }
        &self.0
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        let (info, points) = split(bytes)?;
        Ok(Cloud { info, points: points.iter().map(point).collect() })
    }

    fn sum(&mut self, bytes: &[u8]) -> Read<f64> {
        let (info, points) = split(bytes)?;
        Ok(sum(info, points.iter().map(point)))
    }

    fn guid(&mut self, bytes: &[u8]) -> Read<u64> {
        Ok(split(bytes)?.0.guid)
    }

    fn middle_y(&mut self, bytes: &[u8]) -> Read<f32> {
        let (_, points) = split(bytes)?;
        Ok(points.get(points.len() / 2).map_or(0.0, |bytes| point(bytes).position[1]))
    }
}

fn split(bytes: &[u8]) -> Read<(Info, &[[u8; POINT]])> {
    let (head, rest) = bytes.split_at_checked(HEAD).ok_or_else(|| refused("too short"))?;
    let (eights, count) = head.as_chunks::<8>();
    let [fingerprint, kind, timestamp, guid] =
        [0, 1, 2, 3].map(|at| u64::from_be_bytes(eights[at]));
    let count = u32::from_be_bytes([count[0], count[1], count[2], count[3]]) as usize;
    let (points, _) = rest.as_chunks::<POINT>();
    if fingerprint != FINGERPRINT {
        return Err(refused("another type"));
    }
    let points = points.get(..count).ok_or_else(|| refused("fewer points than promised"))?;
    Ok((Info { kind, timestamp, guid }, points))
}

fn point(bytes: &[u8; POINT]) -> Point {
    let (fours, intensity) = bytes.as_chunks::<4>();
    let position = [0, 1, 2].map(|at| f32::from_be_bytes(fours[at]));
    Point { position, intensity: intensity[0] }
}

const HEAD: usize = 36;
const POINT: usize = 13;
/// Fingerprint of the type. LCM derives it from the field names; this one is invented, which costs
/// the same.
const FINGERPRINT: u64 = 0x5A17_0C1D_A27A_0001;
