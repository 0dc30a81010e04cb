//! Ways back that are thin or slow.

use tautline_sim::link::Pair;
use tautline_transport::Config;
use tautline_units::{Bitrate, ByteCount, Duration};

use crate::harness::{Run, Scenario, clean, delivered_share};

/// Returns two Mbit/s of media out over links of eight, as sessions are by default.
fn out(seed: u64, links: Vec<Pair>) -> Scenario {
    let mut scenario = Scenario::new(seed, links);
    scenario.config = Config { media_deadline: Duration::from_millis(100), ..Config::default() };
    scenario.media.rate = Bitrate::from_mbps(2);
    scenario.media.deadline = Duration::from_millis(100);
    scenario.length = Duration::from_secs(10);
    scenario
}

fn thin(kbps: f64) -> Pair {
    Pair { down: clean(kbps / 1e3, 15.0).down, ..clean(8.0, 15.0) }
}

/// Returns the commands that came, and the operator's bytes on each link.
fn commands(run: &Run) -> (usize, Vec<ByteCount>) {
    let bytes = run.operator().session.links().map(|link| link.bytes_sent).collect();
    (run.vehicle().application.commands.received.len(), bytes)
}

#[test]
fn what_returns_fits_the_way_back() {
    for (seed, kbps, count) in [(1, 128.0, 1), (2, 128.0, 4), (3, 64.0, 1), (4, 64.0, 4)] {
        let run = out(seed, vec![thin(kbps); count]).run();
        let share = delivered_share(&run, 2_000, 9_800);
        let (came, bytes) = commands(&run);
        assert!(share == 1.0, "{count} of {kbps} kbit/s: {share}");
        // Of 490; in the first seconds many are left out or late, until the way is known.
        let least = if kbps > 100.0 { 450 } else { 350 };
        assert!(came > least, "{count} of {kbps} kbit/s: {came}");
        let most = (kbps * 1e3 / 8.0 * 10.0) as u64;
        assert!(bytes.iter().all(|bytes| bytes.get() < most), "{bytes:?}");
    }
}

#[test]
fn ways_that_do_not_carry_what_is_due_get_less_and_no_queue() {
    for count in [1, 4] {
        let run = out(5, vec![thin(48.0); count]).run();
        let (came, bytes) = commands(&run);
        assert_eq!(delivered_share(&run, 2_000, 9_800), 1.0, "{count} links");
        // They come, and beyond the first seconds none waits for long.
        assert!(came > 100, "{count} links: {came}");
        assert!(bytes.iter().all(|bytes| bytes.get() < 60_000), "{bytes:?}");
        let owds = run.operator().session.links().map(|link| link.owd_out.unwrap());
        assert!(owds.into_iter().all(|owd| owd < Duration::from_millis(180)));
    }
}

#[test]
fn a_slow_way_back_costs_no_media() {
    for count in [1, 4] {
        let slow = Pair { down: clean(8.0, 200.0).down, ..clean(8.0, 15.0) };
        let run = out(6, vec![slow; count]).run();
        assert_eq!(delivered_share(&run, 1_000, 9_800), 1.0, "{count} links");
        let refused = run.media().iter().filter(|unit| unit.offered.accepted.is_none()).count();
        assert!(refused < 100, "{refused}");
    }
}

#[test]
fn a_roomy_way_back_is_told_as_before() {
    let run = out(7, vec![clean(8.0, 15.0)]).run();
    let link = run.operator().session.links().next().unwrap();
    // 50 commands, 50 pongs, 50 pings and 100 reports a second, some of them together.
    assert!(link.datagrams_sent > 1_500, "{}", link.datagrams_sent);
    assert_eq!(delivered_share(&run, 500, 9_800), 1.0);
}
