use flatbuffers::{FlatBufferBuilder, Vector, WIPOffset};
use tautline_units::ByteCount;

use super::{Field, FieldView, Number, align_end};
use crate::generated::point_cloud as wire_cloud;

/// A lidar's point as most lidars give it; 16 bytes on the wire.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
#[repr(C)]
pub struct Point {
    /// Metres.
    pub x: f32,
    /// Metres.
    pub y: f32,
    /// Metres.
    pub z: f32,
    /// Strength of the echo, in the sensor's own measure.
    pub intensity: f32,
}

impl Point {
    fn to_bytes(self) -> [u8; STRIDE] {
        let mut bytes = [0; STRIDE];
        for (four, number) in
            bytes.chunks_exact_mut(4).zip([self.x, self.y, self.z, self.intensity])
        {
            four.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; STRIDE]) -> Self {
        let (numbers, _) = bytes.as_chunks::<4>();
        Self {
            x: f32::from_le_bytes(numbers[0]),
            y: f32::from_le_bytes(numbers[1]),
            z: f32::from_le_bytes(numbers[2]),
            intensity: f32::from_le_bytes(numbers[3]),
        }
    }
}

/// Puts `points` into `data`, in place of what was there.
pub(super) fn write_all(points: &[Point], data: &mut Vec<u8>) {
    // Sets the length only: every byte is written below.
    data.resize(points.len() * STRIDE, 0);
    write_records(points, data);
}

/// `points` as a vector of bytes, aligned within the message, without a buffer between.
pub(super) fn write_vector(
    points: &[Point],
    builder: &mut FlatBufferBuilder<'static>,
) -> WIPOffset<Vector<'static, u8>> {
    let length = points.len() * STRIDE;
    align_end(length, builder);
    builder.start_vector::<u8>(length);
    // From the end, as a message is built: the points beyond the last whole run come first.
    let (runs, rest) = points.as_chunks::<RUN_POINTS>();
    for point in rest.iter().rev() {
        builder.push(wire_cloud::Align16(point.to_bytes()));
    }
    let mut run = wire_cloud::Run::default();
    for points in runs.iter().rev() {
        write_records(points, &mut run.0);
        builder.push(&run);
    }
    builder.end_vector::<u8>(length)
}

fn write_records(points: &[Point], bytes: &mut [u8]) {
    let (records, _) = bytes.as_chunks_mut::<STRIDE>();
    for (record, point) in records.iter_mut().zip(points) {
        *record = point.to_bytes();
    }
}

/// Puts the points of `data`, whose records are laid out as [`fields`], into `points`.
pub(super) fn read_all(data: &[u8], points: &mut Vec<Point>) {
    let (records, _) = data.as_chunks::<STRIDE>();
    points.clear();
    points.extend(records.iter().map(Point::from_bytes));
}

/// Puts the points of `data` into `points`, whatever the layout of its records.
///
/// Numbers that a record lacks are zero.
pub(super) fn gather(
    data: &[u8],
    stride: ByteCount,
    fields: &[FieldView<'_>],
    points: &mut Vec<Point>,
) {
    let find = |name| fields.iter().find(|field| field.name == name);
    let [x, y, z, intensity] = NAMES.map(find);
    points.clear();
    points.extend(data.chunks_exact(stride.get() as usize).map(|record| Point {
        x: number(x, record),
        y: number(y, record),
        z: number(z, record),
        intensity: number(intensity, record),
    }));
}

fn number(field: Option<&FieldView<'_>>, record: &[u8]) -> f32 {
    field
        .and_then(|field| field.number.read(record.get(field.offset.get() as usize..)?))
        .unwrap_or(0.0) as f32
}

/// What a record of a [`Point`] holds.
pub(super) fn fields() -> Vec<Field> {
    NAMES
        .iter()
        .zip(0..)
        .map(|(name, index)| Field {
            name: (*name).to_owned(),
            offset: ByteCount::new(4 * index),
            number: Number::F32,
        })
        .collect()
}

/// Whether `fields` say that a record is a [`Point`].
pub(super) fn is_layout<'a>(fields: impl ExactSizeIterator<Item = FieldView<'a>>) -> bool {
    fields.len() == NAMES.len()
        && fields.zip(NAMES).zip(0..).all(|((field, name), index)| {
            field == FieldView { name, offset: ByteCount::new(4 * index), number: Number::F32 }
        })
}

/// Bytes of a [`Point`]'s record.
pub(super) const STRIDE: usize = 16;
/// Points of a run: the builder takes a page at a time, which stays in the nearest cache.
const RUN_POINTS: usize = 256;
const NAMES: [&str; 4] = ["x", "y", "z", "intensity"];
