//! Speed of virtual time: two real sessions over four links, 10 Mbit/s of media.
//!
//! Items are virtual seconds: "100 item/s" is a hundred times real time. One core runs everything,
//! including the link models, encryption and the repair packets of both ends.

use std::time::Duration;

use divan::counter::ItemsCount;
use tautline_scenario::policies::rate;
use tautline_scenario::run::{Run, Setup};
use tautline_scenario::traffic::{Commands, Media, Traffic};
use tautline_sim::preset;
use tautline_transport::Config;
use tautline_units::{Bitrate, Instant};

fn main() {
    divan::main();
}

const LINKS: usize = 4;

/// Number of media units per second: six slices for each of sixty pictures.
const UNITS_PER_SECOND: u64 = 360;

const MEDIA: Bitrate = Bitrate::from_mbps(10);

/// Rate of each of the four links: twice a quarter of the media rate, plus a fifth for headers,
/// reports and pings.
const PER_LINK: Bitrate = Bitrate::from_kbps(6_000);

const SECONDS: u64 = 5;

#[divan::bench(sample_count = 10, sample_size = 1)]
fn four_links_at_10_mbps(bencher: divan::Bencher<'_, '_>) {
    let bencher = bencher.counter(ItemsCount::new(SECONDS));
    bencher.with_inputs(established).bench_values(|mut run| {
        let before = run.operator().application.media.received.len() as u64;
        let from = run.world.now();
        run.until(from + Duration::from_secs(SECONDS));
        let units = run.operator().application.media.received.len() as u64 - before;
        assert!(units >= SECONDS * UNITS_PER_SECOND * 97 / 100, "only {units} units came");
        run
    });
}

/// Returns a run whose sessions have exchanged keys and know their links.
fn established() -> Run<Traffic> {
    let controllers = rate::Kind::Fixed.factory();
    let mut config = Config { controllers, ..Config::default() };
    config.rate.initial = PER_LINK;
    let setup = Setup::new(1, vec![preset::model(PER_LINK); LINKS]).with_config(config);
    let media = Media { adapts: false, ..Media::slices(UNITS_PER_SECOND, MEDIA) };
    let vehicle = Traffic::default().with_media(media);
    let operator = Traffic::default().with_commands(Commands::default());
    let mut run = setup.start(vehicle, operator).expect("sound");
    run.until(Instant::from_millis(2_000));
    run
}
