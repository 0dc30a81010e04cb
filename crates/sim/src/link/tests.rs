use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tautline_units::Bitrate;

use super::*;
use crate::trace::Trace;

const PACKET: ByteCount = ByteCount::new(1000);

fn bare(mbps: u64) -> Config {
    Config { overhead_bytes: 0, ..Config::of_rate(Bitrate::from_mbps(mbps)) }
}

fn link<P>(config: &Config, seed: u64) -> Link<P> {
    Link::new(config, seed).expect("a sound link")
}

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Keeps the queue full for `seconds` and returns what arrived.
fn saturate(link: &mut Link<u64>, seconds: u64) -> Vec<(Instant, u64)> {
    let (mut arrived, mut number) = (Vec::new(), 0);
    for millis in 0..seconds * 1_000 {
        let now = ms(millis);
        loop {
            number += 1;
            if link.push(now, PACKET, number) == Err(Drop::Queue) {
                break;
            }
        }
        while let Some(packet) = link.pop(now) {
            arrived.push(packet);
        }
    }
    arrived
}

fn rate_of(link: &Link<u64>, seconds: u64) -> f64 {
    let bytes = link.counters().delivered_bytes;
    Bitrate::of(bytes, Duration::from_secs(seconds)).as_f64() / 1e6
}

#[test]
fn a_constant_rate_is_kept() {
    let mut link = link(&bare(8), 1);
    let arrived = saturate(&mut link, 20);
    assert!((rate_of(&link, 20) / 8.0 - 1.0).abs() < 0.001, "{}", rate_of(&link, 20));
    let even =
        arrived.windows(2).all(|pair| pair[1].0.since(pair[0].0) == Duration::from_millis(1));
    assert!(even, "1000 bytes at 8 Mbit/s leave each millisecond");
}

#[test]
fn a_swinging_rate_keeps_its_mean_and_swings() {
    let config = Config { swing: Some(Swing { sigma: 0.25, tau_ms: 80.0 }), ..bare(8) };
    let mut link = link(&config, 2);
    let arrived = saturate(&mut link, 400);
    assert!((rate_of(&link, 400) / 8.0 - 1.0).abs() < 0.01, "{}", rate_of(&link, 400));
    let mut counts = vec![0_u32; 40_000];
    for (at, _) in &arrived {
        counts[at.as_millis() as usize / 10] += 1;
    }
    let logs: Vec<f64> = counts.iter().skip(10).map(|c| f64::from(*c).max(0.5).ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let deviation =
        (logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / logs.len() as f64).sqrt();
    assert!((0.22..0.28).contains(&deviation), "deviation {deviation}");
}

#[test]
fn overhead_counts_towards_the_rate() {
    let config = Config::of_rate(Bitrate::from_mbps(8));
    let mut link = link(&config, 1);
    saturate(&mut link, 10);
    let with_headers = rate_of(&link, 10) * 1028.0 / 1000.0;
    assert!((with_headers / 8.0 - 1.0).abs() < 0.001, "{with_headers}");
}

#[test]
fn the_queue_is_bounded_by_bytes_and_drops_the_tail() {
    let config = Config { queue_bytes: 10_000, ..bare(8) };
    let mut link = link(&config, 3);
    let fates: Vec<_> = (0..15).map(|number| link.push(Instant::ZERO, PACKET, number)).collect();
    assert!(fates[..10].iter().all(Result::is_ok));
    assert!(fates[10..].iter().all(|fate| *fate == Err(Drop::Queue)));
    assert_eq!(link.queued(), ByteCount::new(10_000));
    assert_eq!(link.push(ms(1), PACKET, 99), Ok(()), "one has left after a millisecond");
    let arrived: Vec<u64> = std::iter::from_fn(|| link.pop(ms(100))).map(|(_, n)| n).collect();
    assert_eq!(arrived, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 99]);
    assert_eq!(link.counters().dropped(Drop::Queue), 5);
    assert_eq!(link.queued(), ByteCount::ZERO);
}

