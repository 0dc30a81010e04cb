//! Networks that mark, drop ECT(1) packets, or clear marks.

use std::hash::{DefaultHasher, Hash, Hasher};

use tautline_scenario::direct::Direct;
use tautline_transport::rate::Cause;
use tautline_transport::{ChannelNumber, Event, Session};
use tautline_units::{Bitrate, Duration, Ecn, Instant};

use crate::exchange::{direct, route};
use crate::harness::ms;

/// Results of a drive over a network that changes codepoints.
struct Drive {
    sessions: Direct,
    /// Number of the vehicle's datagrams in the last second sent as ECT(1), and of the others.
    last: [u32; 2],
    delivered: usize,
    /// Hash of all datagrams of both ends, in order.
    digest: u64,
}

/// Drives for three seconds over a network that maps codepoints by `pass`; `None` is a drop.
fn drive(mut pass: impl FnMut(Ecn, Instant) -> Option<Ecn>) -> Drive {
    let (mut sessions, end) = (direct(&[route(1)]), ms(3_000));
    let (mut digest, mut last, mut delivered) = (DefaultHasher::new(), [0, 0], 0);
    let mut due = ms(100);
    loop {
        let now = sessions.now;
        if now >= due && sessions.vehicle.is_up() {
            due = now + Duration::from_millis(5);
            let unit = [7; 3_000];
            let _ = sessions.vehicle.send(ChannelNumber::MEDIA, &unit, ms(100).since(ms(0)), now);
        }
        let Direct { vehicle, operator, .. } = &mut sessions;
        while carry(vehicle, operator, &mut pass, &mut digest, now, |ecn| {
            if now >= ms(2_000) {
                last[usize::from(ecn != Ecn::Ect1)] += 1;
            }
        }) || carry(operator, vehicle, &mut pass, &mut digest, now, |_| {})
        {}
        delivered += sessions
            .operator_events()
            .filter(|event| matches!(event, Event::Unit { channel, .. } if *channel == ChannelNumber::MEDIA))
            .count();
        // Units are sent as timers fire, one every few milliseconds.
        if !sessions.step(end) {
            break;
        }
    }
    Drive { sessions, last, delivered, digest: digest.finish() }
}

/// Takes one datagram from `from`, adds it to `digest`, and delivers it to `to` unless `pass` drops
/// it; returns false if there was none.
fn carry(
    from: &mut Session,
    to: &mut Session,
    pass: &mut impl FnMut(Ecn, Instant) -> Option<Ecn>,
    digest: &mut DefaultHasher,
    now: Instant,
    mut left: impl FnMut(Ecn),
) -> bool {
    let mut buffer = Vec::new();
    let Some(route) = from.poll_transmit(&mut buffer, now) else { return false };
    left(from.ecn());
    buffer.hash(digest);
    if let Some(ecn) = pass(from.ecn(), now) {
        to.handle_marked(route, &buffer, ecn, now);
    }
    true
}

fn granted(drive: &Drive) -> Bitrate {
    drive.sessions.vehicle.links().next().unwrap().granted
}

#[test]
fn without_marks_no_byte_differs_from_a_network_without_ecn() {
    let (plain, bleached) = (drive(|ecn, _| Some(ecn)), drive(|_, _| Some(Ecn::NotEct)));
    assert_eq!(plain.digest, bleached.digest);
    assert_eq!(plain.last[1], 0, "all bear ECT(1) after a while");
    assert!(plain.last[0] > 100 && plain.delivered > 250, "{}", plain.delivered);
}

#[test]
fn a_network_that_drops_ect_1_costs_neither_the_link_nor_units() {
    let dropping = drive(|ecn, _| (ecn != Ecn::Ect1).then_some(ecn));
    assert_eq!(dropping.last[0], 0, "none bears it after a while");
    let plain = drive(|ecn, _| Some(ecn));
    assert!(dropping.delivered * 10 > plain.delivered * 9, "{}", dropping.delivered);
}

#[test]
fn marks_are_reported_and_lower_the_rate() {
    let mut count = 0_u32;
    let marking = drive(|ecn, now| {
        count += 1;
        let marks = ecn == Ecn::Ect1 && now >= ms(1_000) && count.is_multiple_of(3);
        Some(if marks { Ecn::Ce } else { ecn })
    });
    let plain = drive(|ecn, _| Some(ecn));
    assert_eq!(marking.sessions.vehicle.links().next().unwrap().cause, Cause::Marks);
    assert!(granted(&marking).scale(2.0) < granted(&plain), "{}", granted(&marking));
    assert_eq!(marking.last[1], 0);
}

#[test]
fn a_hop_that_takes_marks_away_is_not_believed() {
    let mut count = 0_u32;
    let bleaching = drive(|ecn, now| {
        count += 1;
        let before = now < ms(1_000);
        Some(match ecn {
            Ecn::Ect1 if before => Ecn::Ect1,
            Ecn::Ect1 if count.is_multiple_of(4) => Ecn::Ce,
            _ => Ecn::NotEct,
        })
    });
    assert_eq!(bleaching.last[0], 0, "what does not add up ends it");
    assert_ne!(bleaching.sessions.vehicle.links().next().unwrap().cause, Cause::Marks);
}
