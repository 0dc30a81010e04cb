use quick_protobuf::{BytesReader, MessageRead, MessageWrite, Writer};

use super::{Codec, Read};
use crate::lidar_quick as wire;
use crate::normal::{self, Cloud, Point, sum};

/// Protocol Buffers by quick-protobuf, a message for every point (schemas/lidar.proto).
#[derive(Default)]
pub(crate) struct Quick {
    outgoing: wire::Cloud,
    buffer: Vec<u8>,
}

impl Codec for Quick {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        let normal::Info { kind, timestamp, guid } = cloud.info;
        self.outgoing.info = Some(wire::Info { kind, timestamp, guid });
        self.outgoing.points.resize_with(cloud.points.len(), wire::Point::default);
        for (wire, point) in self.outgoing.points.iter_mut().zip(&cloud.points) {
            [wire.x, wire.y, wire.z] = point.position;
            wire.intensity = point.intensity.into();
        }
        self.buffer.clear();
        let mut writer = Writer::new(&mut self.buffer);
        self.outgoing.write_message(&mut writer).expect("a vector grows");
        &self.buffer
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        let wire = read(bytes)?;
        Ok(Cloud { info: info(&wire), points: wire.points.iter().map(point).collect() })
    }

    fn sum(&mut self, bytes: &[u8]) -> Read<f64> {
        let wire = read(bytes)?;
        Ok(sum(info(&wire), wire.points.iter().map(point)))
    }

    fn guid(&mut self, bytes: &[u8]) -> Read<u64> {
        Ok(info(&read(bytes)?).guid)
    }

    fn middle_y(&mut self, bytes: &[u8]) -> Read<f32> {
        let points = read(bytes)?.points;
        Ok(points.get(points.len() / 2).map_or(0.0, |wire| point(wire).position[1]))
    }
}

fn read(bytes: &[u8]) -> Read<wire::Cloud> {
    Ok(wire::Cloud::from_reader(&mut BytesReader::from_bytes(bytes), bytes)?)
}

fn info(cloud: &wire::Cloud) -> normal::Info {
    let info = cloud.info.clone().unwrap_or_default();
    normal::Info { kind: info.kind, timestamp: info.timestamp, guid: info.guid }
}

fn point(wire: &wire::Point) -> Point {
    Point { position: [wire.x, wire.y, wire.z], intensity: wire.intensity as u8 }
}
