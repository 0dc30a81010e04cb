use tautline_sim::preset::{Carrier, Preset};
use tautline_units::{Bitrate, Duration};

use crate::harness::{Run, Scenario, Step, bytes, clean};

/// The granted rate of the vehicle's first link, and the queue that its datagrams meet.
fn first(run: &Run) -> (Bitrate, Duration) {
    let link = run.sender().session.links().next().unwrap();
    (link.granted, link.rtt.unwrap().saturating_sub(link.rtt_min.unwrap()))
}

#[test]
fn two_state_settles_below_a_constant_capacity_without_a_standing_queue() {
    let mut scenario = Scenario::new(31, vec![clean(4.0, 25.0)]);
    scenario.media_most = Bitrate::from_mbps(20);
    scenario.run_ms = 10_000;
    let mut run = scenario.run();
    for second in 10..40 {
        run.until(second * 1_000);
        let (granted, queue) = first(&run);
        // Up to 1.2 times the capacity for 400 ms of a probation, and 0.8 of it right after.
        assert!(granted <= Bitrate::from_kbps(4_900), "{granted} at {second} s");
        assert!(granted >= Bitrate::from_kbps(2_000), "{granted} at {second} s");
        assert!(queue < Duration::from_millis(100), "{queue:?} at {second} s");
    }
    let share = run.delivered_share(10_000, 39_000);
    assert!(share > 0.99, "{share}");
}

#[test]
fn two_state_follows_a_drop_of_the_capacity() {
    // Two links of 8 Mbit/s; then one is cut and comes back through a link of a quarter: the same
    // as a cell change to a worse one.
    let mut scenario = Scenario::new(32, vec![clean(8.0, 25.0), clean(2.0, 25.0)]);
    scenario.media_most = Bitrate::from_mbps(20);
    scenario.steps = vec![(8_000, Step::Cut(0))];
    scenario.run_ms = 12_000;
    let run = scenario.run();
    let granted: Vec<_> = run.sender().session.links().map(|link| link.granted).collect();
    assert!(granted[1] < Bitrate::from_kbps(2_500), "{granted:?}");
    let (_, budget) = *run.sender().budgets.last().unwrap();
    assert!(budget < Bitrate::from_kbps(1_200), "{budget}");
    assert!(run.delivered_share(10_000, 11_700) > 0.95);
}

#[test]
fn an_idle_application_keeps_its_grant() {
    let mut scenario = Scenario::new(33, vec![clean(8.0, 25.0)]);
    scenario.media_most = Bitrate::from_kbps(50);
    scenario.run_ms = 10_000;
    let run = scenario.run();
    assert_eq!(first(&run).0, Bitrate::from_mbps(8));
    assert_eq!(run.delivered_share(500, 9_500), 1.0);
}

#[test]
fn four_driving_links_carry_the_picture() {
    let pairs = [(Carrier::A, 1), (Carrier::A, 2), (Carrier::B, 3), (Carrier::B, 4)];
    let links = pairs.map(|(carrier, seed)| Preset::LteDriving.pair_of(carrier, seed)).to_vec();
    let mut scenario = Scenario::new(34, links);
    scenario.media_most = Bitrate::from_mbps(6);
    scenario.run_ms = 60_000;
    let run = scenario.run();
    let share = run.delivered_share(2_000, 59_000);
    let budgets = &run.sender().budgets;
    let mean = budgets.iter().map(|(_, b)| b.as_f64()).sum::<f64>() / budgets.len() as f64;
    println!(
        "delivered {:.3} %, delay p50 {:.1} p95 {:.1} p99 {:.1} ms, budget mean {:.2} Mbit/s",
        share * 100.0,
        run.delay_ms(0.5),
        run.delay_ms(0.95),
        run.delay_ms(0.99),
        mean / 1e6,
    );
    let goodput: u64 = run.receiver().media.len() as u64;
    println!("units {goodput}, refused {}", run.sender().media_refused);
    for link in run.sender().session.links() {
        println!("{link:?}");
    }
    for (name, count) in run.receiver().session.counters().drops().filter(|(_, c)| *c > 0) {
        println!("receiver {name} {count}");
    }
    for (name, count) in run.sender().session.counters().drops().filter(|(_, c)| *c > 0) {
        println!("sender {name} {count}");
    }
    assert!(share > 0.97, "{share}");
    assert!(run.delay_ms(0.5) < 60.0);
}

#[test]
fn a_small_packet_size_is_kept() {
    let mut scenario = Scenario::new(35, vec![clean(8.0, 25.0)]);
    scenario.config.datagram_bytes_max = bytes(150);
    scenario.media_most = Bitrate::from_kbps(800);
    let run = scenario.run();
    assert_eq!(run.delivered_share(500, 4_500), 1.0);
    use tautline_sim::world::Direction::Up;
    let up = run.world.counters(run.links[0], Up);
    assert!(up.pushed_bytes.get() <= up.pushed * 150);
}