#[test]
fn a_packet_arrives_after_its_transmission_and_its_delay() {
    let mut link = link(&bare(8).with_delay(Duration::from_millis(20)), 4);
    link.push(ms(5), PACKET, ()).expect("goes");
    assert_eq!(link.next_departure(), Some(ms(26)));
    assert_eq!(link.pop(ms(25)), None);
    assert_eq!(link.pop(ms(30)), Some((ms(26), ())));
    assert_eq!(link.next_departure(), None);
}

#[test]
fn jitter_and_retransmissions_delay_but_do_not_reorder() {
    let config = Config {
        jitter: Some(Jitter { sigma_ms: 20.0, tau_ms: 50.0 }),
        retransmission: Some(Retransmission { probability: 0.3, delay_ms: 8.0 }),
        ..bare(100)
    };
    let run = |config: &Config| {
        let mut link = link(config, 5);
        for number in 0..2_000_u64 {
            link.push(ms(number), PACKET, number).expect("goes");
        }
        std::iter::from_fn(|| link.pop(ms(10_000))).collect::<Vec<_>>()
    };
    let kept = run(&config);
    assert!(kept.windows(2).all(|pair| pair[0].1 < pair[1].1 && pair[0].0 <= pair[1].0));
    let free = run(&Config { reorder: true, ..config });
    assert!(free.windows(2).all(|pair| pair[0].0 <= pair[1].0), "still by time of arrival");
    assert!(free.windows(2).any(|pair| pair[0].1 > pair[1].1), "but in another order");
    let delay = |(at, number): &(Instant, u64)| at.since(ms(*number)).as_secs_f64() * 1e3 - 0.08;
    let mean = free.iter().map(delay).sum::<f64>() / 2_000.0;
    let expected = 20.0 * (2.0 / std::f64::consts::PI).sqrt() + 8.0 * 0.3 / 0.7;
    assert!((mean - expected).abs() < 3.0, "mean {mean}, expected {expected}");
}

#[test]
fn independent_losses_have_their_share() {
    let mut link = link(&Config { loss: 0.02, ..bare(100) }, 6);
    for number in 0..100_000_u64 {
        let _ = link.push(ms(number), PACKET, number);
        while link.pop(ms(number)).is_some() {}
    }
    let lost = link.counters().dropped(Drop::Loss);
    // Four standard deviations of a binomial: 4 sqrt(100000 0.02 0.98) = 177.
    assert!(lost.abs_diff(2_000) < 177, "{lost}");
}

#[test]
fn burst_losses_have_their_share_and_their_length() {
    let burst = BurstLoss { enter: 0.01, leave: 0.25, loss: 1.0 };
    let mut link = link(&Config { burst_loss: Some(burst), ..bare(100) }, 7);
    let fates: Vec<bool> = (0..200_000_u64)
        .map(|number| {
            while link.pop(ms(number)).is_some() {}
            link.push(ms(number), PACKET, number).is_err()
        })
        .collect();
    let lost = fates.iter().filter(|lost| **lost).count() as f64;
    let bursts = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
    assert!((lost / 200_000.0 - 0.01 / 0.26).abs() < 0.003, "share {}", lost / 200_000.0);
    assert!((lost / bursts - 4.0).abs() < 0.25, "length {}", lost / bursts);
}

/// One packet each millisecond for `seconds`: the fate and delay of each.
fn stream(config: &Config, seed: u64, seconds: u64) -> Vec<Result<Duration, Drop>> {
    let mut link = link::<u64>(config, seed);
    let mut fates = Vec::new();
    for number in 0..seconds * 1_000 {
        fates.push(link.push(ms(number), PACKET, number).map(|()| Duration::ZERO));
        while let Some((at, number)) = link.pop(ms(number)) {
            fates[number as usize] = Ok(at.since(ms(number)));
        }
    }
    fates
}

