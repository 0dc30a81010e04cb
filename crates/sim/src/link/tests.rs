use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tautline_units::Bitrate;

use super::*;
use crate::recording::{Columns, Recording};
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

/// Keeps the queue full for `seconds` and returns the arrivals.
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

/// Sends one packet each millisecond for `seconds`, and returns the fate and delay of each.
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
        // Half the capacity is free to drain the held packets: as long again as the handover.
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
fn an_added_delay_affects_later_packets_and_keeps_order() {
    let mut link = link(&bare(8).with_delay(Duration::from_millis(20)), 12);
    link.push(Instant::ZERO, PACKET, 0).expect("goes");
    assert_eq!(link.next_departure(), Some(ms(21)));
    link.set_delay_added(Duration::from_millis(200));
    link.push(ms(2), PACKET, 1).expect("goes");
    assert_eq!(link.pop(ms(21)).map(|(_, number)| number), Some(0));
    assert_eq!(link.next_departure(), Some(ms(223)));
    link.set_delay_added(Duration::ZERO);
    link.push(ms(100), PACKET, 2).expect("goes");
    assert_eq!(link.pop(ms(223)).map(|(_, number)| number), Some(1));
    assert_eq!(link.pop(ms(223)).map(|(_, number)| number), Some(2), "in order");
    link.push(ms(300), PACKET, 3).expect("goes");
    assert_eq!(link.next_departure(), Some(ms(321)));
}

