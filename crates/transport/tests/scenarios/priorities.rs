//! Interaction of a session's channels on a 1 Mbit/s link.

use rand_chacha::ChaCha20Rng;
use tautline_scenario::endpoint::{Application, Moment};
use tautline_scenario::measure::{self, delays_ms, quantile};
use tautline_scenario::run::{Run, Setup};
use tautline_scenario::traffic::{Commands, Media, Traffic};
use tautline_transport::channel::{Order, Priority};
use tautline_transport::{ChannelNumber, Event, Session};
use tautline_units::{Bitrate, Duration, Instant};

use crate::channels::channel;
use crate::harness::{clean, ms};

/// Commands and media of a scenario, plus units of other channels.
struct Loaded {
    traffic: Traffic,
    flows: Vec<Flow>,
    opened: bool,
    /// Units received on other channels, with their lengths.
    came: Vec<(ChannelNumber, usize)>,
}

/// Units of one channel at even intervals.
struct Flow {
    opened: tautline_transport::Channel,
    bytes: usize,
    interval: Duration,
    at: Instant,
}

impl Loaded {
    fn new(traffic: Traffic, flows: Vec<Flow>) -> Self {
        Self { traffic, flows, opened: false, came: Vec::new() }
    }

    /// Returns the bytes received on `channel`.
    fn bytes(&self, channel: u8) -> usize {
        let of = self.came.iter().filter(|(number, _)| number.get() == channel);
        of.map(|(_, bytes)| bytes).sum()
    }
}

impl Application for Loaded {
    fn next_at(&self) -> Option<Instant> {
        self.flows.iter().map(|flow| flow.at).chain(self.traffic.next_at()).min()
    }

    fn produce(&mut self, session: &mut Session, _rng: &mut ChaCha20Rng, at: Moment) {
        if !self.opened {
            self.opened = true;
            self.flows.iter().for_each(|flow| session.open(flow.opened.clone()).unwrap());
        }
        for flow in &mut self.flows {
            while flow.at <= at.local() {
                flow.at += flow.interval;
                let (number, unit) = (flow.opened.number, vec![7; flow.bytes]);
                // Refused units do not arrive, which is counted.
                let _ = session.send(number, &unit, Duration::from_millis(250), at.local());
            }
        }
        self.traffic.produce(session, at);
    }

    fn handle_event(&mut self, session: &Session, event: Event, at: Moment) {
        match event {
            Event::Unit { channel, bytes, .. } if channel > ChannelNumber::MEDIA => {
                self.came.push((channel, bytes.len()));
            }
            Event::UnitLost { channel, .. } if channel > ChannelNumber::MEDIA => {}
            event => self.traffic.note(event, session.clock().map(|clock| clock.error()), at),
        }
    }

    fn begin(&mut self, start: Instant) {
        self.traffic.begin(start);
        self.flows.iter_mut().for_each(|flow| flow.at = start);
    }
}

fn flow(
    (number, order, priority): (u8, Order, Priority),
    cap_kbps: u64,
    bytes: usize,
    interval: Duration,
) -> Flow {
    let opened = channel(number, order, priority, cap_kbps);
    Flow { opened, bytes, interval, at: Instant::ZERO }
}

/// Returns a load far above the capacity: 40 Mbit/s.
fn everything() -> Vec<Flow> {
    let millis = Duration::from_millis;
    vec![
        flow((2, Order::NewestWins, Priority::Feedback), 256, 120, millis(1)),
        flow((3, Order::NewestWins, Priority::Telemetry), 512, 1_000, millis(1)),
        flow((4, Order::NewestWins, Priority::Telemetry), 256, 2_000, millis(2)),
        flow((5, Order::NewestWins, Priority::Telemetry), 128, 40, millis(1)),
        data(20, 20_000),
        data(21, 20_000),
    ]
}

fn data(number: u8, cap_kbps: u64) -> Flow {
    let treatment = (number, Order::ByDeadline, Priority::Data);
    flow(treatment, cap_kbps, 2_000, Duration::from_millis(2))
}