#[test]
fn an_outage_that_loses_loses_and_does_not_delay() {
    let outage = Outage { every_s: 2.0, mean_ms: 200.0 };
    let fates = stream(&Config { outage_losing: Some(outage), ..bare(100) }, 8, 400);
    let lost = fates.iter().filter(|fate| **fate == Err(Drop::Outage)).count() as f64;
    assert!((lost / 400_000.0 - 0.2 / 2.2).abs() < 0.03, "share {}", lost / 400_000.0);
    assert!(fates.iter().flatten().all(|delay| *delay < Duration::from_millis(1)));
}

#[test]
fn an_outage_that_holds_delays_and_does_not_lose() {
    let outage = Outage { every_s: 2.0, mean_ms: 50.0 };
    let config = Config { outage_holding: Some(outage), queue_bytes: 2_000_000, ..bare(100) };
    let fates = stream(&config, 9, 100);
    assert!(fates.iter().all(Result::is_ok));
    let held = fates.iter().flatten().filter(|delay| **delay > Duration::from_millis(5)).count();
    assert!((500..6_000).contains(&held), "{held}");
}

#[test]
fn a_handover_is_a_step_of_delay_that_drains_at_the_links_rate() {
    let handover = Handover { step_ms: 300.0, every_s: [10.0, 30.0] };
    let config = Config { handover: Some(handover), queue_bytes: 1_000_000, ..bare(16) };
    let fates = stream(&config, 10, 60);
    let delays: Vec<f64> = fates.iter().flatten().map(|d| d.as_secs_f64() * 1e3).collect();
    assert_eq!(delays.len(), 60_000, "nothing is lost");
    let peaks: Vec<usize> =
        (1..delays.len()).filter(|i| delays[*i] > delays[i - 1] + 200.0).collect();
    assert!((2..=6).contains(&peaks.len()), "{peaks:?}");
    for start in peaks {
        assert!((299.0..301.0).contains(&delays[start]), "{}", delays[start]);
        // Half the capacity is free to drain what was held: as long again as the handover.
        assert!((delays[start + 300] - 150.0).abs() < 2.0, "{}", delays[start + 300]);
        assert!(delays[start + 610] < 1.0, "{}", delays[start + 610]);
    }
}

#[test]
fn both_directions_of_a_radio_are_interrupted_together() {
    let handover = Handover { step_ms: 300.0, every_s: [10.0, 30.0] };
    let config = Config { handover: Some(handover), loss: 0.1, ..bare(100) };
    let (mut up, mut down) = Pair::symmetric(config).links::<u64>(11).expect("a sound link");
    let (mut held, mut fates_differ) = (0, false);
    for number in 0..100_000 {
        let fates = [up.push(ms(number), PACKET, number), down.push(ms(number), PACKET, number)];
        fates_differ |= fates[0].is_ok() != fates[1].is_ok();
        let late = [&mut up, &mut down].map(|link| {
            let next = link.next_departure().is_some_and(|at| at > ms(number + 50));
            while link.pop(ms(number)).is_some() {}
            next
        });
        if fates.iter().all(Result::is_ok) && late.iter().all(|late| *late) {
            held += 1;
        }
    }
    assert!(held > 200, "{held}");
    assert!(fates_differ, "all else is their own");
}

#[test]
fn a_cut_link_loses_what_it_holds_and_what_comes() {
    let mut link = link(&bare(8).with_delay(Duration::from_millis(20)), 12);
    for number in 0..10 {
        link.push(Instant::ZERO, PACKET, number).expect("goes");
    }
    link.set_cut(true);
    assert_eq!(link.in_flight(), 0);
    assert_eq!(link.push(ms(1), PACKET, 10), Err(Drop::Cut));
    assert_eq!(link.pop(ms(1)), None);
    link.set_cut(false);
    link.push(ms(2), PACKET, 11).expect("goes");
    assert_eq!(link.next_departure(), Some(ms(23)), "the restored link is empty");
    assert_eq!(link.counters().dropped(Drop::Cut), 11);
}