#[test]
fn the_links_behaviour_does_not_depend_on_traffic() {
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
fn a_trace_starts_at_its_offset_and_scales() {
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

#[test]
#[ignore = "needs the recordings in ../shared/data; make unit runs it where they are"]
fn recorded_traces_keep_their_rates() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/links");
    let files = [("lte-uplink-6mbps", 140, 5.95), ("evdo-uplink-1mbps-outages", 265, 0.83)];
    for (name, period_s, mbps) in files {
        let text = std::fs::read(format!("{folder}/{name}.pps")).expect("a file");
        let period = Duration::from_secs(period_s);
        let trace = Trace::parse(&text, Some(period)).expect("a recording");
        let config = Config { overhead_bytes: 0, ..Config::of_trace(Arc::new(trace)) };
        let mut link = link(&config, 17);
        saturate(&mut link, 2 * period_s);
        let rate = rate_of(&link, 2 * period_s);
        assert!((rate / mbps - 1.0).abs() < 0.01, "{name}: {rate} Mbit/s");
    }
}

/// Pings an idle link at the recording's own times; `None` for a lost ping.
fn pinged(replay: &Replay, times: &[Instant]) -> Vec<Option<Duration>> {
    let config = Config { recording: Some(replay.clone()), ..bare(10_000) };
    let (mut up, mut down) =
        Pair::symmetric(config).links::<usize>(18).expect("a loaded recording");
    let mut rtts = vec![None; times.len()];
    let mut sent = 0;
    while let Some(now) = [times.get(sent).copied(), up.next_departure(), down.next_departure()]
        .into_iter()
        .flatten()
        .min()
    {
        while let Some((at, number)) = down.pop(now) {
            rtts[number] = Some(at.since(times[number]));
        }
        while let Some((at, number)) = up.pop(now) {
            let _ = down.push(at, ByteCount::new(1), number);
        }
        while times.get(sent).is_some_and(|at| *at <= now) {
            let _ = up.push(now, ByteCount::new(1), sent);
            sent += 1;
        }
    }
    rtts
}

#[test]
fn a_recording_pinged_is_the_recording() {
    let rtts = "50 54 48 52 -1 -1 60 51 750 650 550 450 350 250 150 50 52 -1 55 50 300 51 50 49";
    let rtts: Vec<f64> = rtts.split(' ').map(|rtt| rtt.parse().expect("a number")).collect();
    let rows = rtts.iter().enumerate().map(|(index, rtt)| format!("{},{rtt}\n", 100 * index));
    let text = format!("t_ms,rtt_ms\n{}", rows.collect::<String>());
    let columns = Columns { operator: None, interval: Duration::from_secs(1) };
    let recording = Recording::parse(text.as_bytes(), columns).expect("well formed");
    let replay = Replay::of(Arc::new(recording));
    let loops = 3;
    let times: Vec<Instant> = (0..loops * rtts.len() as u64).map(|index| ms(100 * index)).collect();
    for (index, rtt) in pinged(&replay, &times).into_iter().enumerate() {
        let recorded = rtts[index % rtts.len()];
        match rtt.map(|rtt| rtt.as_secs_f64() * 1e3) {
            None => assert!(recorded < 0.0, "ping {index} is lost"),
            // The single late sample would be overtaken by the next one, which a link that keeps
            // the order prevents.
            Some(rtt) if recorded == 300.0 => assert!((140.0..160.0).contains(&rtt), "{rtt}"),
            Some(rtt) => assert!((rtt - recorded).abs() < 6.0, "ping {index}: {rtt}, {recorded}"),
        }
    }
    let shifted = Replay { start_s: 0.8, ..replay };
    let first = pinged(&shifted, &[Instant::ZERO])[0].expect("held, not lost");
    assert!((first.as_secs_f64() - 0.75).abs() < 0.006, "{first:?}");
}

#[test]
fn packets_held_by_a_recording_leave_in_a_burst_at_link_rate() {
    let text = b"t_ms,rtt_ms\n0,40\n100,440\n200,340\n300,240\n400,140\n500,40\n600,40\n";
    let columns = Columns { operator: None, interval: Duration::from_secs(1) };
    let recording = Arc::new(Recording::parse(text, columns).expect("well formed"));
    let config = Config { recording: Some(Replay::of(recording)), ..bare(8) };
    let mut link = link(&config, 19);
    for millis in 100..200 {
        link.push(ms(millis), PACKET, millis).expect("the queue takes it");
    }
    let arrived: Vec<Instant> = std::iter::from_fn(|| link.pop(ms(2_000))).map(|a| a.0).collect();
    assert_eq!(arrived[0], ms(500 + 1 + 20), "held to 500 ms, 1 ms at 8 Mbit/s, half of 40 ms");
    assert_eq!(arrived[99], ms(500 + 100 + 20));
}

#[test]
#[ignore = "needs the recordings in ../shared/data; make unit runs it where they are"]
fn recordings_of_drives_are_replayed_as_they_were() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/delay"));
    // Loss, and the 50th, 95th and 99th percentiles of the round trip in ms.
    let recordings = [
        ("pam25_ping_public.csv.gz", Some("att"), 200, 0.0057, [59.0, 110.0, 239.0]),
        ("pam25_ping_public.csv.gz", Some("verizon"), 200, 0.0191, [51.0, 100.0, 736.0]),
        ("vnperf_d3_rural_secondhalf.csv", Some("verizon"), 1_042, 0.0, [86.0, 394.0, 7594.0]),
        ("vnperf_d1_downtown_firsthalf.csv", Some("sprint"), 1_042, 0.0, [99.0, 126.0, 139.0]),
        ("cicv5g_urban_n78_v20_run03.csv", None, 55, 0.0, [16.0, 22.0, 26.0]),
        ("cicv5g_south_n8_v0_01.csv", None, 55, 0.0, [24.0, 71.0, 369.0]),
    ];
    for (file, operator, every_ms, lost, quantiles) in recordings {
        let mut config = Config {
            recording: Some(Replay {
                file: file.into(),
                operator: operator.map(str::to_owned),
                start_s: 0.0,
                interval_s: 1.042,
                share: 0.5,
                recording: None,
            }),
            ..bare(1)
        };
        config.load_files(folder).expect("a recording");
        let replay = config.recording.expect("just loaded");
        let period = replay.loaded().expect("just loaded").period().as_millis() as u64;
        let times: Vec<Instant> = (0..period / every_ms).map(|i| ms(i * every_ms)).collect();
        let rtts = pinged(&replay, &times);
        let mut answered: Vec<f64> =
            rtts.iter().flatten().map(|rtt| rtt.as_secs_f64() * 1e3).collect();
        answered.sort_by(f64::total_cmp);
        let lost_here = 1.0 - answered.len() as f64 / rtts.len() as f64;
        // Some packets lost while others were held leave after the hold, and arrive; some replies
        // return during a loss interval.
        assert!((lost_here - lost).abs() <= 0.2 * lost, "{file} {operator:?}: lost {lost_here}");
        let shares = [(0.5, 0.05), (0.95, 0.1), (0.99, 0.25)];
        for ((share, tolerance), recorded) in shares.into_iter().zip(quantiles) {
            let replayed = answered[(share * answered.len() as f64) as usize];
            let error = (replayed / recorded - 1.0).abs();
            assert!(
                error < tolerance,
                "{file} {operator:?}, {share}: {replayed} ms, was {recorded}"
            );
        }
    }
}

