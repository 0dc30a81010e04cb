use flatbuffers::FlatBufferBuilder;

use crate::bulk::Bulk;

/// A buffer for encoding messages one after the other without reallocation.
pub struct Builder {
    flat: FlatBufferBuilder<'static>,
    /// Buffer for messages that are mostly one run of bytes: see [`crate::point_cloud`].
    pub(crate) bulk: Bulk,
}

impl Builder {
    /// Returns an empty builder; it grows to the longest message encoded.
    pub fn new() -> Self {
        let flat = FlatBufferBuilder::with_capacity(CAPACITY_BYTES);
        Self { flat, bulk: Bulk::default() }
    }

    /// Clears the previous message and returns the builder for the next.
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

/// Initial capacity in bytes: enough for every message except a point cloud.
const CAPACITY_BYTES: usize = 4096;
