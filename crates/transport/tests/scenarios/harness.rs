use tautline_scenario::faults::Faults;
use tautline_scenario::measure::{self, delays_ms, quantile};
use tautline_scenario::policies::{planner, rate};
use tautline_scenario::run::{self, Setup};
use tautline_scenario::script::Script;
use tautline_scenario::traffic::{Commands, Media, Traffic};
use tautline_sim::link::Pair;
use tautline_sim::world::Clock;
use tautline_transport::Config;
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

/// Two sessions in a simulated world: the vehicle sends media, the operator commands.
pub(crate) type Run = run::Run<Traffic>;

/// Parameters of a run.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) links: Vec<Pair>,
    /// Number of streams among the links; they are the last ones.
    pub(crate) streams: usize,
    /// Clocks of the vehicle and of the operator.
    pub(crate) clocks: [Clock; 2],
    pub(crate) config: Config,
    pub(crate) media: Media,
    pub(crate) faults: Faults,
    /// Stalls of both ends as in [`Setup`]; `None` for no stalls.
    pub(crate) stalls: Option<(Duration, Duration)>,
    pub(crate) script: Script,
    pub(crate) length: Duration,
}

impl Scenario {
    pub(crate) fn new(seed: u64, links: Vec<Pair>) -> Self {
        // Slices differ: every sixth is twice as large as the others.
        let media = Media::slices(360, Bitrate::from_mbps(4));
        Self {
            seed,
            links,
            streams: 0,
            clocks: Default::default(),
            config: Config::default(),
            media: Media { large_every: 6, large_factor: 2.0, ..media },
            faults: Faults::None,
            stalls: None,
            script: Script::default(),
            length: Duration::from_secs(5),
        }
    }

    pub(crate) fn run(&self) -> Run {
        let seed = std::env::var("SIM_SEED").ok().and_then(|text| text.parse().ok());
        let setup = Setup {
            streams: self.streams,
            clocks: self.clocks,
            faults: self.faults.clone(),
            stalls: self.stalls,
            log: true,
            ..Setup::new(seed.unwrap_or(self.seed), self.links.clone())
        };
        let vehicle = Traffic::default().with_media(self.media);
        let operator = Traffic::default().with_commands(Commands::default());
        let setup = setup.with_config(self.config.clone());
        let mut run = setup.start(vehicle, operator).unwrap();
        run.play(&self.script, Instant::ZERO + self.length);
        run
    }
}

/// Returns the share of the media units sent between `from` and `to` (ms) that were delivered.
pub(crate) fn delivered_share(run: &Run, from: u64, to: u64) -> f64 {
    measure::delivered_share(&run.media(), ms(from)..ms(to))
}

/// Returns the quantile `at`, 0 to 1, of the media units' delay, in milliseconds of world time.
pub(crate) fn delay_ms(run: &Run, at: f64) -> f64 {
    quantile(&mut delays_ms(&run.media()), at)
}

pub(crate) fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Returns a link of constant rate without losses.
pub(crate) fn clean(mbps: f64, delay_ms: f64) -> Pair {
    let rate = Bitrate::from_bps((mbps * 1e6) as u64);
    let config = tautline_sim::link::Config::of_rate(rate);
    Pair::symmetric(config.with_delay(Duration::from_nanos((delay_ms * 1e6) as u64)))
}

/// Returns a link that loses each datagram with this probability, in both directions.
pub(crate) fn lossy(mbps: f64, delay_ms: f64, loss: f64) -> Pair {
    let mut pair = clean(mbps, delay_ms);
    (pair.up.loss, pair.down.loss) = (loss, loss);
    pair
}

/// Returns a configuration with a fixed rate, independent of feedback.
pub(crate) fn fixed(kbps: u64) -> Config {
    let mut config = Config {
        controllers: rate::Kind::Fixed.factory(),
        planner: planner::Kind::EarliestDelivery.factory(planner::Code::default()),
        ..Config::default()
    };
    config.rate.initial = Bitrate::from_kbps(kbps);
    config
}

/// Returns bytes as a count.
pub(crate) fn bytes(count: u64) -> ByteCount {
    ByteCount::new(count)
}