fn common(name: &str, outage: Outage) -> Common {
    let name = name.to_owned();
    Common { name, outage_losing: Some(outage), outage_holding: None, dip: None }
}

/// Returns, for each second of `hours`, which of `links` lose a packet sent in it.
fn losing<const N: usize>(links: &mut [Link<()>; N], hours: u64) -> Vec<[bool; N]> {
    let second = |second: u64| {
        let now = ms(1_000 * second);
        std::array::from_fn(|index| {
            while links[index].pop(now).is_some() {}
            links[index].push(now, PACKET, ()).is_err()
        })
    };
    (0..3_600 * hours).map(second).collect()
}

fn share<const N: usize>(seconds: &[[bool; N]], which: impl Fn(&[bool; N]) -> bool) -> f64 {
    seconds.iter().filter(|fates| which(fates)).count() as f64 / seconds.len() as f64
}

#[test]
fn links_with_a_common_name_also_fail_together() {
    let own = Outage { every_s: 57.0, mean_ms: 3_000.0 };
    let of = |names: &[&str]| Config {
        outage_losing: Some(own),
        common: names
            .iter()
            .map(|name| common(name, Outage { every_s: 98.0, mean_ms: 2_000.0 }))
            .collect(),
        ..bare(100)
    };
    let seeds = |own| Seeds { common: 77, ..Seeds::of(own) };
    let link = |names: &[&str], seed| Link::with_seeds(&of(names), seeds(seed)).expect("sound");
    let mut links = [link(&["a"], 1), link(&["a"], 2), link(&["b"], 3), link(&["a", "b"], 4)];
    let seconds = losing(&mut links, 400);
    // Own outages take 1/20 of the time, a shared one 1/50.
    let (own, common) = (0.05, 0.02);
    let alone = 1.0 - (1.0 - own) * (1.0 - common);
    let with_two = 1.0 - (1.0 - own) * (1.0 - common) * (1.0 - common);
    let near = |measured: f64, expected: f64, what: &str| {
        assert!((measured / expected - 1.0).abs() < 0.06, "{what}: {measured}, {expected}");
    };
    near(share(&seconds, |fates| fates[0]), alone, "one link");
    near(share(&seconds, |fates| fates[3]), with_two, "one of two names");
    let of_one_name = common + (1.0 - common) * own * own;
    near(share(&seconds, |fates| fates[0] && fates[1]), of_one_name, "two of one name");
    near(share(&seconds, |fates| fates[0] && fates[2]), alone * alone, "two of two names");
}

#[test]
fn a_world_draws_its_own_common_outages() {
    let outage = Outage { every_s: 10.0, mean_ms: 5_000.0 };
    let config = Config { common: vec![common("a", outage)], ..bare(100) };
    let seeds = [(5, 1), (5, 2), (6, 3)].map(|(common, own)| Seeds { common, ..Seeds::of(own) });
    let mut links = seeds.map(|seeds| Link::with_seeds(&config, seeds).expect("sound"));
    let seconds = losing(&mut links, 10);
    assert!(seconds.iter().all(|fates| fates[0] == fates[1]));
    assert!(seconds.iter().any(|fates| fates[0] != fates[2]));
    let (mut up, mut down) = Pair::symmetric(config).links(9).expect("sound");
    let fates =
        |link: &mut Link<()>, second: u64| link.push(ms(1_000 * second), PACKET, ()).is_err();
    assert!((0..3_000).all(|second| fates(&mut up, second) == fates(&mut down, second)));
}

#[test]
fn a_common_dip_leaves_its_share_of_the_capacity() {
    let dip = Dip { every_s: 2.0, mean_ms: 2_000.0, factor: 0.25 };
    let cell = |name: &str| Common {
        name: name.to_owned(),
        outage_losing: None,
        outage_holding: None,
        dip: Some(dip),
    };
    let trace = Trace::parse(b"0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", None).expect("a trace");
    for base in [bare(12), Config { overhead_bytes: 0, ..Config::of_trace(Arc::new(trace)) }] {
        let config = Config { common: vec![cell("cell")], queue_bytes: 20_000, ..base };
        let mut pair = [1, 2].map(|seed| link::<u64>(&config, seed));
        let arrived = pair.each_mut().map(|link| saturate(link, 300));
        assert_eq!(arrived[0], arrived[1], "at the same instants");
        let rate = rate_of(&pair[0], 300);
        // A quarter of 12 Mbit/s for half of the time.
        assert!((rate / 7.5 - 1.0).abs() < 0.12, "{rate}");
    }
}

