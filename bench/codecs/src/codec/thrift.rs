use thrift::OrderedFloat;
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol, TSerializable};

use super::{Read, Staged, refused};
use crate::lidar_thrift as wire;
use crate::normal::{self, Cloud, Point, sum};

/// Thrift's binary protocol, with the Rust code of its compiler (schemas/lidar.thrift).
#[derive(Default)]
pub(crate) struct Thrift {
    outgoing: Option<wire::Cloud>,
    incoming: Option<wire::Cloud>,
    buffer: Vec<u8>,
}

impl Staged for Thrift {
    fn fill(&mut self, cloud: &Cloud) {
        let normal::Info { kind, timestamp, guid } = cloud.info;
        let info = wire::Info::new(kind as i64, timestamp as i64, guid as i64);
        let points = cloud.points.iter().map(|point| {
            let [x, y, z] = point.position.map(|number| OrderedFloat(f64::from(number)));
            wire::Point::new(x, y, z, point.intensity as i8)
        });
        self.outgoing = Some(wire::Cloud::new(info, points.collect()));
    }

    fn write(&mut self) -> &[u8] {
        self.buffer.clear();
        let mut protocol = TBinaryOutputProtocol::new(&mut self.buffer, true);
        if let Some(message) = &self.outgoing {
            message.write_to_out_protocol(&mut protocol).expect("a vector grows");
        }
        &self.buffer
    }

    fn parse(&mut self, bytes: &[u8]) -> Read<()> {
        let mut protocol = TBinaryInputProtocol::new(bytes, true);
        self.incoming = Some(wire::Cloud::read_from_in_protocol(&mut protocol)?);
        Ok(())
    }

    fn normal(&self) -> Read<Cloud> {
        let wire = self.incoming.as_ref().ok_or_else(|| refused("nothing was parsed"))?;
        Ok(Cloud { info: info(wire), points: wire.points.iter().map(point).collect() })
    }

    fn own_sum(&self) -> f64 {
        let sum_of = |wire: &wire::Cloud| sum(info(wire), wire.points.iter().map(point));
        self.incoming.as_ref().map_or(0.0, sum_of)
    }

    fn own_guid(&self) -> u64 {
        self.incoming.as_ref().map_or(0, |wire| info(wire).guid)
    }

    fn own_middle_y(&self) -> f32 {
        let points = self.incoming.as_ref().map_or(&[][..], |wire| &wire.points);
        points.get(points.len() / 2).map_or(0.0, |wire| point(wire).position[1])
    }
}

fn info(wire: &wire::Cloud) -> normal::Info {
    let wire::Info { kind, timestamp, guid } = wire.info;
    normal::Info { kind: kind as u64, timestamp: timestamp as u64, guid: guid as u64 }
}

fn point(wire: &wire::Point) -> Point {
    let position = [wire.x, wire.y, wire.z].map(|number| number.0 as f32);
    Point { position, intensity: wire.intensity as u8 }
}
