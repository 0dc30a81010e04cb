use tautline_units::{ByteCount, Instant};

use super::{
    DATA_BYTES_MAX, FIELD_COUNT_MAX, FieldView, KIND, NANOS, Point, PointCloud, Pose, STRIDE_MAX,
    point,
};
use crate::Error;
use crate::generated::point_cloud::{self as wire_cloud, PointCloud as Root};
use crate::wire::{NAME_BYTES_MAX, length, list, number_f64};

/// A verified and checked point cloud that borrows its data from the message's bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct View<'a> {
    captured_at: Instant,
    frame_id: &'a str,
    pose: Pose,
    stride: ByteCount,
    fields: Vec<FieldView<'a>>,
    data: &'a [u8],
}

impl<'a> View<'a> {
    /// The point cloud that `bytes` carry; its cost does not grow with the points.
    ///
    /// # Errors
    /// When the bytes are no point cloud, its data are not whole records, a field lies outside a
    /// record, or another value makes no sense: see [`Error`]. Any bytes are safe to give.
    pub fn of(bytes: &'a [u8]) -> Result<Self, Error> {
        let root = crate::wire::root::<Root<'_>>(&KIND, bytes)?;
        let stride = u64::from(root.point_stride());
        number_f64("point_stride", stride as f64, 1.0, STRIDE_MAX as f64)?;
        let stride = ByteCount::new(stride);
        let data = root.data().map_or(&[][..], |data| data.bytes());
        length("data", data.len(), DATA_BYTES_MAX)?;
        if !ByteCount::of(data).get().is_multiple_of(stride.get()) {
            return Err(Error::Ragged { length: ByteCount::of(data), stride });
        }
        let fields = match root.fields() {
            None => Vec::new(),
            Some(fields) => {
                list("fields", fields, FIELD_COUNT_MAX, |f| FieldView::read(f, stride))?
            }
        };
        let frame_id = root.frame_id().unwrap_or_default();
        length("frame_id", frame_id.len(), NAME_BYTES_MAX)?;
        Ok(Self {
            captured_at: root.timestamp().map_or(Ok(Instant::ZERO), read_time)?,
            frame_id,
            pose: root.pose().map_or(Ok(Pose::default()), read_pose)?,
            stride,
            fields,
            data,
        })
    }

    /// When the points were captured, vehicle's clock.
    pub fn captured_at(&self) -> Instant {
        self.captured_at
    }

    /// The coordinate frame's name.
    pub fn frame_id(&self) -> &'a str {
        self.frame_id
    }

    /// Where the points' origin lies in the frame.
    pub fn pose(&self) -> Pose {
        self.pose
    }

    /// From one record to the next.
    pub fn stride(&self) -> ByteCount {
        self.stride
    }

    /// What a record holds; each field lies within the stride.
    pub fn fields(&self) -> &[FieldView<'a>] {
        &self.fields
    }

    /// The records: a whole number of strides.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Number of points.
    pub fn point_count(&self) -> usize {
        self.data.len() / self.stride.get() as usize
    }

    /// Puts all points into `points`, in place of what was there.
    ///
    /// Near a memcpy where records are laid out as [`Point`]; field by field elsewhere, with zero
    /// for what a record lacks.
    pub fn read_points(&self, points: &mut Vec<Point>) {
        if self.stride.get() == point::STRIDE as u64
            && point::is_layout(self.fields.iter().copied())
        {
            point::read_all(self.data, points);
        } else {
            point::gather(self.data, self.stride, &self.fields, points);
        }
    }

    /// The same with a copy of the data.
    pub fn to_owned(&self) -> PointCloud {
        PointCloud {
            captured_at: self.captured_at,
            frame_id: self.frame_id.to_owned(),
            pose: self.pose,
            stride: self.stride,
            fields: self.fields.iter().map(FieldView::to_owned).collect(),
            data: self.data.to_vec(),
        }
    }
}

fn read_time(time: &wire_cloud::Time) -> Result<Instant, Error> {
    let nanos = u64::from(time.nsec());
    number_f64("timestamp.nsec", nanos as f64, 0.0, (NANOS - 1) as f64)?;
    Ok(Instant::from_nanos(u64::from(time.sec()) * NANOS + nanos))
}

/// Parts that are not there leave the pose as it is by default.
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
            // A unit quaternion as rounding leaves it.
            number_f64("pose.orientation", part, -1.000_001, 1.000_001)?;
        }
    }
    Ok(read)
}

/// Beyond the planets; what lies further is no measurement.
const METRES_MAX: f64 = 1e12;
