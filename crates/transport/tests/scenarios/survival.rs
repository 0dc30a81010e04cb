use std::net::SocketAddr;

use tautline_scenario::script::{Script, Step};
use tautline_sim::link::{Jitter, Pair};
use tautline_transport::link::{State, View};
use tautline_transport::{ChannelNumber, Config, Discard, Event, Identity, Route, Session};
use tautline_units::{ByteCount, Duration, Instant};

use crate::harness::{Run, Scenario, clean, delivered_share, fixed, ms};

#[test]
fn packets_that_overtake_each_other_cost_no_unit() {
    let mut links = vec![clean(20.0, 15.0); 2];
    for config in links.iter_mut().flat_map(|pair| [&mut pair.up, &mut pair.down]) {
        // A packet may arrive 50 ms behind one sent after it.
        (config.jitter, config.reorder) = (Some(Jitter { sigma_ms: 25.0, tau_ms: 5.0 }), true);
    }
    let mut scenario = Scenario::new(61, links);
    scenario.config = fixed(10_000);
    let run = scenario.run();
    assert_eq!(delivered_share(&run, 500, 4_500), 1.0);
    assert!(run.vehicle().application.states.iter().all(|(_, _, state)| *state == State::Up));
    let commands = &run.vehicle().application.commands.received;
    assert!(commands.windows(2).all(|pair| pair[0].number < pair[1].number));
    for endpoint in [run.vehicle(), run.operator()] {
        for what in [Discard::DatagramReplayed, Discard::DatagramStale, Discard::ReportImpossible] {
            assert_eq!(endpoint.session.counters().discarded(what), 0, "{what:?}");
        }
    }
}

#[test]
fn an_interface_that_goes_and_comes_back_carries_media_again() {
    let mut scenario = Scenario::new(62, vec![clean(8.0, 25.0); 2]);
    scenario.config = fixed(6_000);
    scenario.script = Script::from([(ms(2_000), Step::Cut(0)), (ms(6_000), Step::Restore(0))]);
    scenario.length = Duration::from_secs(6);
    let mut run = scenario.run();
    let gone = view(&run, 0);
    assert_eq!(gone.state, State::Silent);
    run.until(ms(9_000));
    let back = view(&run, 0);
    assert_eq!(back.state, State::Up);
    let carried = back.bytes_sent - gone.bytes_sent;
    assert!(carried > ByteCount::new(1_000_000), "{carried} in three seconds");
    assert_eq!(delivered_share(&run, 500, 8_700), 1.0);
    assert_eq!(run.vehicle().application.established, 1);
    let up = run.vehicle().application.states.iter().rev().find(|(_, link, _)| *link == 0).unwrap();
    assert!(up.0.as_millis() < 6_300, "{up:?}");
}

#[test]
fn after_ten_seconds_without_any_interface_the_session_goes_on() {
    let mut scenario = Scenario::new(63, vec![clean(8.0, 25.0); 2]);
    scenario.config = fixed(6_000);
    scenario.script = Script::from([
        (ms(2_000), Step::Cut(0)),
        (ms(2_000), Step::Cut(1)),
        (ms(12_000), Step::Restore(0)),
        (ms(12_000), Step::Restore(1)),
    ]);
    scenario.length = Duration::from_secs(15);
    let run = scenario.run();
    assert_eq!(delivered_share(&run, 12_000, 14_700), 1.0);
    let sent_at = run.media().iter().map(|unit| unit.offered.at).find(|at| *at >= ms(12_000));
    assert!(sent_at.is_some_and(|at| at < ms(12_400)), "{sent_at:?}");
    let mut delays = run.commands().into_iter().filter_map(|command| command.delay());
    assert!(delays.all(|delay| delay <= Duration::from_millis(250)));
}

#[test]
fn a_modem_that_comes_back_with_another_address_keeps_its_link() {
    let mut scenario = Scenario::new(64, vec![clean(8.0, 25.0); 2]);
    scenario.config = fixed(6_000);
    scenario.script = Script::from([
        (ms(2_000), Step::Cut(0)),
        (ms(3_000), Step::Readdress(0, 77)),
        (ms(4_000), Step::Restore(0)),
        // And once more, without an interruption.
        (ms(6_000), Step::Readdress(0, 78)),
    ]);
    scenario.length = Duration::from_secs(9);
    let run = scenario.run();
    assert_eq!(run.operator().session.counters().routes_moved, 2);
    let route = run.operator().session.links().next().unwrap().route;
    assert_eq!(route.remote.ip(), std::net::Ipv4Addr::new(10, 0, 0, 79));
    assert_eq!(view(&run, 0).state, State::Up);
    assert_eq!(delivered_share(&run, 500, 8_700), 1.0);
}

