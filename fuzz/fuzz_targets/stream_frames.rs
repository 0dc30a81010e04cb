//! Whatever comes over a stream is datagrams or malformed, however it is cut, and what is read is written as
//! it came.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tautline_fuzz::Input;
use tautline_transport::wire::{Datagram, Frames, write_frame};

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let cut = input.up_to(255) + 1;
    let (bytes, mut frames, mut again) = (input.0, Frames::default(), Vec::new());
    'stream: for part in bytes.chunks(cut) {
        frames.push(part);
        loop {
            match frames.take() {
                Ok(Some(datagram)) => {
                    let _ = Datagram::parse(datagram);
                    write_frame(datagram, &mut again);
                }
                Ok(None) => break,
                Err(_) => break 'stream,
            }
        }
    }
    assert!(bytes.starts_with(&again));
});
