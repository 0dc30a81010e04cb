use std::borrow::Cow;

use tautline_units::{ByteCount, Instant};

use super::cloud::PointCloud;
use super::kind::{DATA_BYTES_MAX, FIELD_COUNT_MAX, KIND, STRIDE_MAX};
use super::point::{self, Record};
use crate::Error;
use crate::bulk::NANOS;
use crate::bulk::field::Field;
use crate::bulk::pose::Pose;
use crate::generated::point_cloud::{self as wire_cloud, PointCloud as Root};
use crate::wire::{NAME_BYTES_MAX, length, list, number_f64, text};

/// A verified and checked point cloud that borrows its points from the message's bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct View<'a> {
    pub(super) captured_at: Instant,
    pub(super) head: Cow<'a, Head>,
    pub(super) data: &'a [u8],
}

/// A cloud's header without its time: the same in every message of one sensor.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Head {
    pub(super) frame_id: String,
    pub(super) pose: Pose,
    pub(super) stride: ByteCount,
    pub(super) fields: Vec<Field>,
}

impl<'a> View<'a> {
    /// Returns the point cloud in `bytes`; the cost is independent of the number of points. A
    /// missing time is 0, a missing pose the frame's origin, and other missing parts are empty.
    ///
    /// For many clouds of one sensor, a [`Reader`](super::Reader) is ten times faster.
    ///
    /// # Errors
    /// If the bytes are not a point cloud, the data length is not a multiple of the record length,
    /// a field lies outside a record, or another value is invalid: see [`Error`]. Any input bytes
    /// are safe.
    pub fn of(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::read(crate::wire::root::<Root<'_>>(&KIND, bytes)?)
    }

    pub(super) fn read(root: Root<'a>) -> Result<Self, Error> {
        let stride = u64::from(root.point_stride());
        number_f64("point_stride", stride as f64, 1.0, STRIDE_MAX as f64)?;
        let stride = ByteCount::new(stride);
        let data = whole_records(root.data().map_or(&[][..], |data| data.bytes()), stride)?;
        let fields = match root.fields() {
            None => Vec::new(),
            Some(fields) => list("fields", fields, FIELD_COUNT_MAX, |f| Field::read(f, stride))?,
        };
        let frame_id = text("frame_id", root.frame_id().unwrap_or_default(), NAME_BYTES_MAX)?;
        let captured_at = root.timestamp().map_or(Ok(Instant::ZERO), read_time)?;
        let pose = root.pose().map_or(Ok(Pose::default()), read_pose)?;
        Ok(Self { captured_at, head: Cow::Owned(Head { frame_id, pose, stride, fields }), data })
    }

    /// Returns the capture time of the points on the vehicle's clock.
    pub fn captured_at(&self) -> Instant {
        self.captured_at
    }

    /// Returns the name of the coordinate frame.
    pub fn frame_id(&self) -> &str {
        &self.head.frame_id
    }

    /// Returns the pose of the points' origin in the frame.
    pub fn pose(&self) -> Pose {
        self.head.pose
    }

    /// Returns the distance from one record to the next.
    pub fn stride(&self) -> ByteCount {
        self.head.stride
    }

    /// Returns the fields of a record; each lies within the stride.
    pub fn fields(&self) -> &[Field] {
        &self.head.fields
    }

    /// Returns the records: an integral number of strides.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Returns the number of points.
    pub fn point_count(&self) -> usize {
        self.data.len() / self.head.stride.get() as usize
    }

    /// Returns an iterator over all points, decoded lazily; `None` if the records are not in the
    /// layout of `R`.
    pub fn records<R: Record>(&self) -> Option<impl ExactSizeIterator<Item = R> + use<'a, R>> {
        if !point::is_layout::<R>(self.head.stride, &self.head.fields) {
            return None;
        }
        let (records, _) = self.data.as_chunks();
        Some(records.iter().map(R::from_bytes))
    }

    /// Returns the point at `index`; `None` if there is none, or if the records are not in the
    /// layout of `R`.
    pub fn point<R: Record>(&self, index: usize) -> Option<R> {
        if !point::is_layout::<R>(self.head.stride, &self.head.fields) {
            return None;
        }
        self.data.as_chunks().0.get(index).map(R::from_bytes)
    }

    /// Replaces the contents of `points` by all points.
    ///
    /// Close to a memcpy if the records are in the layout of `R`; otherwise field by field, with
    /// zero for missing fields.
    pub fn read_points<R: Record>(&self, points: &mut Vec<R>) {
        match self.records::<R>() {
            Some(records) => {
                points.clear();
                points.extend(records);
            }
            None => point::gather(self.data, self.head.stride, &self.head.fields, points),
        }
    }

    /// Returns an owned cloud with a copy of the data.
    pub fn to_owned(&self) -> PointCloud {
        let Head { frame_id, pose, stride, fields } = self.head.clone().into_owned();
        let data = self.data.to_vec();
        PointCloud { captured_at: self.captured_at, frame_id, pose, stride, fields, data }
    }
}

/// Returns `data` unchanged.
///
/// # Errors
/// [`Error::TooLong`], or [`Error::Ragged`] if it does not consist of complete records.
pub(super) fn whole_records(data: &[u8], stride: ByteCount) -> Result<&[u8], Error> {
    length("data", data.len(), DATA_BYTES_MAX)?;
    if !ByteCount::of(data).get().is_multiple_of(stride.get()) {
        return Err(Error::Ragged { length: ByteCount::of(data), stride });
    }
    Ok(data)
}

pub(super) fn read_time(time: &wire_cloud::Time) -> Result<Instant, Error> {
    let nanos = u64::from(time.nsec());
    number_f64("timestamp.nsec", nanos as f64, 0.0, (NANOS - 1) as f64)?;
    Ok(Instant::from_nanos(u64::from(time.sec()) * NANOS + nanos))
}

/// Reads the pose; a missing position is the origin, and a missing orientation no rotation.
fn read_pose(pose: wire_cloud::Pose<'_>) -> Result<Pose, Error> {
    let mut read = Pose::default();
    if let Some(position) = pose.position() {
        read.position = [position.x(), position.y(), position.z()];
        for metres in read.position {
            number_f64("pose.position", metres, -METRES_MAX, METRES_MAX)?;
        }
    }
    if let Some(orientation) = pose.orientation() {
        read.orientation = [orientation.x(), orientation.y(), orientation.z(), orientation.w()];
        for part in read.orientation {
            // A unit quaternion, with rounding errors.
            number_f64("pose.orientation", part, -1.000_001, 1.000_001)?;
        }
    }
    Ok(read)
}

/// Limit on each coordinate of a position in metres: beyond the planets, no value is a measurement.
const METRES_MAX: f64 = 1e12;
