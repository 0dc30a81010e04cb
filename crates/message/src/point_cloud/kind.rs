use crate::wire::{Kind, NAME_BYTES_MAX};

/// Maximum number of fields of a record, beyond which a cloud is refused.
pub(super) const FIELD_COUNT_MAX: usize = 32;
/// Maximum length of a record in bytes, beyond which a cloud is refused.
pub(super) const STRIDE_MAX: u64 = 1024;
/// Maximum length of all records of a cloud in bytes, beyond which it is refused.
pub(super) const DATA_BYTES_MAX: usize = 16 << 20;

/// Limits of a point cloud.
pub(super) const KIND: Kind = Kind {
    name: "point cloud",
    identifier: None,
    bytes_max: DATA_BYTES_MAX + 16 * NAME_BYTES_MAX * FIELD_COUNT_MAX,
    // The cloud, its pose of three tables, and its fields; twice the maximum number of fields, so
    // that the error for one too many names the field.
    tables_max: 4 + 2 * FIELD_COUNT_MAX,
    depth_max: 3,
};