#[test]
fn the_link_is_the_same_whatever_is_sent() {
    let config = Config {
        swing: Some(Swing { sigma: 0.5, tau_ms: 200.0 }),
        outage_holding: Some(Outage { every_s: 1.0, mean_ms: 100.0 }),
        jitter: Some(Jitter { sigma_ms: 3.0, tau_ms: 100.0 }),
        ..bare(8)
    };
    let probe = |before: u64| {
        let mut link = link(&config, 13);
        for number in 0..before {
            let _ = link.push(ms(number * 7), PACKET, number);
            while link.pop(ms(number * 7)).is_some() {}
        }
        let now = ms(60_000);
        while link.pop(now).is_some() {}
        link.push(now, PACKET, 0).expect("goes");
        link.next_departure()
    };
    assert_eq!(probe(0), probe(8_000));
}

#[test]
fn a_trace_is_followed_to_the_chance() {
    let trace = Trace::parse(b"0\n2\n2\n5\n", Some(Duration::from_millis(10))).expect("a trace");
    let config = Config { overhead_bytes: 0, ..Config::of_trace(Arc::new(trace)) };
    let mut link = link(&config, 14);
    for number in 0..6 {
        link.push(Instant::ZERO, ByteCount::new(1500), number).expect("goes");
    }
    let times: Vec<u64> =
        std::iter::from_fn(|| link.pop(ms(100))).map(|(at, _)| at.as_millis()).collect();
    assert_eq!(times, [0, 2, 2, 5, 10, 12]);
}

#[test]
fn a_chance_serves_what_waits_and_wastes_the_rest() {
    let trace = Trace::parse(b"0\n2\n5\n", Some(Duration::from_millis(10))).expect("a trace");
    let config = Config { overhead_bytes: 0, ..Config::of_trace(Arc::new(trace)) };
    let mut link = link(&config, 15);
    let mut push = |at, bytes| link.push(at, ByteCount::new(bytes), ()).expect("goes");
    push(ms(1), 700);
    push(ms(1), 700);
    push(ms(1), 700);
    push(Instant::from_micros(7_500), 1);
    let times: Vec<u64> =
        std::iter::from_fn(|| link.pop(ms(100))).map(|(at, _)| at.as_millis()).collect();
    assert_eq!(
        times,
        [2, 2, 5, 10],
        "two share a chance, the third needs the next one's first bytes"
    );
}

#[test]
fn a_trace_starts_where_it_is_told_and_scales() {
    let trace =
        Arc::new(Trace::parse(b"0\n4\n", Some(Duration::from_millis(10))).expect("a trace"));
    let mut config = Config { overhead_bytes: 0, ..Config::of_trace(trace) };
    let rate = config.trace.as_mut().expect("just made");
    (rate.start_s, rate.rate_factor) = (0.003, 2.0);
    assert_eq!(config.bitrate_mean(), Some(Bitrate::from_bps(4_800_000)));
    let mut link = link(&config, 16);
    for number in 0..4 {
        link.push(Instant::ZERO, ByteCount::new(1500), number).expect("goes");
    }
    let times: Vec<u64> =
        std::iter::from_fn(|| link.pop(ms(100))).map(|(at, _)| at.as_millis()).collect();
    assert_eq!(times, [1, 1, 7, 7]);
}

/// The recordings live outside the project: skipped, by name, where they are absent.
#[test]
fn recorded_traces_keep_their_rates() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/links");
    let files = [("lte-uplink-6mbps", 140, 5.95), ("evdo-uplink-1mbps-outages", 265, 0.83)];
    for (name, period_s, mbps) in files {
        let Ok(text) = std::fs::read(format!("{folder}/{name}.pps")) else {
            eprintln!("skipped: {folder}/{name}.pps is not there");
            continue;
        };
        let period = Duration::from_secs(period_s);
        let trace = Trace::parse(&text, Some(period)).expect("a recording");
        let config = Config { overhead_bytes: 0, ..Config::of_trace(Arc::new(trace)) };
        let mut link = link(&config, 17);
        saturate(&mut link, 2 * period_s);
        let rate = rate_of(&link, 2 * period_s);
        assert!((rate / mbps - 1.0).abs() < 0.01, "{name}: {rate} Mbit/s");
    }
}

