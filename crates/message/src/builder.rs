use flatbuffers::FlatBufferBuilder;

use crate::point_cloud::bulk::Bulk;

/// A buffer that messages are encoded into, one after the other, without allocating anew.
pub struct Builder {
    flat: FlatBufferBuilder<'static>,
    /// For messages that mostly are one run of bytes: see [`crate::point_cloud`].
    pub(crate) bulk: Bulk,
}

impl Builder {
    /// Returns an empty builder; grows to the longest message it has encoded.
    pub fn new() -> Self {
        let flat = FlatBufferBuilder::with_capacity(CAPACITY_BYTES);
        Self { flat, bulk: Bulk::default() }
    }

    /// Forgets the message before and gives the builder for the next.
    pub(crate) fn fresh(&mut self) -> &mut FlatBufferBuilder<'static> {
        self.flat.reset();
        &mut self.flat
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").finish_non_exhaustive()
    }
}

/// Room for every message but a point cloud, without growing.
const CAPACITY_BYTES: usize = 4096;