/// Returns the delays in milliseconds of the commands sent from 5 to 19 s, the number of those
/// lost, and the run, which ends at 20 s.
fn commands(flows: Vec<Flow>) -> (Vec<f64>, usize, Run<Loaded>) {
    let setup = Setup::new(7, vec![clean(1.0, 20.0)]);
    let operator = Traffic::default().with_commands(Commands::default());
    let vehicle = Loaded::new(Traffic::default(), Vec::new());
    let mut run = setup.start(vehicle, Loaded::new(operator, flows)).unwrap();
    run.until(ms(20_000));
    let (from, to) = (&run.operator().application, &run.vehicle().application);
    let units = measure::units(&from.traffic.commands.offered, &to.traffic.commands.received);
    let steady: Vec<_> = measure::within(&units, ms(5_000)..ms(19_000)).collect();
    let lost = steady.iter().filter(|unit| unit.delay().is_none()).count();
    (delays_ms(steady), lost, run)
}

#[test]
fn no_other_channel_at_any_rate_delays_a_command() {
    let (mut unloaded, _, _) = commands(Vec::new());
    let (mut loaded, lost, run) = commands(everything());
    assert_eq!(lost, 0);
    let (before, after) = (quantile(&mut unloaded, 0.99), quantile(&mut loaded, 0.99));
    assert!(after - before <= 5.0, "p99 {before:.1} ms alone, {after:.1} ms with all others");
    let vehicle = &run.vehicle().application;
    for number in [2, 3, 4, 5] {
        assert!(vehicle.bytes(number) > 20_000, "{number}: {} B", vehicle.bytes(number));
    }
    // Unsent units are counted by name.
    let session = &run.operator().session;
    assert!(session.units(ChannelNumber::new(3)).displaced > 10_000);
    let data = session.units(ChannelNumber::new(20));
    assert!(data.refused_congested + data.expired > 5_000, "{data:?}");
    assert_eq!(data.offered, data.accepted + data.refused());
}

#[test]
fn data_alone_takes_most_of_a_link_and_delays_no_command() {
    let (mut unloaded, _, _) = commands(Vec::new());
    let (mut loaded, lost, run) = commands(vec![data(20, 20_000)]);
    assert_eq!(lost, 0);
    let (before, after) = (quantile(&mut unloaded, 0.99), quantile(&mut loaded, 0.99));
    assert!(after - before <= 5.0, "p99 {before:.1} ms alone, {after:.1} ms with data");
    let bytes = run.vehicle().application.bytes(20);
    let rate = Bitrate::of(tautline_units::ByteCount::new(bytes as u64), Duration::from_secs(20));
    assert!(rate > Bitrate::from_kbps(350), "{rate} of 1 Mbit/s");
}

/// Returns the share of the media units sent from 5 to 19 s that were in time, the bytes of these
/// units, and the data bytes received in the whole run of 20 s.
fn media(flows: Vec<Flow>) -> (f64, f64, usize) {
    let setup = Setup::new(9, vec![clean(1.0, 20.0), clean(2.0, 30.0)]);
    let media = Media::slices(180, Bitrate::from_kbps(600));
    let deadline = media.deadline;
    let vehicle = Loaded::new(Traffic::default().with_media(media), flows);
    let operator = Traffic::default().with_commands(Commands::default());
    let mut run = setup.start(vehicle, Loaded::new(operator, Vec::new())).unwrap();
    run.until(ms(20_000));
    let (from, to) = (&run.vehicle().application, &run.operator().application);
    let units = measure::units(&from.traffic.media.offered, &to.traffic.media.received);
    let steady: Vec<_> = measure::within(&units, ms(5_000)..ms(19_000)).collect();
    let on_time = steady.iter().filter(|unit| unit.on_time(deadline).is_some()).count();
    let bytes: u64 = steady.iter().map(|unit| unit.offered.bytes.get()).sum();
    (on_time as f64 / steady.len() as f64, bytes as f64, to.bytes(20) + to.bytes(21))
}

