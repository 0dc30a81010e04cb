//! Any unit in place of a slice is parsed or rejected. A parsed one is written back byte for byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tautline_video::{Layout, Slice, stamp};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(slice) = Slice::parse(bytes.to_vec()) {
        assert!(usize::from(slice.strip) < Layout::STRIP_COUNT && !slice.bytes.is_empty());
        // At the maximum capture time, the encoding time after it would overflow.
        if slice.captured_at.as_nanos().checked_add(u64::from(u32::MAX)).is_some() {
            assert_eq!(slice.into_unit(), bytes);
        }
    }
    let stride = usize::from(bytes.first().copied().unwrap_or(0)) * 2;
    let _ = stamp::read(bytes, stride);
});
