use prost::Message;

use super::{Read, Staged};
use crate::normal::{self, Cloud, Point, sum};

/// Protocol Buffers by prost, with one message per point (schemas/lidar.proto).
#[derive(Default)]
pub(crate) struct Prost {
    outgoing: WireCloud,
    incoming: WireCloud,
    buffer: Vec<u8>,
}

impl Staged for Prost {
    fn fill(&mut self, cloud: &Cloud) {
        let normal::Info { kind, timestamp, guid } = cloud.info;
        self.outgoing.info = Some(WireInfo { kind, timestamp, guid });
        self.outgoing.points.resize_with(cloud.points.len(), WirePoint::default);
        for (wire, point) in self.outgoing.points.iter_mut().zip(&cloud.points) {
            [wire.x, wire.y, wire.z] = point.position;
            wire.intensity = point.intensity.into();
        }
    }

    fn write(&mut self) -> &[u8] {
        self.buffer.clear();
        self.outgoing.encode(&mut self.buffer).expect("a vector grows");
        &self.buffer
    }

    fn parse(&mut self, bytes: &[u8]) -> Read<()> {
        self.incoming = WireCloud::decode(bytes)?;
        Ok(())
    }

    fn normal(&self) -> Read<Cloud> {
        let wire = &self.incoming;
        Ok(Cloud { info: wire.info(), points: wire.points.iter().map(point).collect() })
    }

    fn own_sum(&self) -> f64 {
        sum(self.incoming.info(), self.incoming.points.iter().map(point))
    }

    fn own_guid(&self) -> u64 {
        self.incoming.info().guid
    }

    fn own_middle_y(&self) -> f32 {
        let points = &self.incoming.points;
        points.get(points.len() / 2).map_or(0.0, |wire| wire.y)
    }
}

#[derive(Clone, PartialEq, Message)]
struct WireCloud {
    #[prost(message, optional, tag = "1")]
    info: Option<WireInfo>,
    #[prost(message, repeated, tag = "2")]
    points: Vec<WirePoint>,
}

impl WireCloud {
    fn info(&self) -> normal::Info {
        let WireInfo { kind, timestamp, guid } = self.info.unwrap_or_default();
        normal::Info { kind, timestamp, guid }
    }
}

#[derive(Clone, Copy, PartialEq, Message)]
struct WireInfo {
    #[prost(uint64, tag = "1")]
    kind: u64,
    #[prost(uint64, tag = "2")]
    timestamp: u64,
    #[prost(uint64, tag = "3")]
    guid: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct WirePoint {
    #[prost(float, tag = "1")]
    x: f32,
    #[prost(float, tag = "2")]
    y: f32,
    #[prost(float, tag = "3")]
    z: f32,
    #[prost(uint32, tag = "4")]
    intensity: u32,
}

fn point(wire: &WirePoint) -> Point {
    Point { position: [wire.x, wire.y, wire.z], intensity: wire.intensity as u8 }
}