#[derive(Clone, Debug)]
enum Call {
    Push(u64, u64),
    Pop(u64),
    Cut(bool),
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let time = prop_oneof![
        20 => 0_u64..20_000_000_000,
        1 => any::<u64>(),
    ];
    let len = prop_oneof![20 => 0_u64..3_000, 1 => any::<u64>()];
    let call = prop_oneof![
        6 => (time.clone(), len).prop_map(|(at, len)| Call::Push(at, len)),
        4 => time.prop_map(Call::Pop),
        1 => any::<bool>().prop_map(Call::Cut),
    ];
    proptest::collection::vec(call, 0..100)
}

prop_compose! {
    fn configs()(
        rate in 0.05..1000.0, swing: bool, trace: bool, sigma in 0.0..2.0,
        queue_bytes in 1_u64..200_000, delay_ms in 0.0..1e3, loss in 0.0..=1.0,
        handover: bool, holding: bool, losing: bool, burst: bool, reorder: bool,
        every_s in 0.1..30.0, mean_ms in 0.001..2e3, overhead_bytes in 0_u64..100,
    ) -> Config {
        let swing = (swing && !trace).then_some(Swing { sigma, tau_ms: 80.0 });
        let base = if trace {
            let trace = Trace::parse(b"0\n3\n3\n900\n", None).expect("a trace");
            Config::of_trace(Arc::new(trace))
        } else {
            Config { rate_mbps: Some(rate), ..bare(1) }
        };
        let outage = Outage { every_s, mean_ms };
        let step_ms = (every_s * 1e3 * 0.9).min(mean_ms);
        Config {
            swing, queue_bytes, delay_ms, loss, reorder, overhead_bytes,
            jitter: Some(Jitter { sigma_ms: mean_ms, tau_ms: 20.0 }),
            retransmission: Some(Retransmission { probability: loss * 0.9, delay_ms: 8.0 }),
            handover: handover.then_some(Handover { step_ms, every_s: [every_s, every_s + 5.0] }),
            outage_holding: holding.then_some(outage),
            outage_losing: losing.then_some(outage),
            burst_loss: burst.then_some(BurstLoss { enter: loss, leave: 0.5, loss: 0.9 }),
            ..base
        }
    }
}

proptest! {
    #[test]
    fn no_calls_panic_and_no_packet_is_unaccounted_for(
        config in configs(), calls in calls(), seed: u64,
    ) {
        let run = || {
            let mut link = link::<usize>(&config, seed);
            let mut trail = Vec::new();
            let mut last = Instant::ZERO;
            for (number, call) in calls.iter().enumerate() {
                match call {
                    Call::Push(at, len) => {
                        let at = Instant::from_nanos(*at);
                        trail.push(format!("{:?}", link.push(at, ByteCount::new(*len), number)));
                    }
                    Call::Pop(at) => {
                        let popped = link.pop(Instant::from_nanos(*at));
                        trail.push(format!("{popped:?}"));
                        if let Some((at, _)) = popped {
                            assert!(at >= last, "arrivals go forward in time");
                            last = at;
                        }
                    }
                    Call::Cut(cut) => {
                        link.set_cut(*cut);
                        last = if *cut { Instant::ZERO } else { last };
                    }
                }
                let counters = link.counters();
                let known = counters.delivered + counters.dropped_total() + link.in_flight();
                assert_eq!(counters.pushed, known, "conservation");
                assert!(link.queued() <= ByteCount::new(config.queue_bytes));
            }
            trail
        };
        prop_assert_eq!(run(), run(), "one seed, one run");
    }
}
