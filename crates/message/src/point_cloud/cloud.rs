use std::borrow::Cow;

use tautline_units::{ByteCount, Instant};

#[cfg(doc)]
use super::point::Point;
use super::point::{self, Record};
use crate::Builder;
use crate::bulk;
use crate::bulk::field::Field;
use crate::bulk::pose::Pose;

/// A lidar's points and the pose of their origin.
#[derive(Clone, PartialEq, Debug)]
pub struct PointCloud {
    /// Capture time of the points on the vehicle's clock. The wire format holds 136 years.
    pub captured_at: Instant,
    /// Name of the coordinate frame, at most 64 bytes.
    pub frame_id: String,
    /// Pose of the points' origin in the frame.
    pub pose: Pose,
    /// Distance from one record to the next; 1 to 1024 bytes.
    pub stride: ByteCount,
    /// Fields of a record; at most 32.
    pub fields: Vec<Field>,
    /// Records; at most 16 MiB. The values are not checked: a lidar writes NaN where it measured
    /// nothing.
    pub data: Vec<u8>,
}

impl PointCloud {
    /// Returns a cloud without points, in the layout of [`Point`].
    pub fn new(captured_at: Instant, frame_id: &str) -> Self {
        Self {
            captured_at,
            frame_id: frame_id.to_owned(),
            pose: Pose::default(),
            stride: ByteCount::new(point::STRIDE as u64),
            fields: point::fields::<point::Point>(),
            data: Vec::new(),
        }
    }

    /// Replaces the cloud's points and layout by `points`.
    ///
    /// Reuses the buffer, so a reused cloud does not allocate. O(points), close to a memcpy.
    pub fn set_points<R: Record>(&mut self, points: &[R]) {
        if !point::is_layout::<R>(self.stride, &self.fields) {
            self.stride = ByteCount::new(point::STRIDE as u64);
            self.fields = point::fields::<R>();
        }
        point::write_all(points, &mut self.data);
    }

    /// Returns the message's bytes. Its values are not checked.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_into(&mut Builder::new()).to_vec()
    }

    /// Returns the message's bytes, in `builder`'s buffer until its next use.
    pub fn encode_into<'b>(&self, builder: &'b mut Builder) -> &'b [u8] {
        let head = self.head(self.stride, &self.fields);
        let data = builder.bulk.begin(&head, self.captured_at, self.data.len());
        data.copy_from_slice(&self.data);
        builder.bulk.message()
    }

    /// Encodes as [`encode_into`](Self::encode_into) does, with `points` in place of the cloud's
    /// own layout and data.
    ///
    /// Avoids the copy from points to data: one pass over the points, close to a memcpy.
    pub fn encode_points_into<'b, R: Record>(
        &self,
        points: &[R],
        builder: &'b mut Builder,
    ) -> &'b [u8] {
        let fields = if point::is_layout::<R>(self.stride, &self.fields) {
            Cow::Borrowed(&self.fields)
        } else {
            Cow::Owned(point::fields::<R>())
        };
        let head = self.head(ByteCount::new(point::STRIDE as u64), &fields);
        let length = points.len() * point::STRIDE;
        let data = builder.bulk.begin(&head, self.captured_at, length);
        point::write_records(points, data);
        builder.bulk.message()
    }

    fn head<'a>(&'a self, stride: ByteCount, fields: &'a [Field]) -> bulk::Head<'a> {
        bulk::Head { frame_id: &self.frame_id, pose: self.pose, stride, fields }
    }
}