#[test]
fn entries_in_common_are_checked() {
    let outage = Outage { every_s: 10.0, mean_ms: 50.0 };
    let error = |entries: Vec<Common>| {
        let config = Config { common: entries, ..bare(1) };
        config.validate().expect_err("out of range").to_string()
    };
    let (a, unnamed) = (common("a", outage), common("", outage));
    assert_eq!(error(vec![a.clone(), a.clone()]), "common.name = a: given twice");
    assert_eq!(error(vec![unnamed]), "common.name has 0 bytes: must be 1 to 64 bytes");
    let never = common("a", Outage { every_s: 0.0, ..outage });
    let told = "common.outage_losing.every_s = 0: must be 0.1 to 1000000 s";
    assert_eq!(error(vec![never]), told);
    let dip = Dip { every_s: 1.0, mean_ms: 1.0, factor: 2.0 };
    let dipping = Common { dip: Some(dip), ..a.clone() };
    assert_eq!(error(vec![dipping.clone()]), "common.dip.factor = 2: must be 0.001 to 1");
    let other = Common { dip: Some(Dip { factor: 0.5, ..dip }), outage_losing: None, ..a.clone() };
    assert!(other.agrees_with(&a) && other.agrees_with(&dipping), "parts may be left out");
    assert!(!a.agrees_with(&common("a", Outage { every_s: 11.0, ..outage })));
    let config = Config {
        recording: Some(Replay::of(Arc::new(
            Recording::parse(
                b"rtt_ms\n5\n",
                Columns { operator: None, interval: Duration::from_secs(1) },
            )
            .expect("well formed"),
        ))),
        ..bare(1)
    };
    let share = |share| {
        let recording = config.recording.clone().map(|replay| Replay { share, ..replay });
        Config { recording, ..config.clone() }.validate().map_err(|error| error.to_string())
    };
    assert_eq!(share(1.0), Ok(()));
    assert_eq!(share(1.5), Err("recording.share = 1.5: must be 0 to 1".to_owned()));
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
        shared: bool, recorded: bool,
    ) -> Config {
        let swing = (swing && !trace).then_some(Swing { sigma, tau_ms: 80.0 });
        let base = if trace {
            let trace = Trace::parse(b"0\n3\n3\n900\n", None).expect("a trace");
            Config::of_trace(Arc::new(trace))
        } else {
            Config { rate_mbps: Some(rate), ..bare(1) }
        };
        let outage = Outage { every_s, mean_ms };
        let dip = Some(Dip { every_s, mean_ms, factor: 0.1 });
        let all_of_it = Common { dip, outage_holding: Some(outage), ..common("a", outage) };
        let text = b"t_ms,rtt_ms\n0,90\n100,\n200,40\n300,440\n400,340\n500,240\n600,40\n";
        let columns = Columns { operator: None, interval: Duration::from_secs(1) };
        let recording = Arc::new(Recording::parse(text, columns).expect("a recording"));
        let step_ms = (every_s * 1e3 * 0.9).min(mean_ms);
        Config {
            swing, queue_bytes, delay_ms, loss, reorder, overhead_bytes,
            jitter: Some(Jitter { sigma_ms: mean_ms, tau_ms: 20.0 }),
            retransmission: Some(Retransmission { probability: loss * 0.9, delay_ms: 8.0 }),
            handover: handover.then_some(Handover { step_ms, every_s: [every_s, every_s + 5.0] }),
            outage_holding: holding.then_some(outage),
            outage_losing: losing.then_some(outage),
            burst_loss: burst.then_some(BurstLoss { enter: loss, leave: 0.5, loss: 0.9 }),
            recording: recorded.then(|| Replay::of(recording)),
            common: if shared { vec![all_of_it] } else { Vec::new() },
            ..base
        }
    }
}

