use std::net::SocketAddr;

use tautline_scenario::direct::Direct;
use tautline_scenario::script::{Script, Side, Step};
use tautline_sim::link::Outage;
use tautline_transport::link::{State, View};
use tautline_transport::{ChannelNumber, Config, Discard, Event, Route};
use tautline_units::{ByteCount, Duration, Instant};

use crate::harness::{Run, Scenario, clean, delivered_share, fixed, ms};

/// Returns a datagram link, and a slower one over a stream.
fn both(seed: u64) -> Scenario {
    let mut scenario = Scenario::new(seed, vec![clean(8.0, 25.0), clean(8.0, 30.0)]);
    scenario.streams = 1;
    scenario.config = fixed(6_000);
    scenario
}

#[test]
fn a_stream_carries_pings_alone_while_another_link_lives() {
    let run = both(81).run();
    assert_eq!(delivered_share(&run, 500, 4_700), 1.0);
    for side in Side::BOTH {
        let stream = view(&run, side, 1);
        assert_eq!(stream.state, State::Up);
        assert!(stream.media.sent < 50, "before the other link was up: {}", stream.media.sent);
    }
    let bytes = [Side::Vehicle, Side::Operator].map(|side| view(&run, side, 1).bytes_sent);
    let mut later = both(81);
    later.length = Duration::from_secs(10);
    let run = later.run();
    for (side, before) in Side::BOTH.into_iter().zip(bytes) {
        let grown = view(&run, side, 1).bytes_sent - before;
        assert!(grown < ByteCount::new(8_000), "{grown} in five seconds");
    }
}

#[test]
fn a_stream_carries_media_only_while_the_other_link_is_dead() {
    let mut scenario = both(82);
    scenario.script = Script::from([(ms(2_000), Step::Cut(0)), (ms(5_000), Step::Restore(0))]);
    scenario.length = Duration::from_millis(5_800);
    let mut run = scenario.run();
    let carried = view(&run, Side::Vehicle, 1).media.sent;
    assert!(carried > 500, "{carried}");
    run.until(ms(8_000));
    assert_eq!(view(&run, Side::Vehicle, 1).media.sent, carried, "the other link has settled");
    assert_eq!(delivered_share(&run, 2_250, 7_700), 1.0);
    let mut came: Vec<Instant> =
        run.operator().application.media.received.iter().map(|unit| unit.at).collect();
    came.sort();
    let gap = came.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap();
    // Three pings without a pong, the stream's own round trip, and its delay.
    assert!(gap < Duration::from_millis(250), "{gap:?}");
    let lost = run.commands().into_iter().filter(|command| {
        (2_250..7_700).contains(&command.offered.at.as_millis()) && command.delay().is_none()
    });
    assert_eq!(lost.count(), 0, "commands go over it too");
}

#[test]
fn a_single_stream_carries_a_session_without_mtu_probes() {
    let mut scenario = Scenario::new(83, vec![clean(8.0, 25.0)]);
    scenario.streams = 1;
    scenario.config = fixed(6_000);
    scenario.config.datagram_bytes_max = ByteCount::new(1_472);
    let run = scenario.run();
    assert_eq!(delivered_share(&run, 500, 4_700), 1.0);
    let stream = view(&run, Side::Vehicle, 0);
    assert_eq!((stream.datagram_bytes, stream.datagrams_lost), (ByteCount::new(1_200), 0));
}

#[test]
fn a_stream_that_stands_still_for_half_a_second_is_not_silent() {
    let mut link = clean(8.0, 25.0);
    for config in [&mut link.up, &mut link.down] {
        config.outage_holding = Some(Outage { every_s: 2.0, mean_ms: 300.0 });
    }
    let mut scenario = Scenario::new(84, vec![link]);
    scenario.streams = 1;
    scenario.config = Config::default();
    scenario.length = Duration::from_secs(20);
    let run = scenario.run();
    let states = run.vehicle().application.states.iter();
    let silent = states.filter(|(_, _, state)| *state == State::Silent).count();
    assert!(silent < 3, "{silent} of some ten");
}

#[test]
fn packets_behind_a_full_stream_wait_and_expire_in_the_pacer() {
    let route = Route::stream(0, SocketAddr::from(([10, 0, 0, 1], 443)));
    let mut direct = Direct::new(&[route], fixed(6_000), fixed(6_000)).unwrap();
    direct.run_until(ms(1_000));
    let deadline = Duration::from_millis(100);
    let send = |direct: &mut Direct, byte: u8| {
        let now = direct.now;
        direct.vehicle.send(ChannelNumber::MEDIA, &[byte; 500], deadline, now).unwrap();
    };
    direct.vehicle.handle_blocked(route, true, direct.now);
    for step in 0..5 {
        send(&mut direct, 1);
        // A due timer without effect would make this loop forever.
        direct.run_until(ms(1_010 + step * 10));
    }
    direct.run_until(ms(1_300));
    assert_eq!(media(&mut direct), Vec::<u8>::new());
    assert_eq!(direct.vehicle.poll_transmit(&mut Vec::new(), direct.now), None);
    direct.vehicle.handle_blocked(route, false, direct.now);
    send(&mut direct, 2);
    direct.run_until(ms(1_400));
    assert_eq!(media(&mut direct), [2]);
    let expired = direct.vehicle.counters().discarded(Discard::MediaExpired);
    assert!(expired >= 5, "{expired}");
}

/// Returns the first byte of each media unit received.
fn media(direct: &mut Direct) -> Vec<u8> {
    let first = |event| match event {
        Event::Unit { channel: ChannelNumber::MEDIA, bytes, .. } => bytes.first().copied(),
        _ => None,
    };
    direct.operator_events().filter_map(first).collect()
}

fn view(run: &Run, side: Side, link: usize) -> View {
    run.endpoint(side).session.links().nth(link).unwrap()
}