#[test]
fn data_leaves_medias_on_time_share_where_it_was() {
    let (alone, bytes_alone, _) = media(Vec::new());
    let (beside, bytes_beside, data) = media(vec![data(20, 20_000), data(21, 20_000)]);
    assert!(beside >= alone - 0.002, "{alone} of media in time alone, {beside} with data");
    // Media does not shrink to make room for it either.
    assert!(bytes_beside > bytes_alone * 0.97, "{bytes_alone} B alone, {bytes_beside} B with data");
    assert!(data > 100_000, "{data} B of data went through what media left");
}

/// Commands far more frequent than any operator sends; from some time on they carry a stop. With an
/// interval of zero, an end that only receives them.
struct Flood {
    interval: Duration,
    at: Instant,
    stops_at: Instant,
    /// World time at which this end first sent, or received, a command with the stop; `None`
    /// before.
    stopped_at: Option<Instant>,
}

impl Flood {
    fn new(interval: Duration) -> Self {
        Self { interval, at: Instant::ZERO, stops_at: Instant::ZERO, stopped_at: None }
    }
}

impl Application for Flood {
    fn next_at(&self) -> Option<Instant> {
        (self.interval > Duration::ZERO).then_some(self.at)
    }

    fn produce(&mut self, session: &mut Session, _rng: &mut ChaCha20Rng, at: Moment) {
        while self.interval > Duration::ZERO && self.at <= at.local() {
            let stops = self.at >= self.stops_at;
            let unit = [u8::from(stops); 60];
            if stops {
                self.stopped_at.get_or_insert(at.world());
            }
            self.at += self.interval;
            let deadline = Duration::from_millis(250);
            let _ = session.send(ChannelNumber::COMMAND, &unit, deadline, at.local());
        }
    }

    fn handle_event(&mut self, _session: &Session, event: Event, at: Moment) {
        let Event::Unit { channel: ChannelNumber::COMMAND, bytes, .. } = event else { return };
        if bytes[0] == 1 {
            self.stopped_at.get_or_insert(at.world());
        }
    }

    fn begin(&mut self, start: Instant) {
        (self.at, self.stops_at) = (start, start + Duration::from_millis(1_500));
    }
}

#[test]
fn a_flood_of_commands_delays_no_stop_that_is_among_them() {
    for (per_second, mbps) in [(50, 1.0), (5_400, 1.0), (50_000, 1.0), (5_400, 20.0)] {
        let setup = Setup::new(11, vec![clean(mbps, 20.0), clean(mbps, 20.0)]);
        let operator = Flood::new(Duration::from_nanos(1_000_000_000 / per_second));
        let mut run = setup.start(Flood::new(Duration::ZERO), operator).unwrap();
        run.until(ms(4_000));
        let asked_at = run.operator().application.stopped_at.expect("somebody stops");
        let stopped_at = run.vehicle().application.stopped_at.expect("the stop comes");
        let took = stopped_at.since(asked_at);
        assert!(took <= Duration::from_millis(45), "{took:?} at {per_second}/s, {mbps} Mbit/s");
        let commands = run.operator().session.units(ChannelNumber::COMMAND);
        assert!(per_second == 50 || commands.displaced > commands.offered / 2, "{commands:?}");
        assert!(per_second > 50 || commands.displaced == 0);
    }
}

#[test]
fn a_topic_below_its_cap_goes_where_media_would_take_all() {
    for cap_kbps in [300, 3_000] {
        let scan = (20, Order::NewestWins, Priority::Data);
        let scan = flow(scan, cap_kbps, 936, Duration::from_millis(100));
        let setup = Setup::new(9, vec![clean(2.0, 20.0), clean(2.0, 30.0)]);
        // Twice the capacity of the links: excess units are refused.
        let media = Media::slices(180, Bitrate::from_mbps(8));
        let vehicle = Loaded::new(Traffic::default().with_media(media), vec![scan]);
        let operator = Traffic::default().with_commands(Commands::default());
        let mut run = setup.start(vehicle, Loaded::new(operator, Vec::new())).unwrap();
        run.until(ms(20_000));
        let came = run.operator().application.bytes(20) / 936;
        let said = run.vehicle().session.units(ChannelNumber::new(20));
        assert!(
            came as u64 * 100 >= said.offered * 90,
            "{came} of {said:?}, cap {cap_kbps} kbit/s"
        );
    }
}
