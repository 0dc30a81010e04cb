//! Any bytes of a stream are datagrams or malformed, however they are split. Parsed datagrams are
//! written back byte for byte.
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
