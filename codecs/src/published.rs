//! The paper's Table 1: microseconds for 10,000 points, an i5-6200U of 2015.

/// Encode, decode, full projection, fixed field, repeating field: means.
pub(crate) const TABLE_1: [(&str, [f64; 5]); 11] = [
    ("Bincode", [263.2, 344.7, 350.8, 336.2, 336.3]),
    ("CapnprotoPacked", [786.2, 1552.5, 1440.8, 427.1, 427.6]),
    ("CapnprotoStandard", [346.9, 1197.5, 1063.9, 55.0, 45.3]),
    ("Colfer", [288.5, 124.6, 140.1, 82.4, 82.1]),
    ("FastCdr", [135.7, 155.9, 160.3, 101.6, 101.4]),
    ("FlatBuffers", [155.6, 75.7, 59.3, 0.1, 0.0]),
    ("Json", [3495.1, 11452.8, 11469.5, 11446.2, 11472.9]),
    ("Lcm", [113.5, 89.5, 106.7, 48.8, 48.7]),
    ("ProstProtobuf", [407.6, 975.4, 929.0, 914.3, 914.4]),
    ("QuickProtobuf", [914.4, 469.6, 392.1, 376.5, 378.0]),
    ("Commercial DDS", [1107.8, 1129.5, 863.3, 808.6, 778.9]),
];

/// The paper's five for the codec of that name there.
pub(crate) fn of(name: &str) -> Option<[f64; 5]> {
    TABLE_1.iter().find(|(known, _)| *known == name).map(|(_, times)| *times)
}
