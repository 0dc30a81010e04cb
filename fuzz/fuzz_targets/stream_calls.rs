//! The streaming decoder survives any input from the network and stays within its bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tautline_fec::stream::{Config, Decoder, Discard, Repair};
use tautline_fuzz::Input;

fuzz_target!(|bytes: &[u8]| calls(&mut Input(bytes)));

fn calls(input: &mut Input<'_>) {
    let config = Config {
        symbol_bytes: input.up_to(70),
        window_max: input.up_to(300),
        repairs_max: input.up_to(100),
    };
    let Ok(mut decoder) = Decoder::new(config) else { return };
    let (mut next_in_order, mut forgotten) = (0, 0);
    while !input.is_empty() {
        let operation = input.byte();
        let given = match operation & 0x80 {
            0 => config.symbol_bytes,
            _ => input.up_to(70),
        };
        let before = decoder.report();
        let id = id_near(input, before.next);
        let result = match operation % 8 {
            0..=2 => decoder.handle_source(id, &input.packet(given)),
            3..=5 => {
                let (count, seed) = (input.up_to(320) as u16, input.word() as u16);
                let count = if operation & 0x40 == 0 { count } else { seed.rotate_left(5) };
                decoder.handle_repair(&Repair { first: id, count, seed }, &input.packet(given))
            }
            6 => {
                decoder.forget_before(id);
                forgotten = forgotten.max(id);
                Ok(())
            }
            _ => {
                while decoder.poll().is_some_and(|(_, bytes)| bytes.len() == config.symbol_bytes) {}
                Ok(())
            }
        };
        if operation & 0x20 == 0 {
            while let Some((id, bytes)) = decoder.poll_in_order() {
                assert!(id >= next_in_order && id >= forgotten, "{id} is given too late");
                assert_eq!(bytes.len(), config.symbol_bytes);
                next_in_order = id + 1;
            }
        }
        let after = decoder.report();
        assert!(after.rank <= after.missing && after.rank <= config.repairs_max, "{after:?}");
        assert!(after.missing <= config.window_max, "{after:?}");
        assert!(after.edge <= after.next, "{after:?}");
        assert!(after.edge >= before.edge && after.next >= before.next, "{before:?} {after:?}");
        if matches!(result, Err(Discard::Length | Discard::Header | Discard::Ahead)) {
            assert_eq!(after, before, "a packet that was not taken changed something");
        }
    }
}

/// Returns a packet number from 199 before `next` to 54 after it, or, for one byte in 256, any
/// number.
fn id_near(input: &mut Input<'_>, next: u64) -> u64 {
    match input.byte() {
        255 => input.word(),
        distance @ 200.. => next.saturating_add(u64::from(distance - 200)),
        distance => next.saturating_sub(u64::from(distance)),
    }
}
