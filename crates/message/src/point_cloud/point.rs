use tautline_units::ByteCount;

use crate::bulk::field::{Field, FieldView, Number};

/// A sensor's point in a record of 16 bytes.
///
/// [`Point`] matches most lidars. Implement this trait for other point types to write and read them
/// without a conversion.
pub trait Record: Copy {
    /// Fields of a record, in the order of the numbers passed to
    /// [`from_numbers`](Self::from_numbers).
    const FIELDS: &'static [FieldView<'static>];

    /// Returns the record in the layout of [`FIELDS`](Self::FIELDS); bytes outside all fields are
    /// zero.
    fn to_bytes(self) -> [u8; STRIDE];

    /// Returns the point of a record in this layout.
    fn from_bytes(bytes: &[u8; STRIDE]) -> Self;

    /// Returns the point of a record in another layout: one number per field, zero for missing
    /// fields.
    fn from_numbers(numbers: &[f64]) -> Self;
}

/// A point as most lidars produce it; 16 bytes on the wire.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
#[repr(C)]
pub struct Point {
    /// Coordinate along x in metres.
    pub x: f32,
    /// Coordinate along y in metres.
    pub y: f32,
    /// Coordinate along z in metres.
    pub z: f32,
    /// Strength of the echo, in the sensor's own unit.
    pub intensity: f32,
}

impl Record for Point {
    const FIELDS: &'static [FieldView<'static>] =
        &[float("x", 0), float("y", 4), float("z", 8), float("intensity", 12)];

    // Bytes listed individually: the compiler turns this into one 16-byte move, but not loops.
    fn to_bytes(self) -> [u8; STRIDE] {
        let [x0, x1, x2, x3] = self.x.to_le_bytes();
        let [y0, y1, y2, y3] = self.y.to_le_bytes();
        let [z0, z1, z2, z3] = self.z.to_le_bytes();
        let [i0, i1, i2, i3] = self.intensity.to_le_bytes();
        [x0, x1, x2, x3, y0, y1, y2, y3, z0, z1, z2, z3, i0, i1, i2, i3]
    }

    fn from_bytes(bytes: &[u8; STRIDE]) -> Self {
        let [x0, x1, x2, x3, y0, y1, y2, y3, z0, z1, z2, z3, i0, i1, i2, i3] = *bytes;
        Self {
            x: f32::from_le_bytes([x0, x1, x2, x3]),
            y: f32::from_le_bytes([y0, y1, y2, y3]),
            z: f32::from_le_bytes([z0, z1, z2, z3]),
            intensity: f32::from_le_bytes([i0, i1, i2, i3]),
        }
    }

    fn from_numbers(numbers: &[f64]) -> Self {
        let [x, y, z, intensity] =
            [0, 1, 2, 3].map(|at| numbers.get(at).copied().unwrap_or(0.0) as f32);
        Self { x, y, z, intensity }
    }
}

const fn float(name: &'static str, offset: u64) -> FieldView<'static> {
    FieldView { name, offset: ByteCount::new(offset), number: Number::F32 }
}

/// Replaces the contents of `data` by `points`.
pub(super) fn write_all<R: Record>(points: &[R], data: &mut Vec<u8>) {
    // Only sets the length: every byte is written below.
    data.resize(points.len() * STRIDE, 0);
    write_records(points, data);
}

/// Writes `points` to `bytes`, whose length matches.
pub(super) fn write_records<R: Record>(points: &[R], bytes: &mut [u8]) {
    let (records, _) = bytes.as_chunks_mut::<STRIDE>();
    for (record, point) in records.iter_mut().zip(points) {
        *record = point.to_bytes();
    }
}

/// Replaces the contents of `points` by the points of `data`, whose records have any layout.
/// Numbers that a record lacks are 0.
pub(super) fn gather<R: Record>(
    data: &[u8],
    stride: ByteCount,
    fields: &[Field],
    points: &mut Vec<R>,
) {
    let wanted: Vec<Option<&Field>> =
        R::FIELDS.iter().map(|w| fields.iter().find(|field| field.name == w.name)).collect();
    let mut numbers = vec![0.0; wanted.len()];
    points.clear();
    points.extend(data.chunks_exact(stride.get() as usize).map(|record| {
        for (number, field) in numbers.iter_mut().zip(&wanted) {
            *number = field.and_then(|field| read(field, record)).unwrap_or(0.0);
        }
        R::from_numbers(&numbers)
    }));
}

fn read(field: &Field, record: &[u8]) -> Option<f64> {
    field.number.read(record.get(field.offset.get() as usize..)?)
}

/// Returns the fields of `R`, owned.
pub(super) fn fields<R: Record>() -> Vec<Field> {
    R::FIELDS.iter().map(FieldView::to_owned).collect()
}

/// Returns whether `fields` and `stride` describe the layout of `R`.
pub(super) fn is_layout<R: Record>(stride: ByteCount, fields: &[Field]) -> bool {
    stride.get() == STRIDE as u64
        && fields.len() == R::FIELDS.len()
        && fields.iter().zip(R::FIELDS).all(|(field, wanted)| field.view() == *wanted)
}

/// Length of a record in bytes.
pub(super) const STRIDE: usize = 16;