#[test]
fn packets_beyond_the_mtu_are_dropped_as_size() {
    let mut link = link::<u8>(&Config { mtu_bytes: Some(1_000), ..bare(8) }, 1);
    let most = ByteCount::new(1_000 - 28);
    let overhead = Config { overhead_bytes: 28, mtu_bytes: Some(1_000), ..bare(8) };
    let mut headed = self::link::<u8>(&overhead, 1);
    assert_eq!(link.push(Instant::ZERO, ByteCount::new(1_000), 0), Ok(()));
    assert_eq!(link.push(Instant::ZERO, ByteCount::new(1_001), 0), Err(Drop::Size));
    assert_eq!(headed.push(Instant::ZERO, most, 0), Ok(()));
    assert_eq!(headed.push(Instant::ZERO, most + ByteCount::new(1), 0), Err(Drop::Size));
    assert_eq!(link.counters().dropped(Drop::Size), 1);
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

#[test]
fn a_stepped_capacity_is_each_of_its_rates_in_turn() {
    let step = |at_s, rate_mbps| Step { at_s, rate_mbps };
    let mut link = link(&Config { steps: vec![step(2.0, 1.0), step(4.0, 16.0)], ..bare(8) }, 1);
    let arrived = saturate(&mut link, 6);
    let count = |from: u64| {
        let time = ms(from)..ms(from + 1_000);
        arrived.iter().filter(|(at, _)| time.contains(at)).count()
    };
    assert_eq!([count(500), count(2_500), count(4_500)], [1_000, 125, 2_000]);
}

#[test]
fn a_policer_lets_a_burst_pass_and_then_its_rate_without_delay() {
    let policer = Some(Policer { rate_mbps: 4.0, burst_bytes: 32_000 });
    let mut link = link::<u64>(&Config { policer, ..bare(100) }, 1);
    let (mut passed, mut slowest) = (Vec::new(), Duration::ZERO);
    for number in 0..16_000 {
        let now = Instant::from_micros(number * 1_000);
        if link.push(now, PACKET, number).is_ok() {
            passed.push(number);
        }
        while let Some((at, sent)) = link.pop(now) {
            slowest = slowest.max(at.since(Instant::from_micros(sent * 1_000)));
        }
    }
    // At 8 Mbit/s the bucket of 32 kB empties in 64 ms, after 64 packets.
    assert_eq!(passed.iter().take_while(|number| **number < 63).count(), 63);
    assert!(passed.len().abs_diff(8_032) <= 2, "{}", passed.len());
    assert_eq!(link.counters().dropped(Drop::Policer), 16_000 - passed.len() as u64);
    assert!(slowest <= Duration::from_micros(81), "{slowest:?}");
}

/// Sends `mbps` for 65 s, from 5 s on alongside a CUBIC flow. Returns the flow's share of 10 Mbit/s
/// in that minute, and the longest wait of our packets in the queue.
fn compete(queue_bytes: u64, mbps: f64) -> (f64, Duration) {
    let cubic = Some(Cubic { rtt_ms: 30.0, from_s: 5.0, until_s: None });
    let mut link = link::<u64>(&Config { cubic, queue_bytes, ..bare(10) }, 1);
    let (mut wait, count) = (Duration::ZERO, (mbps * 65.0 * 125.0) as u64);
    for number in 0..count {
        let now = Instant::from_nanos(number * 65_000_000_000 / count);
        let _ = link.push(now, PACKET, number);
        while let Some((at, sent)) = link.pop(now) {
            wait = wait.max(at.since(Instant::from_nanos(sent * 65_000_000_000 / count)));
        }
    }
    (link.counters().foreign_bytes.get() as f64 * 8.0 / 60.0 / 10e6, wait)
}

#[test]
fn a_cubic_flow_fills_the_queue_and_takes_what_is_left() {
    for queue in [32_000, 128_000, 1_000_000] {
        let (share, wait) = compete(queue, 0.1);
        assert!((0.85..1.02).contains(&share), "{queue}: {share}");
        let full = Duration::from_secs_f64(queue as f64 * 8.0 / 10e6);
        assert!(wait > full.mul_f64(0.9) && wait <= full, "{queue}: {wait:?}");
    }
    let (share, _) = compete(128_000, 5.0);
    assert!((0.3..0.52).contains(&share), "{share}");
    assert_eq!(compete(32_000, 2.0), compete(32_000, 2.0));
}
