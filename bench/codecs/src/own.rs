//! Tautline's own small messages, complete, with checked values and verified bytes.

use std::hint::black_box;

use tautline_message::{Builder, Command, Telemetry};

use crate::clock;
use crate::measure::Effort;

/// Size of a message in bytes, and minimum seconds to encode and to decode it.
pub(crate) struct Timing {
    pub(crate) name: &'static str,
    pub(crate) bytes: usize,
    pub(crate) encode: f64,
    pub(crate) decode: f64,
}

pub(crate) fn run(effort: Effort) -> Vec<Timing> {
    let (command, telemetry) = (command(), telemetry());
    let mut builder = Builder::new();
    let (commanded, told) = (command.encode(), telemetry.encode());
    let mut all = vec![
        Timing { name: "command", bytes: commanded.len(), encode: f64::MAX, decode: f64::MAX },
        Timing { name: "telemetry", bytes: told.len(), encode: f64::MAX, decode: f64::MAX },
    ];
    for _ in 0..effort.rounds {
        let time = best(|| {
            black_box(black_box(&command).encode_into(&mut builder).len());
        });
        all[0].encode = all[0].encode.min(time);
        let time = best(|| drop(black_box(Command::decode(black_box(&commanded)))));
        all[0].decode = all[0].decode.min(time);
        let time = best(|| {
            black_box(black_box(&telemetry).encode_into(&mut builder).len());
        });
        all[1].encode = all[1].encode.min(time);
        let time = best(|| drop(black_box(Telemetry::decode(black_box(&told)))));
        all[1].decode = all[1].decode.min(time);
    }
    all
}

fn best(mut work: impl FnMut()) -> f64 {
    let started = clock::now();
    for _ in 0..REPEATS {
        work();
    }
    started.elapsed().as_secs_f64() / f64::from(REPEATS)
}

fn command() -> Command {
    Command {
        sequence: 77,
        sent_at: tautline_units::Instant::from_millis(123_456),
        steering: 0.5,
        throttle: 0.25,
        brake: 0.0,
        emergency_stop: false,
        console: 0x0123_4567_89ab_cdef,
        cited: 12_345,
        ..Command::default()
    }
}

/// Returns a telemetry message of the schema's first version: later fields do not matter here.
fn telemetry() -> Telemetry {
    Telemetry::decode(include_bytes!("../../../crates/message/tests/evolution/telemetry.bin"))
        .expect("every later version reads it")
}

const REPEATS: u32 = 200;
