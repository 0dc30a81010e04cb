//! A lidar's points as bulk records, rather than one table per point.
//!
//! No session carries point clouds yet. The programs in `bench/codecs/` and `benches/points.rs`
//! measure the codec for the experiments `timing-*` of [TIMING], and `readers/` reads clouds in
//! C++ and Python.
//!
//! The wire format is foxglove.PointCloud (schemas/point_cloud.fbs), so existing readers can read
//! them.
//!
//! ```text
//! data:  | record 0        | record 1        | ...    stride bytes each, first byte 16-aligned
//! record:| x f32 | y f32 | z f32 | intensity f32 |    as `fields` tell; little-endian
//! ```

use crate::Error;

mod cloud;
mod kind;
mod point;
mod reader;
mod view;

pub use crate::bulk::field::{Field, FieldView, Number};
pub use crate::bulk::pose::Pose;
pub use cloud::PointCloud;
pub use point::{Point, Record};
pub use reader::Reader;
pub use view::View;

impl PointCloud {
    /// Returns the point cloud in `bytes`, verified and checked, with a copy of its data.
    ///
    /// # Errors
    /// As [`View::of`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        Ok(View::of(bytes)?.to_owned())
    }
}
