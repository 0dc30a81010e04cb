//! A lidar's points: records in bulk, never a table a point.
//!
//! On the wire it is foxglove.PointCloud (schemas/point_cloud.fbs), so that its readers read ours.
//!
//! ```text
//! data:  | record 0        | record 1        | ...    stride bytes each, first byte 16-aligned
//! record:| x f32 | y f32 | z f32 | intensity f32 |    as `fields` tell; little-endian
//! ```

use flatbuffers::{FlatBufferBuilder, Vector, WIPOffset};
use tautline_units::{ByteCount, Instant};

use crate::generated::point_cloud::{self as wire_cloud, PointCloud as Root};
use crate::wire::{Kind, NAME_BYTES_MAX};
use crate::{Builder, Error};

mod field;
mod point;
mod view;

pub use field::{Field, FieldView, Number};
pub use point::Point;
pub use view::View;

/// A lidar's points and where they were seen from.
#[derive(Clone, PartialEq, Debug)]
pub struct PointCloud {
    /// When the points were captured, vehicle's clock. The wire holds 136 years.
    pub captured_at: Instant,
    /// The coordinate frame's name, at most 64 bytes.
    pub frame_id: String,
    /// Where the points' origin lies in the frame.
    pub pose: Pose,
    /// From one record to the next; 1 to 1024 bytes.
    pub stride: ByteCount,
    /// What a record holds; at most 32.
    pub fields: Vec<Field>,
    /// The records; at most 16 MiB. What the numbers mean is not checked: a lidar writes NaN where
    /// it saw nothing.
    pub data: Vec<u8>,
}

impl PointCloud {
    /// No points yet, in the layout of [`Point`].
    pub fn new(captured_at: Instant, frame_id: &str) -> Self {
        Self {
            captured_at,
            frame_id: frame_id.to_owned(),
            pose: Pose::default(),
            stride: ByteCount::new(point::STRIDE as u64),
            fields: point::fields(),
            data: Vec::new(),
        }
    }

    /// Puts `points` in place of what was there, in the layout of [`Point`].
    ///
    /// Keeps the buffer, so that a cloud used again does not allocate. O(points), near a memcpy.
    pub fn set_points(&mut self, points: &[Point]) {
        self.stride = ByteCount::new(point::STRIDE as u64);
        if !point::is_layout(self.fields.iter().map(Field::view)) {
            self.fields = point::fields();
        }
        point::write_all(points, &mut self.data);
    }

    /// The message's bytes.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_into(&mut Builder::new()).to_vec()
    }

    /// The message's bytes, in `builder`'s buffer until its next use.
    pub fn encode_into<'b>(&self, builder: &'b mut Builder) -> &'b [u8] {
        let builder = fresh(self.data.len(), builder);
        let data = write_vector(&self.data, builder);
        self.write(self.stride, &self.fields, data, builder);
        builder.finished_data()
    }

    /// As [`encode_into`](Self::encode_into), with `points` in the place of the cloud's own layout
    /// and data.
    ///
    /// Spares the copy from points to data: one pass over the points, near a memcpy.
    pub fn encode_points_into<'b>(&self, points: &[Point], builder: &'b mut Builder) -> &'b [u8] {
        let builder = fresh(points.len() * point::STRIDE, builder);
        let data = point::write_vector(points, builder);
        self.write(ByteCount::new(point::STRIDE as u64), &point::fields(), data, builder);
        builder.finished_data()
    }

    /// The point cloud that `bytes` carry, verified and checked, with a copy of its data.
    ///
    /// # Errors
    /// As [`View::of`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        Ok(View::of(bytes)?.to_owned())
    }

    /// Writes all but `data`, which stand in the builder first, so that growing moves nothing else.
    fn write(
        &self,
        stride: ByteCount,
        fields: &[Field],
        data: WIPOffset<Vector<'static, u8>>,
        builder: &mut FlatBufferBuilder<'static>,
    ) {
        let fields: Vec<_> = fields.iter().map(|field| field.write(builder)).collect();
        let fields = builder.create_vector(&fields);
        let frame_id = builder.create_string(&self.frame_id);
        let pose = self.pose.write(builder);
        let arguments = wire_cloud::PointCloudArgs {
            timestamp: Some(&time_on_wire(self.captured_at)),
            frame_id: Some(frame_id),
            pose: Some(pose),
            point_stride: u32::try_from(stride.get()).unwrap_or(u32::MAX),
            fields: Some(fields),
            data: Some(data),
        };
        let root = Root::create(builder, &arguments);
        wire_cloud::finish_point_cloud_buffer(builder, root);
    }
}

