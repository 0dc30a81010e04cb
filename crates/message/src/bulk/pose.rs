use flatbuffers::{FlatBufferBuilder, WIPOffset};

use crate::generated::point_cloud as wire_cloud;

/// A position and an orientation in a frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pose {
    /// Metres along x, y and z, each within 1e12.
    pub position: [f64; 3],
    /// Quaternion: x, y, z, w, each within -1 to 1.
    pub orientation: [f64; 4],
}

impl Default for Pose {
    /// Returns the pose at the frame's origin, without rotation.
    fn default() -> Self {
        Self { position: [0.0; 3], orientation: [0.0, 0.0, 0.0, 1.0] }
    }
}

impl Pose {
    pub(crate) fn write(
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
