//! FlatBuffers in three forms: one table per point, a vector of structs, a byte vector.

use flatbuffers::{FlatBufferBuilder, VerifierOptions};

use super::{Codec, Read, refused};
use crate::codec::records::{point_from, read_points, record_of};
use crate::lidar_generated::lidar as wire;
use crate::normal::{Cloud, Info, Point, sum};

/// One table per point, as an object-oriented schema yields.
#[derive(Default)]
pub(crate) struct Tables {
    builder: FlatBufferBuilder<'static>,
    offsets: Vec<flatbuffers::WIPOffset<wire::PointTable<'static>>>,
}

impl Codec for Tables {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        let Self { builder, offsets } = self;
        builder.reset();
        offsets.clear();
        for point in &cloud.points {
            let [x, y, z] = point.position;
            let position = wire::Position::new(x, y, z);
            let arguments =
                wire::PointTableArgs { position: Some(&position), intensity: point.intensity };
            offsets.push(wire::PointTable::create(builder, &arguments));
        }
        let points = builder.create_vector(offsets);
        let info = info_on_wire(cloud.info);
        let arguments = wire::TableCloudArgs { info: Some(&info), points: Some(points) };
        let root = wire::TableCloud::create(builder, &arguments);
        builder.finish(root, None);
        builder.finished_data()
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        let root = flatbuffers::root_with_opts::<wire::TableCloud<'_>>(&LIMITS, bytes)?;
        let points = root
            .points()
            .map_or_else(Vec::new, |points| points.iter().map(point_of_table).collect());
        Ok(Cloud { info: info_from(root.info())?, points })
    }

    fn sum(&mut self, bytes: &[u8]) -> Read<f64> {
        let root = flatbuffers::root_with_opts::<wire::TableCloud<'_>>(&LIMITS, bytes)?;
        let points = root.points().unwrap_or_default();
        Ok(sum(info_from(root.info())?, points.iter().map(point_of_table)))
    }

    fn guid(&mut self, bytes: &[u8]) -> Read<u64> {
        let root = flatbuffers::root_with_opts::<wire::TableCloud<'_>>(&LIMITS, bytes)?;
        Ok(info_from(root.info())?.guid)
    }

    fn middle_y(&mut self, bytes: &[u8]) -> Read<f32> {
        let root = flatbuffers::root_with_opts::<wire::TableCloud<'_>>(&LIMITS, bytes)?;
        let points = root.points().unwrap_or_default();
        let middle = points.len() / 2;
        Ok(if points.is_empty() { 0.0 } else { point_of_table(points.get(middle)).position[1] })
    }
}

fn point_of_table(table: wire::PointTable<'_>) -> Point {
    let position = table.position().map_or([0.0; 3], |p| [p.x(), p.y(), p.z()]);
    Point { position, intensity: table.intensity() }
}

/// A vector of structs, pushed and read one by one, with or without verification.
pub(crate) struct Structs {
    builder: FlatBufferBuilder<'static>,
    scratch: Vec<wire::Point>,
    verified: bool,
}

impl Structs {
    pub(crate) fn verified() -> Self {
        Self { builder: FlatBufferBuilder::new(), scratch: Vec::new(), verified: true }
    }

    pub(crate) fn unchecked() -> Self {
        Self { verified: false, ..Self::verified() }
    }