/// A position and an orientation in a frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pose {
    /// Metres along x, y and z, each within 1e12.
    pub position: [f64; 3],
    /// A quaternion: x, y, z, w, each within -1 to 1.
    pub orientation: [f64; 4],
}

impl Default for Pose {
    /// At the frame's origin, not turned.
    fn default() -> Self {
        Self { position: [0.0; 3], orientation: [0.0, 0.0, 0.0, 1.0] }
    }
}

impl Pose {
    fn write(
        &self,
        builder: &mut FlatBufferBuilder<'static>,
    ) -> WIPOffset<wire_cloud::Pose<'static>> {
        let [x, y, z] = self.position;
        let position = wire_cloud::Vector3::create(builder, &wire_cloud::Vector3Args { x, y, z });
        let [x, y, z, w] = self.orientation;
        let orientation =
            wire_cloud::Quaternion::create(builder, &wire_cloud::QuaternionArgs { x, y, z, w });
        let arguments =
            wire_cloud::PoseArgs { position: Some(position), orientation: Some(orientation) };
        wire_cloud::Pose::create(builder, &arguments)
    }
}

/// `data` as a vector whose first byte is aligned to 16 within the message.
fn write_vector(
    data: &[u8],
    builder: &mut FlatBufferBuilder<'static>,
) -> WIPOffset<Vector<'static, u8>> {
    align_end(data.len(), builder);
    builder.create_vector(data)
}

/// `builder`, ready for [`align_end`] and `length` bytes of data.
fn fresh(length: usize, builder: &mut Builder) -> &mut FlatBufferBuilder<'static> {
    builder.fresh_but(length, ALIGNMENT + padding(length))
}

/// Makes what is written next, `length` bytes, begin at a multiple of 16.
///
/// A message is built from its end: after the aligned struct the distance to the end is a multiple
/// of 16, and the padding makes it one again once the `length` bytes are written.
fn align_end(length: usize, builder: &mut FlatBufferBuilder<'static>) {
    builder.push(wire_cloud::Align16::default());
    for _ in 0..padding(length) {
        builder.push(0u8);
    }
}

/// Bytes from `length` to the next multiple of 16.
fn padding(length: usize) -> usize {
    length.next_multiple_of(ALIGNMENT) - length
}

fn time_on_wire(instant: Instant) -> wire_cloud::Time {
    let (seconds, nanos) = (instant.as_nanos() / NANOS, instant.as_nanos() % NANOS);
    wire_cloud::Time::new(u32::try_from(seconds).unwrap_or(u32::MAX), nanos as u32)
}

const ALIGNMENT: usize = 16;
const NANOS: u64 = 1_000_000_000;
const FIELD_COUNT_MAX: usize = 32;
const STRIDE_MAX: u64 = 1024;
const DATA_BYTES_MAX: usize = 16 << 20;

const KIND: Kind = Kind {
    name: "point cloud",
    identifier: None,
    bytes_max: DATA_BYTES_MAX + 16 * NAME_BYTES_MAX * FIELD_COUNT_MAX,
    // The cloud, its pose of three, and its fields; twice as many, so that a field too many is
    // refused by its name.
    tables_max: 4 + 2 * FIELD_COUNT_MAX,
    depth_max: 3,
};
