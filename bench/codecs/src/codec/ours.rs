use tautline_message::point_cloud::{FieldView, Number, Reader, Record, View};
use tautline_message::{Builder, PointCloud};
use tautline_units::{ByteCount, Instant};

use super::{Codec, Read, refused};
use crate::codec::foxglove::{frame_id, parse_frame_id};
use crate::codec::records::{point_from, record_of};
use crate::normal::{Cloud, Info, Point, sum};

/// Tautline's point cloud: foxglove.PointCloud in FlatBuffers, verified, with checked values, in
/// bulk.
///
/// It has no kind and no guid: they are stored in `frame_id`, in hexadecimal.
pub(crate) struct Ours {
    cloud: PointCloud,
    /// Kind and guid in the cloud's `frame_id`.
    source: (u64, u64),
    builder: Builder,
    reader: Reader,
}

impl Default for Ours {
    fn default() -> Self {
        let cloud = PointCloud::new(Instant::ZERO, &frame_id(Info::default()));
        Self { cloud, source: (0, 0), builder: Builder::new(), reader: Reader::new() }
    }
}

impl Codec for Ours {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        let Info { kind, timestamp, guid } = cloud.info;
        if self.source != (kind, guid) {
            self.source = (kind, guid);
            self.cloud.frame_id = frame_id(cloud.info);
        }
        self.cloud.captured_at = Instant::from_nanos(timestamp);
        self.cloud.encode_points_into(&cloud.points, &mut self.builder)
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        let view = self.reader.read(bytes)?;
        let mut points = Vec::new();
        view.read_points(&mut points);
        Ok(Cloud { info: info(&view)?, points })
    }

    fn sum(&mut self, bytes: &[u8]) -> Read<f64> {
        let view = self.reader.read(bytes)?;
        let points = view.records().ok_or_else(|| refused("another layout"))?;
        Ok(sum(info(&view)?, points))
    }

    fn guid(&mut self, bytes: &[u8]) -> Read<u64> {
        Ok(parse_frame_id(self.reader.read(bytes)?.frame_id())?.1)
    }

    fn middle_y(&mut self, bytes: &[u8]) -> Read<f32> {
        let view = self.reader.read(bytes)?;
        Ok(view.point::<Point>(view.point_count() / 2).map_or(0.0, |point| point.position[1]))
    }
}

fn info(view: &View<'_>) -> Read<Info> {
    let (kind, guid) = parse_frame_id(view.frame_id())?;
    Ok(Info { kind, timestamp: view.captured_at().as_nanos(), guid })
}

impl Record for Point {
    const FIELDS: &'static [FieldView<'static>] = &[
        field("x", 0, Number::F32),
        field("y", 4, Number::F32),
        field("z", 8, Number::F32),
        field("intensity", 12, Number::U8),
    ];

    fn to_bytes(self) -> [u8; 16] {
        record_of(&self)
    }

    fn from_bytes(bytes: &[u8; 16]) -> Self {
        point_from(bytes)
    }

    fn from_numbers(numbers: &[f64]) -> Self {
        let number = |at: usize| numbers.get(at).copied().unwrap_or(0.0);
        Self { position: [0, 1, 2].map(|at| number(at) as f32), intensity: number(3) as u8 }
    }
}

const fn field(name: &'static str, offset: u64, number: Number) -> FieldView<'static> {
    FieldView { name, offset: ByteCount::new(offset), number }
}
