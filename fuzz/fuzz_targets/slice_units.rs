//! Whatever unit arrives in a slice's place, it is read or refused, and what is read is written again
//! as it came.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tautline_video::{Layout, Slice, stamp};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(slice) = Slice::parse(bytes.to_vec()) {
        assert!(usize::from(slice.strip) < Layout::STRIP_COUNT && !slice.bytes.is_empty());
        // A date at the end of all time has no room for the time of encoding after it.
        if slice.captured_at.as_nanos().checked_add(u64::from(u32::MAX)).is_some() {
            assert_eq!(slice.into_unit(), bytes);
        }
    }
    let stride = usize::from(bytes.first().copied().unwrap_or(0)) * 2;
    let _ = stamp::read(bytes, stride);
});
