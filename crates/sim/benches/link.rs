//! Cost of simulating one link.

use std::time::Duration;

use divan::counter::ItemsCount;
use tautline_sim::link::{Config, Link};
use tautline_sim::preset;
use tautline_units::{Bitrate, ByteCount, Instant};

fn main() {
    divan::main();
}

/// Runs ten simulated seconds of 1250-byte packets at 2 MB/s, 16,000 packets; returns the number
/// delivered.
fn run(mut link: Link<()>) -> u64 {
    let mut now = Instant::ZERO;
    for _ in 0..16_000 {
        now += Duration::from_micros(625);
        let _ = link.push(now, ByteCount::new(1250), ());
        while link.pop(now).is_some() {}
    }
    link.counters().delivered
}

#[divan::bench]
fn constant(bencher: divan::Bencher<'_, '_>) {
    let config = Config::of_rate(Bitrate::from_mbps(20)).with_delay(Duration::from_millis(20));
    bencher
        .counter(ItemsCount::new(16_000_u64))
        .with_inputs(|| Link::new(&config, 1).expect("a sound link"))
        .bench_values(run);
}

#[divan::bench]
fn lte_driving(bencher: divan::Bencher<'_, '_>) {
    let config = Config { rate_mbps: Some(20.0), ..preset::lte_driving().up };
    bencher
        .counter(ItemsCount::new(16_000_u64))
        .with_inputs(|| Link::new(&config, 1).expect("a sound link"))
        .bench_values(run);
}
