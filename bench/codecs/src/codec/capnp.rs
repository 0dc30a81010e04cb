use capnp::message::{Builder, HeapAllocator, ReaderOptions};
use capnp::{serialize, serialize_packed};

use super::{Codec, Read};
use crate::lidar_capnp::lidar_cloud;
use crate::normal::{Cloud, Info, Point, sum};

/// Cap'n Proto, in its memory layout or packed.
pub(crate) struct Capnp {
    packed: bool,
    buffer: Vec<u8>,
}

impl Capnp {
    pub(crate) fn standard() -> Self {
        Self { packed: false, buffer: Vec::new() }
    }

    pub(crate) fn packed() -> Self {
        Self { packed: true, buffer: Vec::new() }
    }

    fn read<T>(
        &self,
        mut bytes: &[u8],
        use_it: impl FnOnce(lidar_cloud::Reader<'_>) -> capnp::Result<T>,
    ) -> Read<T> {
        if self.packed {
            let message = serialize_packed::read_message(&mut bytes, LIMITS)?;
            return Ok(use_it(message.get_root()?)?);
        }
        let message = serialize::read_message_from_flat_slice(&mut bytes, LIMITS)?;
        Ok(use_it(message.get_root()?)?)
    }
}

impl Codec for Capnp {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        // A single segment, as a user who knows the size would allocate.
        let words = (8 + 2 * cloud.points.len()) as u32;
        let mut message = Builder::new(HeapAllocator::new().first_segment_words(words));
        let mut root = message.init_root::<lidar_cloud::Builder<'_>>();
        let mut info = root.reborrow().init_info();
        info.set_kind(cloud.info.kind);
        info.set_timestamp(cloud.info.timestamp);
        info.set_guid(cloud.info.guid);
        let mut points = root.init_points(cloud.points.len() as u32);
        for (index, point) in cloud.points.iter().enumerate() {
            let mut slot = points.reborrow().get(index as u32);
            slot.set_x(point.position[0]);
            slot.set_y(point.position[1]);
            slot.set_z(point.position[2]);
            slot.set_intensity(point.intensity);
        }
        self.buffer.clear();
        if self.packed {
            serialize_packed::write_message(&mut self.buffer, &message).expect("a vector grows");
        } else {
            serialize::write_message(&mut self.buffer, &message).expect("a vector grows");
        }
        &self.buffer
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        self.read(bytes, |root| {
            let points = root.get_points()?.iter().map(point).collect();
            Ok(Cloud { info: info(root)?, points })
        })
    }

    fn sum(&mut self, bytes: &[u8]) -> Read<f64> {
        self.read(bytes, |root| Ok(sum(info(root)?, root.get_points()?.iter().map(point))))
    }

    fn guid(&mut self, bytes: &[u8]) -> Read<u64> {
        self.read(bytes, |root| Ok(root.get_info()?.get_guid()))
    }

    fn middle_y(&mut self, bytes: &[u8]) -> Read<f32> {
        self.read(bytes, |root| {
            let points = root.get_points()?;
            Ok(if points.is_empty() { 0.0 } else { points.get(points.len() / 2).get_y() })
        })
    }
}

fn info(root: lidar_cloud::Reader<'_>) -> capnp::Result<Info> {
    let info = root.get_info()?;
    Ok(Info { kind: info.get_kind(), timestamp: info.get_timestamp(), guid: info.get_guid() })
}

fn point(point: lidar_cloud::point::Reader<'_>) -> Point {
    let position = [point.get_x(), point.get_y(), point.get_z()];
    Point { position, intensity: point.get_intensity() }
}

const LIMITS: ReaderOptions =
    ReaderOptions { traversal_limit_in_words: Some(8 << 20), nesting_limit: 4 };
