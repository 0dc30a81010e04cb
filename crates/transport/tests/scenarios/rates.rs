use std::sync::Arc;

use tautline_scenario::policies::{planner, rate};
use tautline_scenario::traffic::Media;
use tautline_sim::link::{Config as LinkConfig, Pair};
use tautline_sim::preset::{Carrier, Preset};
use tautline_sim::trace::Trace;
use tautline_transport::Config;
use tautline_units::{Bitrate, ByteCount, Duration};

use crate::harness::{Run, Scenario, bytes, clean, delay_ms, delivered_share, lossy, ms};

/// Returns the paper's rate control with a code rate of 0.5.
fn two_state() -> Config {
    Config {
        controllers: rate::Kind::TwoState.factory(),
        planner: planner::Kind::EarliestDelivery.factory(planner::Code::default()),
        ..Config::default()
    }
}

/// Returns the granted rate of the vehicle's first link, and its queueing delay: the smoothed RTT
/// minus the minimum RTT.
fn first(run: &Run) -> (Bitrate, Duration) {
    let link = run.vehicle().session.links().next().unwrap();
    (link.granted, link.rtt.unwrap().saturating_sub(link.rtt_min.unwrap()))
}

#[test]
fn two_state_settles_below_capacity_without_a_standing_queue() {
    let mut scenario = Scenario::new(31, vec![clean(4.0, 25.0)]);
    scenario.config = two_state();
    scenario.media.rate = Bitrate::from_mbps(20);
    scenario.length = Duration::from_secs(10);
    let mut run = scenario.run();
    for second in 10..40 {
        run.until(ms(second * 1_000));
        let (granted, queue) = first(&run);
        // Up to 1.2 times the capacity for 400 ms of a probation, and 0.8 of it right after.
        assert!(granted <= Bitrate::from_kbps(4_900), "{granted} at {second} s");
        assert!(granted >= Bitrate::from_kbps(2_000), "{granted} at {second} s");
        assert!(queue < Duration::from_millis(100), "{queue:?} at {second} s");
    }
    let share = delivered_share(&run, 10_000, 39_000);
    assert!(share > 0.99, "{share}");
}

/// Returns a link with varying capacity: each step is a rate in Mbit/s and the end of its time in
/// milliseconds.
fn stepped(steps: &[(f64, u32)]) -> Pair {
    let (mut text, mut bytes, mut from) = (String::new(), 0.0, 0);
    for (mbps, until) in steps {
        for millis in from..*until {
            bytes += mbps * 125.0;
            while bytes >= 1_500.0 {
                text += &format!("{millis}\n");
                bytes -= 1_500.0;
            }
        }
        from = *until;
    }
    let trace = Trace::parse(text.as_bytes(), Some(Duration::from_millis(from.into()))).unwrap();
    let up = LinkConfig::of_trace(Arc::new(trace)).with_delay(Duration::from_millis(25));
    Pair { up, ..clean(8.0, 25.0) }
}

#[test]
fn two_state_follows_a_drop_of_the_capacity_and_its_return() {
    let link = stepped(&[(8.0, 10_000), (2.0, 20_000), (8.0, 60_000)]);
    let mut scenario = Scenario::new(32, vec![link]);
    scenario.config = two_state();
    scenario.media.rate = Bitrate::from_mbps(20);
    scenario.length = Duration::from_secs(9);
    let mut run = scenario.run();
    let before = first(&run).0;
    assert!(before > Bitrate::from_kbps(4_500), "{before}");
    run.until(ms(11_500));
    let (granted, _) = first(&run);
    assert!(granted < Bitrate::from_kbps(2_000), "{granted}");
    run.until(ms(14_000));
    let (granted, queue) = first(&run);
    // A probation may be running, a fifth above the arrival rate.
    assert!(granted < Bitrate::from_kbps(2_600), "{granted}");
    assert!(queue < Duration::from_millis(60), "{queue:?}");
    run.until(ms(50_000));
    assert!(
        delivered_share(&run, 13_000, 19_000) > 0.98,
        "{}",
        delivered_share(&run, 13_000, 19_000)
    );
    let after = first(&run).0;
    assert!(after > Bitrate::from_kbps(4_500), "{after}");
}

#[test]
fn an_idle_application_keeps_its_grant() {
    let mut scenario = Scenario::new(33, vec![clean(8.0, 25.0)]);
    scenario.config = two_state();
    scenario.media.rate = Bitrate::from_kbps(50);
    scenario.length = Duration::from_secs(10);
    let run = scenario.run();
    assert_eq!(first(&run).0, Bitrate::from_mbps(8));
    assert_eq!(delivered_share(&run, 500, 9_500), 1.0);
}

#[test]
fn four_driving_links_carry_the_picture() {
    let pairs = [(Carrier::A, 1), (Carrier::A, 2), (Carrier::B, 3), (Carrier::B, 4)];
    let links = pairs.map(|(carrier, seed)| Preset::LteDriving.pair_of(carrier, seed)).to_vec();
    let mut scenario = Scenario::new(34, links);
    scenario.media.rate = Bitrate::from_mbps(6);
    scenario.length = Duration::from_secs(60);
    let run = scenario.run();
    let share = delivered_share(&run, 2_000, 59_000);
    let budgets = &run.vehicle().application.budgets;
    let mean = budgets.iter().map(|(_, b)| b.as_f64()).sum::<f64>() / budgets.len() as f64;
    println!(
        "delivered {:.3} %, delay p50 {:.1} p95 {:.1} p99 {:.1} ms, budget mean {:.2} Mbit/s",
        share * 100.0,
        delay_ms(&run, 0.5),
        delay_ms(&run, 0.95),
        delay_ms(&run, 0.99),
        mean / 1e6,
    );
    assert!(share > 0.97, "{share}");
    assert!(delay_ms(&run, 0.5) < 60.0);
}

#[test]
fn a_small_packet_size_is_kept() {
    let mut scenario = Scenario::new(35, vec![clean(8.0, 25.0)]);
    scenario.config.datagram_bytes_max = bytes(150);
    scenario.media.rate = Bitrate::from_kbps(800);
    let run = scenario.run();
    assert_eq!(delivered_share(&run, 500, 4_500), 1.0);
    use tautline_sim::world::Direction::Up;
    let up = run.world.counters(run.links()[0], Up);
    assert!(up.pushed_bytes.get() <= up.pushed * 150);
}

/// Random losses come in clusters; a limit derived from one once held an application back for
/// seconds.
#[test]
fn a_link_that_loses_by_chance_carries_what_is_asked_for() {
    let (asked, length) = (Bitrate::from_kbps(2_500), Duration::from_secs(8));
    let carried = |seed| {
        let media = Media::slices(240, asked);
        let links = vec![lossy(100.0, 1.0, 0.05)];
        let run = Scenario { media, length, ..Scenario::new(seed, links) }.run();
        let offered = &run.vehicle().application.media.offered;
        let accepted = offered.iter().filter(|unit| unit.accepted.is_some());
        let bytes: ByteCount = accepted.map(|unit| unit.bytes).sum();
        bytes.get() as f64 / (asked * length).get() as f64
    };
    let least = (1..=40).map(carried).fold(1.0, f64::min);
    assert!(least > 0.88, "{least}");
}