#[test]
fn an_operator_whose_address_changes_is_followed_by_the_vehicle() {
    let (a, b) = (Identity::from_seed(&[1; 32]), Identity::from_seed(&[2; 32]));
    let at = |last, port| Route { socket: 0, remote: SocketAddr::from(([10, 0, 0, last], port)) };
    let (vehicle_at, mut operator_at) = (at(1, 4_000), at(2, 5_000));
    let (mut now, config) = (Instant::from_millis(1), Config::default());
    let routes = [operator_at];
    let mut vehicle =
        Session::initiate(config.clone(), &a, b.public(), [7; 16], &routes, 1, now).unwrap();
    let mut operator = Session::respond(config, &b, a.public(), [7; 16], 2, now).unwrap();
    let (mut buffer, mut came) = (Vec::new(), Vec::new());
    while now < Instant::from_millis(4_000) {
        now += Duration::from_millis(5);
        if now == Instant::from_millis(2_001) {
            operator_at = at(9, 5_099);
        }
        vehicle.handle_timeout(now);
        operator.handle_timeout(now);
        if now.as_millis() % 20 == 1 {
            let _ =
                operator.send(ChannelNumber::COMMAND, b"steer", Duration::from_millis(100), now);
            let _ = vehicle.send(ChannelNumber::MEDIA, &[1; 500], Duration::from_millis(100), now);
        }
        for _ in 0..8 {
            while let Some(route) = vehicle.poll_transmit(&mut buffer, now) {
                if route == operator_at {
                    operator.handle_datagram(vehicle_at, &buffer, now);
                }
            }
            while operator.poll_transmit(&mut buffer, now).is_some() {
                vehicle.handle_datagram(operator_at, &buffer, now);
            }
        }
        let events = std::iter::from_fn(|| operator.poll_event());
        let media =
            |event: &Event| matches!(event, Event::Unit { channel: ChannelNumber::MEDIA, .. });
        came.extend(events.filter(media).map(|_| now));
    }
    assert_eq!(vehicle.counters().routes_moved, 1);
    assert_eq!(vehicle.links().next().unwrap().route, operator_at);
    let gap = came.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap();
    assert!(gap < Duration::from_millis(100), "{gap:?}");
}

#[test]
fn each_link_finds_its_own_size_and_units_fit_the_smallest() {
    let mut links = vec![clean(8.0, 25.0); 2];
    narrow(&mut links[0], 1_420);
    let mut scenario = Scenario::new(65, links);
    scenario.config = fixed(6_000);
    scenario.config.datagram_bytes_max = ByteCount::new(1_472);
    scenario.length = Duration::from_secs(8);
    let run = scenario.run();
    let sizes = [0, 1].map(|link| view(&run, link).datagram_bytes.get());
    assert!((1_380..=1_392).contains(&sizes[0]), "{sizes:?}");
    assert_eq!(sizes[1], 1_472);
    assert_eq!(delivered_share(&run, 500, 7_700), 1.0);
}

#[test]
fn a_path_below_the_base_is_found_out_within_a_second() {
    let mut links = vec![clean(8.0, 25.0); 2];
    links.iter_mut().for_each(|pair| narrow(pair, 700));
    let mut scenario = Scenario::new(66, links);
    scenario.config = fixed(6_000);
    scenario.length = Duration::from_secs(6);
    let run = scenario.run();
    for link in [0, 1] {
        let size = view(&run, link).datagram_bytes.get();
        assert!((660..=672).contains(&size), "{size}");
    }
    assert_eq!(delivered_share(&run, 1_000, 5_700), 1.0);
}

#[test]
fn losses_by_chance_shrink_no_datagrams() {
    let mut links = vec![clean(8.0, 25.0); 2];
    for config in links.iter_mut().flat_map(|pair| [&mut pair.up, &mut pair.down]) {
        config.loss = 0.3;
    }
    for seed in 0..8 {
        let mut scenario = Scenario::new(670 + seed, links.clone());
        scenario.config = fixed(6_000);
        scenario.length = Duration::from_secs(4);
        let run = scenario.run();
        for link in [0, 1] {
            assert_eq!(view(&run, link).datagram_bytes.get(), 1_200, "seed {seed}");
        }
    }
}

fn view(run: &Run, link: usize) -> View {
    run.vehicle().session.links().nth(link).unwrap()
}

/// Drops datagrams larger than `bytes`, including headers.
fn narrow(pair: &mut Pair, bytes: u64) {
    (pair.up.mtu_bytes, pair.down.mtu_bytes) = (Some(bytes), Some(bytes));
}