    #[expect(unsafe_code, reason = "what goes wrong without the verifier is to be shown")]
    fn root<'a>(&self, bytes: &'a [u8]) -> Read<wire::StructCloud<'a>> {
        if self.verified {
            return Ok(flatbuffers::root_with_opts::<wire::StructCloud<'_>>(&LIMITS, bytes)?);
        }
        // SAFETY: holds only for our own messages; hostile ones are read in a separate process.
        Ok(unsafe { flatbuffers::root_unchecked::<wire::StructCloud<'_>>(bytes) })
    }
}

impl Codec for Structs {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        let Self { builder, scratch, .. } = self;
        builder.reset();
        scratch.clear();
        scratch.extend(cloud.points.iter().map(|point| {
            let [x, y, z] = point.position;
            wire::Point::new(x, y, z, point.intensity)
        }));
        let points = builder.create_vector(scratch);
        let info = info_on_wire(cloud.info);
        let arguments = wire::StructCloudArgs { info: Some(&info), points: Some(points) };
        let root = wire::StructCloud::create(builder, &arguments);
        builder.finish(root, None);
        builder.finished_data()
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        let root = self.root(bytes)?;
        let points = root
            .points()
            .map_or_else(Vec::new, |points| points.iter().map(point_of_struct).collect());
        Ok(Cloud { info: info_from(root.info())?, points })
    }

    fn sum(&mut self, bytes: &[u8]) -> Read<f64> {
        let root = self.root(bytes)?;
        let points = root.points().unwrap_or_default();
        Ok(sum(info_from(root.info())?, points.iter().map(point_of_struct)))
    }

    fn guid(&mut self, bytes: &[u8]) -> Read<u64> {
        Ok(info_from(self.root(bytes)?.info())?.guid)
    }

    fn middle_y(&mut self, bytes: &[u8]) -> Read<f32> {
        let points = self.root(bytes)?.points().unwrap_or_default();
        Ok(if points.is_empty() { 0.0 } else { points.get(points.len() / 2).y() })
    }
}

fn point_of_struct(point: &wire::Point) -> Point {
    Point { position: [point.x(), point.y(), point.z()], intensity: point.intensity() }
}

/// One vector of 16-byte records, built and read in one block.
#[derive(Default)]
pub(crate) struct Bulk {
    builder: FlatBufferBuilder<'static>,
    scratch: Vec<[u8; 16]>,
}

impl Codec for Bulk {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        let Self { builder, scratch } = self;
        builder.reset();
        scratch.clear();
        scratch.extend(cloud.points.iter().map(record_of));
        let points = builder.create_vector(scratch.as_flattened());
        let info = info_on_wire(cloud.info);
        let arguments = wire::BulkCloudArgs { info: Some(&info), points: Some(points) };
        let root = wire::BulkCloud::create(builder, &arguments);
        builder.finish(root, None);
        builder.finished_data()
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        let root = flatbuffers::root_with_opts::<wire::BulkCloud<'_>>(&LIMITS, bytes)?;
        Ok(Cloud { info: info_from(root.info())?, points: read_points(records(root)) })
    }

    fn sum(&mut self, bytes: &[u8]) -> Read<f64> {
        let root = flatbuffers::root_with_opts::<wire::BulkCloud<'_>>(&LIMITS, bytes)?;
        Ok(sum(info_from(root.info())?, records(root).iter().map(point_from)))
    }

    fn guid(&mut self, bytes: &[u8]) -> Read<u64> {
        let root = flatbuffers::root_with_opts::<wire::BulkCloud<'_>>(&LIMITS, bytes)?;
        Ok(info_from(root.info())?.guid)
    }

    fn middle_y(&mut self, bytes: &[u8]) -> Read<f32> {
        let root = flatbuffers::root_with_opts::<wire::BulkCloud<'_>>(&LIMITS, bytes)?;
        let records = records(root);
        Ok(records.get(records.len() / 2).map_or(0.0, |record| point_from(record).position[1]))
    }
}

fn records(root: wire::BulkCloud<'_>) -> &[[u8; 16]] {
    root.points().map_or(&[], |points| points.bytes().as_chunks().0)
}

fn info_on_wire(info: Info) -> wire::Info {
    wire::Info::new(info.kind, info.timestamp, info.guid)
}

fn info_from(info: Option<&wire::Info>) -> Read<Info> {
    let info = info.ok_or_else(|| refused("no info"))?;
    Ok(Info { kind: info.kind(), timestamp: info.timestamp(), guid: info.guid() })
}

const LIMITS: VerifierOptions = VerifierOptions {
    max_depth: 4,
    max_tables: 1_000_000,
    max_apparent_size: 1 << 30,
    ignore_missing_null_terminator: false,
};
