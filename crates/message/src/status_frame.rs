use flatbuffers::{FlatBufferBuilder, Vector, WIPOffset};
#[cfg(test)]
use proptest::prelude::*;
use tautline_guard::frame::{self, Status};

use crate::Error;
use crate::fields::Codec;

/// A status frame of the guard: its values, and its bytes as the guard sent them.
///
/// The bytes keep what only a later build of the guard and its readers knows.
#[derive(Clone, Debug)]
pub struct StatusFrame {
    status: Status,
    bytes: Vec<u8>,
}

impl StatusFrame {
    /// Decodes a status frame and keeps its bytes; the frame's counter is ignored.
    ///
    /// # Errors
    /// When the bytes are no status frame. Any input is safe.
    pub fn read(bytes: &[u8]) -> Result<Self, frame::Error> {
        let (status, _) = frame::decode(bytes)?;
        Ok(Self { status, bytes: bytes.to_vec() })
    }

    /// Encodes `status` as a frame with the counter 0.
    pub fn of(status: &Status) -> Self {
        Self { status: *status, bytes: frame::encode(status, 0).to_vec() }
    }

    /// Returns the decoded values.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Returns the bytes as the guard sent them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl PartialEq for StatusFrame {
    /// Compares the bytes, because an unknown number is NaN, which is not equal to itself.
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

/// Codec of a status frame, by its bytes; `None` is an absent field.
pub(crate) struct Frame;

impl Codec<Option<StatusFrame>> for Frame {
    type Read<'a> = Option<Vector<'a, u8>>;
    type Written = Option<WIPOffset<Vector<'static, u8>>>;

    fn write(
        &self,
        frame: &Option<StatusFrame>,
        builder: &mut FlatBufferBuilder<'static>,
    ) -> Self::Written {
        frame.as_ref().map(|frame| builder.create_vector(frame.bytes()))
    }

    fn read(
        &self,
        field: &'static str,
        wire: Self::Read<'_>,
    ) -> Result<Option<StatusFrame>, Error> {
        let read = |bytes: Vector<'_, u8>| StatusFrame::read(bytes.bytes());
        wire.map(read).transpose().map_err(|cause| Error::Frame { field, cause })
    }

    #[cfg(test)]
    fn any(&self) -> BoxedStrategy<Option<StatusFrame>> {
        proptest::option::of(crate::tests::arbitrary::status().prop_map(|it| StatusFrame::of(&it)))
            .boxed()
    }
}
