use rkyv::rancor::Error;
use rkyv::util::AlignedVec;

use super::{Codec, Read};
use crate::normal::{ArchivedCloud, Cloud, Info, Point, sum};

/// rkyv: the message is the archived struct itself, with or without validation.
pub(crate) struct Rkyv {
    checked: bool,
    buffer: AlignedVec,
}

impl Rkyv {
    pub(crate) fn checked() -> Self {
        Self { checked: true, buffer: AlignedVec::new() }
    }

    pub(crate) fn unchecked() -> Self {
        Self { checked: false, ..Self::checked() }
    }

    #[expect(unsafe_code, reason = "what goes wrong without the check is to be shown")]
    fn access<'a>(&self, bytes: &'a [u8]) -> Read<&'a ArchivedCloud> {
        if self.checked {
            return Ok(rkyv::access::<ArchivedCloud, Error>(bytes)?);
        }
        // SAFETY: holds only for our own messages; hostile ones are read in a separate process.
        Ok(unsafe { rkyv::access_unchecked::<ArchivedCloud>(bytes) })
    }
}

impl Codec for Rkyv {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        self.buffer =
            rkyv::api::high::to_bytes_in::<_, Error>(cloud, buffer).expect("a vector grows");
        &self.buffer
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        Ok(rkyv::deserialize::<Cloud, Error>(self.access(bytes)?)?)
    }

    fn sum(&mut self, bytes: &[u8]) -> Read<f64> {
        let cloud = self.access(bytes)?;
        let info = Info {
            kind: cloud.info.kind.to_native(),
            timestamp: cloud.info.timestamp.to_native(),
            guid: cloud.info.guid.to_native(),
        };
        let points = cloud.points.iter().map(|point| Point {
            position: [0, 1, 2].map(|at| point.position[at].to_native()),
            intensity: point.intensity,
        });
        Ok(sum(info, points))
    }

    fn guid(&mut self, bytes: &[u8]) -> Read<u64> {
        Ok(self.access(bytes)?.info.guid.to_native())
    }

    fn middle_y(&mut self, bytes: &[u8]) -> Read<f32> {
        let points = &self.access(bytes)?.points;
        Ok(points.get(points.len() / 2).map_or(0.0, |point| point.position[1].to_native()))
    }
}
