use super::*;

fn new() -> TwoState {
    TwoState::new(
        Bitrate::from_mbps(8),
        Bitrate::from_kbps(800),
        Bitrate::from_mbps(80),
        Turns::default(),
    )
}

/// A controller on a simulated link, and the queue in front of that link.
struct Line {
    control: TwoState,
    grant: Grant,
    queue: f64,
    now: Instant,
}

impl Line {
    fn new() -> Self {
        let control = new();
        let grant = control.initial();
        Self { control, grant, queue: 0.0, now: Instant::ZERO }
    }

    /// Runs `reports` reports over a link of `capacity` bit/s. The application sends at most
    /// `offered` bit/s, or what probing fills up. Returns the sustained rate of the last grant in
    /// bit/s.
    fn run(&mut self, reports: usize, capacity: f64, offered: f64) -> f64 {
        for _ in 0..reports {
            self.now += Duration::from_millis(100);
            let granted = self.grant.rate.as_f64();
            let sent = if self.grant.probing { granted } else { offered.min(granted) };
            let waiting = self.queue + sent * 0.1;
            let received = waiting.min(capacity * 0.1);
            self.queue = waiting - received;
            self.grant = self.control.on_report(&Evidence {
                sample: Some(Sample {
                    sent: Bitrate::from_bps(sent as u64),
                    received: Bitrate::from_bps((received * 10.0) as u64),
                }),
                ..Evidence::nothing(self.now)
            });
        }
        self.grant.sustained.as_f64()
    }
}

#[test]
fn it_settles_below_a_constant_capacity_without_a_queue() {
    let mut line = Line::new();
    line.run(300, 3e6, f64::MAX);
    for _ in 0..10 {
        let rate = line.run(20, 3e6, f64::MAX);
        assert!((2.1e6..=3.0e6).contains(&rate), "{rate}");
        // A probation above capacity fills at most 1.2 times it for 400 ms, then drains.
        assert!(line.queue <= 0.2 * 3e6 * 0.4 + 1.0, "{}", line.queue);
    }
}

#[test]
fn it_follows_a_drop_within_a_second_and_empties_the_queue() {
    let mut line = Line::new();
    line.run(100, 6e6, f64::MAX);
    let rate = line.run(10, 2e6, f64::MAX);
    assert!(rate < 3.5e6, "{rate}");
    let rate = line.run(30, 2e6, f64::MAX);
    assert!(rate < 2e6, "{rate}");
}

#[test]
fn it_rises_by_a_fifth_at_each_probation_when_there_is_room() {
    let mut line = Line::new();
    let before = line.run(15, 100e6, f64::MAX);
    let after = line.run(12, 100e6, f64::MAX);
    assert!((1.15..1.25).contains(&(after / before)), "{before} {after}");
}

#[test]
fn an_application_limited_rate_does_not_change() {
    let mut line = Line::new();
    assert_eq!(line.run(100, 20e6, 2e6), 8e6);
    assert_eq!(line.run(100, 20e6, 0.0), 8e6);
}

/// Returns the rate after ten reports of 2 Mbit/s sent and received, and two with half as much
/// received and a queueing delay of `queueing`.
fn after_a_dip(queueing: Duration) -> f64 {
    let mut control = new();
    let mut grant = control.initial();
    for report in 1..=12_u64 {
        let received = if report > 10 { 1_000 } else { 2_000 };
        grant = control.on_report(&Evidence {
            sample: Some(Sample {
                sent: Bitrate::from_kbps(2_000),
                received: Bitrate::from_kbps(received),
            }),
            queueing: Some(if report > 10 { queueing } else { Duration::ZERO }),
            ..Evidence::nothing(Instant::from_millis(report * 100))
        });
    }
    grant.sustained.as_f64()
}

#[test]
fn a_dip_of_an_unfilled_link_lowers_the_rate_only_with_a_queue() {
    assert_eq!(after_a_dip(Duration::from_millis(5)), 8e6);
    assert!(after_a_dip(Duration::from_millis(60)) < 2e6);
}

#[test]
fn a_dead_link_gets_the_floor() {
    let mut line = Line::new();
    line.run(20, 8e6, f64::MAX);
    assert_eq!(line.run(12, 0.0, f64::MAX), 0.8e6);
}

#[test]
fn silence_forgets_the_samples_and_keeps_the_rate() {
    let mut line = Line::new();
    let before = line.run(30, 5e6, f64::MAX);
    let grant = line.control.on_silent(line.now);
    assert_eq!((grant.sustained.as_f64(), grant.probing), (before, false));
}

#[test]
fn a_stall_forgets_the_samples_and_keeps_the_rate() {
    let mut line = Line::new();
    let before = line.run(30, 5e6, f64::MAX);
    line.control.on_stall(line.now);
    // Three reports are too few to judge by.
    assert_eq!(line.run(3, 0.0, f64::MAX), before);
}

#[test]
fn a_link_that_comes_out_of_a_trough_climbs_by_half_at_a_time() {
    let mut line = Line::new();
    line.run(100, 8e6, f64::MAX);
    let low = line.run(30, 1e6, f64::MAX);
    assert!(low < 1.5e6, "{low}");
    line.queue = 0.0;
    let after = line.run(80, 8e6, f64::MAX);
    assert!(after > 2.5 * low, "{low} {after}");
}

#[test]
fn probation_does_not_hold_a_link_at_the_floor() {
    let mut line = Line::new();
    assert_eq!(line.run(100, 0.5e6, f64::MAX), 0.8e6);
    line.queue = 0.0;
    let after = line.run(100, 8e6, f64::MAX);
    assert!(after > 1.5e6, "{after}");
}
