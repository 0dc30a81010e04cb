use quick_protobuf::{BytesReader, MessageRead, MessageWrite, Writer};

use super::{Read, Staged};
use crate::lidar_quick as wire;
use crate::normal::{self, Cloud, Point, sum};

/// Protocol Buffers by quick-protobuf, with one message per point (schemas/lidar.proto).
#[derive(Default)]
pub(crate) struct Quick {
    outgoing: wire::Cloud,
    incoming: wire::Cloud,
    buffer: Vec<u8>,
}

impl Staged for Quick {
    fn fill(&mut self, cloud: &Cloud) {
        let normal::Info { kind, timestamp, guid } = cloud.info;
        self.outgoing.info = Some(wire::Info { kind, timestamp, guid });
        self.outgoing.points.resize_with(cloud.points.len(), wire::Point::default);
        for (wire, point) in self.outgoing.points.iter_mut().zip(&cloud.points) {
            [wire.x, wire.y, wire.z] = point.position;
            wire.intensity = point.intensity.into();
        }
    }

    fn write(&mut self) -> &[u8] {
        self.buffer.clear();
        let mut writer = Writer::new(&mut self.buffer);
        self.outgoing.write_message(&mut writer).expect("a vector grows");
        &self.buffer
    }

    fn parse(&mut self, bytes: &[u8]) -> Read<()> {
        self.incoming = wire::Cloud::from_reader(&mut BytesReader::from_bytes(bytes), bytes)?;
        Ok(())
    }

    fn normal(&self) -> Read<Cloud> {
        let wire = &self.incoming;
        Ok(Cloud { info: info(wire), points: wire.points.iter().map(point).collect() })
    }

    fn own_sum(&self) -> f64 {
        sum(info(&self.incoming), self.incoming.points.iter().map(point))
    }

    fn own_guid(&self) -> u64 {
        info(&self.incoming).guid
    }

    fn own_middle_y(&self) -> f32 {
        let points = &self.incoming.points;
        points.get(points.len() / 2).map_or(0.0, |wire| wire.y)
    }
}

fn info(cloud: &wire::Cloud) -> normal::Info {
    let info = cloud.info.clone().unwrap_or_default();
    normal::Info { kind: info.kind, timestamp: info.timestamp, guid: info.guid }
}

fn point(wire: &wire::Point) -> Point {
    Point { position: [wire.x, wire.y, wire.z], intensity: wire.intensity as u8 }
}
