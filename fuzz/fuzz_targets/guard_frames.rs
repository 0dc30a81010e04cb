//! Any bytes, and any payload under a valid header, are a guard frame or are rejected. An accepted
//! frame re-encodes to its own bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tautline_fuzz::Input;
use tautline_guard::MachineState;
use tautline_guard::frame::{
    Control, Description, Frame, Proposal, Receiver, Status, Value, decode, encode,
};

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    match input.up_to(5) {
        0 => receives::<Control>(input),
        1 => receives::<MachineState>(input),
        2 => receives::<Proposal>(input),
        3 => receives::<Status>(input),
        4 => receives::<Description>(input),
        _ => receives::<Value>(input),
    }
});

fn receives<F: Frame>(mut input: Input<'_>) {
    let mut receiver = Receiver::<F>::default();
    let (mut refused, mut counter) = (0, 0_u16);
    while !input.is_empty() {
        let is_sealed = input.byte() % 4 != 0;
        // Frames may end in optional numbers: try different counts.
        let numbers = if F::BYTES_LEAST < F::BYTES { 4 * input.up_to(9) } else { 0 };
        let length = if is_sealed { F::BYTES_LEAST + numbers } else { input.up_to(420) };
        let (bytes, rest) = input.0.split_at(length.min(input.0.len()));
        let mut bytes = bytes.to_vec();
        input.0 = rest;
        if is_sealed {
            // Usually the next counter value, sometimes any.
            counter = counter.wrapping_add(u16::from(input.byte() % 16));
            bytes.resize(length, 0);
            seal(&mut bytes, F::DATA_ID, counter);
        }
        let received = receiver.receive(&bytes);
        refused += u64::from(received.is_err());
        assert_eq!(receiver.refused_count(), refused);
        if let Ok(frame) = received {
            let again = encode(&frame, counter);
            let (decoded, number) = decode::<F>(again.as_ref()).expect("its own bytes");
            assert_eq!(number, counter);
            // Compare bytes: NaN equals nothing.
            assert_eq!(encode(&decoded, counter).as_ref(), again.as_ref());
        }
    }
}

/// Overwrites the first 12 bytes with a valid header: length, counter, `data_id` and CRC, all in
/// big-endian order.
fn seal(bytes: &mut [u8], data_id: u32, counter: u16) {
    let length = bytes.len() as u16;
    bytes[..2].copy_from_slice(&length.to_be_bytes());
    bytes[2..4].copy_from_slice(&counter.to_be_bytes());
    bytes[4..8].copy_from_slice(&data_id.to_be_bytes());
    let crc = [&bytes[..8], &bytes[12..]].concat().iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            // CRC-32/P4, its polynomial reflected.
            crc >> 1 ^ if crc & 1 == 1 { 0xC8DF_352F } else { 0 }
        })
    });
    bytes[8..12].copy_from_slice(&(!crc).to_be_bytes());
}
