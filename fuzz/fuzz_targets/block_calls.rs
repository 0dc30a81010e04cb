//! Calls with any indices and lengths return, and a rejected call writes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tautline_fec::block::{Code, Scheme};
use tautline_fuzz::Input;

fuzz_target!(|bytes: &[u8]| calls(&mut Input(bytes)));

fn calls(input: &mut Input<'_>) {
    let (source_count, packet_count) = (input.up_to(300), input.up_to(300));
    let scheme = [Scheme::Cauchy, Scheme::Fft][input.up_to(1)];
    let Ok(code) = Code::with_scheme(scheme, source_count, packet_count) else { return };
    // Usually use one length, and indices within the block, so that the checks can pass.
    let length = input.up_to(130);
    let irregular = input.byte();
    let one_length = |input: &mut Input<'_>| match irregular & 1 {
        0 => length,
        _ => input.up_to(130),
    };
    let highest = match irregular & 2 {
        0 => packet_count - 1,
        _ => packet_count + 40,
    };
    let packets = |input: &mut Input<'_>, most: usize| -> Vec<(usize, Box<[u8]>)> {
        let count = input.up_to(most);
        (0..count)
            .map(|_| {
                let (index, length) = (input.up_to(highest), one_length(input));
                (index, vec![FILLING; length].into_boxed_slice())
            })
            .collect()
    };

    let sources = packets(input, 2 * source_count);
    let sources: Vec<&[u8]> = sources.iter().map(|(_, packet)| &**packet).collect();
    let mut repairs = packets(input, 300);
    let mut outputs: Vec<&mut [u8]> = repairs.iter_mut().map(|(_, packet)| &mut **packet).collect();
    if code.encode(&sources, &mut outputs).is_err() {
        assert!(repairs.iter().all(|(_, packet)| packet.iter().all(|&byte| byte == FILLING)));
    }

    let received = packets(input, 2 * source_count);
    let received: Vec<(usize, &[u8])> =
        received.iter().map(|(index, packet)| (*index, &**packet)).collect();
    let mut restored = packets(input, 40);
    let mut missing: Vec<(usize, &mut [u8])> =
        restored.iter_mut().map(|(index, packet)| (*index, &mut **packet)).collect();
    if code.recover(&received, &mut missing).is_err() {
        assert!(restored.iter().all(|(_, packet)| packet.iter().all(|&byte| byte == FILLING)));
    }
}

const FILLING: u8 = 0xEE;
