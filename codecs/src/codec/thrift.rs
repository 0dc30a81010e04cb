use thrift::OrderedFloat;
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol, TSerializable};

use super::{Codec, Read};
use crate::lidar_thrift as wire;
use crate::normal::{self, Cloud, Point, sum};

/// Thrift's binary protocol by the code that its compiler writes for Rust (schemas/lidar.thrift).
#[derive(Default)]
pub(crate) struct Thrift(Vec<u8>);

impl Codec for Thrift {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        let normal::Info { kind, timestamp, guid } = cloud.info;
        let info = wire::Info::new(kind as i64, timestamp as i64, guid as i64);
        let points = cloud.points.iter().map(|point| {
            let [x, y, z] = point.position.map(|number| OrderedFloat(f64::from(number)));
            wire::Point::new(x, y, z, point.intensity as i8)
        });
        let message = wire::Cloud::new(info, points.collect());
        self.0.clear();
        let mut protocol = TBinaryOutputProtocol::new(&mut self.0, true);
        message.write_to_out_protocol(&mut protocol).expect("a vector grows");
        &self.0
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
    Ok(wire::Cloud::read_from_in_protocol(&mut TBinaryInputProtocol::new(bytes, true))?)
}

fn info(wire: &wire::Cloud) -> normal::Info {
    let wire::Info { kind, timestamp, guid } = wire.info;
    normal::Info { kind: kind as u64, timestamp: timestamp as u64, guid: guid as u64 }
}

fn point(wire: &wire::Point) -> Point {
    let position = [wire.x, wire.y, wire.z].map(|number| number.0 as f32);
    Point { position, intensity: wire.intensity as u8 }
}
