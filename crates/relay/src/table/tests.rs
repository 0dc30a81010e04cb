use std::net::SocketAddr;

use proptest::collection::vec;
use proptest::prelude::*;
use tautline_transport::relay::{Admission, Client, LegView, Ticket, Token};
use tautline_units::Bitrate;

use super::*;

#[test]
fn both_ends_of_a_lease_reach_each_other_and_no_byte_is_changed() {
    let (mut relay, mut ends) = pair();
    let (up, down) = (datagram(3, 1_200), datagram(3, 60));
    let [vehicle, operator] = [ends[0].address(), ends[1].address()];
    assert_eq!(relay.forward(ends[0].from(0), &up), Some(operator));
    assert_eq!(relay.forward(ends[1].from(0), &down), Some(vehicle));
    assert!(ends.iter_mut().all(End::is_proven));
    let counters = relay.table.counters();
    assert_eq!((counters.leases, counters.legs, counters.forwarded), (1, 2, 2));
    assert_eq!(counters.bytes_forwarded, ByteCount::new(1_260));
}

#[test]
fn nothing_is_forwarded_without_peer_or_from_unproven_addresses() {
    let mut relay = Relay::new(LIMITS);
    let mut vehicle = End::new(VEHICLE, OPERATOR, 1, &relay.token(VEHICLE, OPERATOR, LONG));
    relay.settle(&mut [&mut vehicle]);
    assert_eq!(relay.forward(vehicle.from(0), &datagram(0, 100)), None);
    assert_eq!(relay.dropped(Dropped::NoPeer), 1);
    assert_eq!(relay.forward(route(0, 99), &datagram(0, 100)), None);
    assert_eq!(relay.forward(route(1, vehicle.port), &datagram(0, 100)), None, "another socket");
    assert_eq!(relay.dropped(Dropped::Unproven), 2);
}

/// A datagram on link 2 of one modem returns by that modem, regardless of the end's other modems.
#[test]
fn each_link_comes_back_by_the_socket_that_it_went_by() {
    let mut relay = Relay::new(LIMITS);
    let token = relay.token(VEHICLE, OPERATOR, LONG);
    let mut vehicle = End::with_sockets(VEHICLE, OPERATOR, 1, 3, &token);
    let mut operator = End::new(OPERATOR, VEHICLE, 50, &relay.token(OPERATOR, VEHICLE, LONG));
    relay.settle(&mut [&mut vehicle, &mut operator]);
    for (link, socket) in [(0, 2), (1, 1), (2, 0)] {
        let to = relay.forward(vehicle.from(socket), &datagram(link, 100));
        assert_eq!(to, Some(operator.address()));
        let back = relay.forward(operator.from(0), &datagram(link, 100));
        assert_eq!(back, Some(vehicle.from(socket)));
    }
    // A link without received datagrams uses the first socket.
    assert_eq!(relay.forward(operator.from(0), &datagram(9, 100)), Some(vehicle.from(0)));
}

#[test]
fn stream_datagrams_are_forwarded_over_a_stream_if_possible() {
    let (mut relay, [mut vehicle, mut operator]) = pair();
    let tokens = [relay.token(VEHICLE, OPERATOR, LONG), relay.token(OPERATOR, VEHICLE, LONG)];
    for (end, token) in [&mut vehicle, &mut operator].into_iter().zip(&tokens) {
        end.has_tls = true;
        end.renew(token, relay.now);
        relay.settle(&mut [end]);
        assert!(end.is_proven());
    }
    let [by_tls, back_by_tls] = [vehicle.from(128), operator.from(128)];
    assert_eq!(relay.forward(by_tls, &datagram(9, 100)), Some(back_by_tls));
    assert_eq!(relay.forward(back_by_tls, &datagram(9, 100)), Some(by_tls));
    assert_eq!(relay.forward(vehicle.from(0), &datagram(1, 100)), Some(operator.address()));
    // Its connection is lost, and only its socket is left, until it reconnects.
    relay.table.handle_closed(back_by_tls);
    assert!(!relay.table.is_proven(back_by_tls));
    assert_eq!(relay.forward(by_tls, &datagram(9, 100)), Some(operator.address()));
    relay.table.handle_closed(operator.address());
    assert_eq!(relay.forward(by_tls, &datagram(9, 100)), None);
    relay.table.handle_closed(operator.address());
    let route = operator.client.streams().next().unwrap().0;
    operator.client.handle_open(route, relay.now);
    operator.port += 1_000;
    relay.settle(&mut [&mut operator]);
    assert_eq!(relay.forward(by_tls, &datagram(9, 100)), Some(operator.from(128)));
    assert_eq!(relay.forward(vehicle.from(0), &datagram(2, 100)), Some(operator.from(128)));
}

#[test]
fn two_leases_hear_nothing_of_each_other() {
    let (mut relay, ends) = pair();
    let mut others = [
        End::new(OTHER_VEHICLE, OTHER, 7, &relay.token(OTHER_VEHICLE, OTHER, LONG)),
        End::new(OTHER, OTHER_VEHICLE, 8, &relay.token(OTHER, OTHER_VEHICLE, LONG)),
    ];
    let [a, b] = &mut others;
    relay.settle(&mut [a, b]);
    let to = |relay: &mut Relay, from| relay.forward(from, &datagram(0, 100));
    assert_eq!(to(&mut relay, ends[0].from(0)), Some(ends[1].address()));
    assert_eq!(to(&mut relay, others[0].from(0)), Some(others[1].address()));
    assert_eq!(to(&mut relay, others[1].from(0)), Some(others[0].address()));
}

/// Forged, expired, stolen, or of another relay: none grants access, and each has its own refusal.
#[test]
fn a_token_that_grants_nothing_moves_no_byte() {
    let (mut relay, ends) = pair();
    let right = relay.token(VEHICLE, OPERATOR, LONG);
    let mut flipped = *right.as_bytes();
    flipped[40] ^= 1;
    let grant = |relay_key: u8, until| Grant {
        side: Side::Initiator,
        holder: identity(VEHICLE).public(),
        peer: identity(OPERATOR).public(),
        relay: identity(relay_key).public(),
        until,
    };
    let cases = [
        (VEHICLE, Token::from(&flipped), Refusal::Forged),
        (VEHICLE, Token::issue(&grant(RELAY, UNIX + LONG), &identity(OTHER)), Refusal::Forged),
        (VEHICLE, Token::issue(&grant(RELAY, UNIX), &identity(SWITCHBOARD)), Refusal::Expired),
        (
            VEHICLE,
            Token::issue(&grant(OTHER, UNIX + LONG), &identity(SWITCHBOARD)),
            Refusal::OtherRelay,
        ),
        // Stolen: another key presents it.
        (OTHER, right, Refusal::OtherKey),
    ];
    let before = relay.table.counters();
    for (number, (who, token, reason)) in cases.into_iter().enumerate() {
        let mut thief = End::new(who, OPERATOR, 200 + number as u16, &token);
        relay.settle(&mut [&mut thief]);
        assert_eq!(thief.leg().refused, Some(reason), "case {number}");
        assert_eq!(relay.forward(thief.from(0), &datagram(0, 100)), None, "case {number}");
        assert_eq!(relay.forward(ends[1].from(0), &datagram(0, 100)), Some(ends[0].address()));
    }
    let after = relay.table.counters();
    assert_eq!((after.legs, after.leases), (before.legs, before.leases));
    assert_eq!(relay.dropped(Dropped::Refused), 5);
}

#[test]
fn a_clock_that_is_set_after_the_start_is_gone_by_from_then_on() {
    let mut relay = Relay::new(LIMITS);
    let token = relay.token(VEHICLE, OPERATOR, LONG);
    // Started before time synchronization, with a clock years ahead.
    relay.table.handle_unix_start(UNIX * 2);
    let mut vehicle = End::new(VEHICLE, OPERATOR, 1, &token);
    relay.settle(&mut [&mut vehicle]);
    assert_eq!(vehicle.leg().refused, Some(Refusal::Expired));
    relay.table.handle_unix_start(UNIX);
    let mut vehicle = End::new(VEHICLE, OPERATOR, 1, &token);
    relay.settle(&mut [&mut vehicle]);
    assert_eq!(vehicle.leg().refused, None);
    // With a clock years behind, a token appears valid for years: it counts for a day.
    relay.table.handle_unix_start(Duration::ZERO);
    let now = Instant::from_millis(5_000);
    assert_eq!(relay.table.instant(UNIX, now), now + TOKEN_LIFE_MAX);
}

/// An attacker has recorded everything that an end sent. It replays that from its own address with
/// its own cookie instead of the end's, and from the end's address.
#[test]
fn replayed_messages_redirect_no_traffic() {
    let mut relay = Relay::new(LIMITS);
    let token = relay.token(VEHICLE, OPERATOR, LONG);
    let mut vehicle = End::new(VEHICLE, OPERATOR, 1, &token);
    let mut operator = End::new(OPERATOR, VEHICLE, 50, &relay.token(OPERATOR, VEHICLE, LONG));
    relay.recorded = Some(Vec::new());
    relay.settle(&mut [&mut vehicle, &mut operator]);
    let recorded = relay.recorded.take().unwrap();
    assert!(recorded.len() >= 6, "two calls and a proof each: {}", recorded.len());
    let thief = route(0, 666);
    let mut answer = Vec::new();
    for (from, bytes) in recorded {
        for own in [thief, from] {
            relay.table.handle_datagram(own, &bytes, &mut answer, relay.now);
            let Some(Message::Cookie { cookie, .. }) = Message::parse(&answer) else { continue };
            let mut with_cookie = bytes.clone();
            let at = if bytes.len() > 200 { 12 } else { 20 };
            with_cookie[at..at + 16].copy_from_slice(&cookie.0);
            relay.table.handle_datagram(own, &with_cookie, &mut answer, relay.now);
        }
        assert_eq!(relay.forward(thief, &datagram(0, 100)), None);
        assert_eq!(relay.forward(vehicle.from(0), &datagram(0, 100)), Some(operator.address()));
        assert_eq!(relay.forward(operator.from(0), &datagram(0, 100)), Some(vehicle.address()));
    }
    assert!(relay.dropped(Dropped::Replayed) + relay.dropped(Dropped::Forged) > 0);
}

#[test]
fn a_changed_address_receives_nothing_until_it_is_proven() {
    let (mut relay, mut ends) = pair();
    let old = ends[0].address();
    ends[0].port = 2;
    let [vehicle, operator] = &mut ends;
    // Its first datagram from there is answered with a smaller hint that its address is unknown.
    let hint = relay.answer(vehicle.from(0), &datagram(0, 100)).unwrap();
    assert!(hint.len() < 100);
    assert_eq!(relay.forward(operator.from(0), &datagram(0, 100)), Some(old));
    relay.now += Duration::from_millis(60);
    vehicle.take(&hint, relay.now);
    relay.settle(&mut [vehicle]);
    assert_eq!(relay.forward(operator.from(0), &datagram(0, 100)), Some(vehicle.address()));
    assert_eq!(relay.forward(old, &datagram(0, 100)), None);
    assert_eq!(relay.table.counters().moved, 1);
}

#[test]
fn a_lease_has_its_rate_and_no_more() {
    let limits = Limits { lease_rate: Bitrate::from_mbps(8), ..LIMITS };
    let (mut relay, ends) = pair_of(limits);
    let sent = |relay: &mut Relay| {
        (0..1_000).filter(|_| relay.forward(ends[0].from(0), &datagram(0, 1_000)).is_some()).count()
    };
    assert_eq!(sent(&mut relay), 100, "a tenth of a second's");
    relay.now += Duration::from_millis(50);
    assert_eq!(sent(&mut relay), 50);
    relay.now += Duration::from_secs(9);
    assert_eq!(sent(&mut relay), 100);
    assert_eq!(relay.dropped(Dropped::OverRate), 2_750);
}

#[test]
fn a_link_has_its_bytes_and_no_more_even_if_it_comes_anew() {
    let limits = Limits { link_bytes_max: ByteCount::new(5_000), ..LIMITS };
    let (mut relay, mut ends) = pair_of(limits);
    for turn in 0..2 {
        let sent = (0..9).filter(|_| relay.forward(ends[0].from(0), &datagram(0, 1_000)).is_some());
        assert_eq!(sent.count(), if turn == 0 { 5 } else { 0 });
        let token = relay.token(VEHICLE, OPERATOR, LONG);
        ends[0] = End::new(VEHICLE, OPERATOR, 3, &token);
        let [vehicle, _] = &mut ends;
        relay.settle(&mut [vehicle]);
        let leg = ends[0].leg();
        assert_eq!((leg.metered, leg.metered_max), (ByteCount::new(5_000), ByteCount::new(5_000)));
    }
    assert_eq!(relay.dropped(Dropped::OverBytes), 13);
}

#[test]
fn a_lease_ends_with_its_tokens_unless_later_ones_come() {
    let (mut relay, mut ends) = pair();
    let [vehicle, operator] = &mut ends;
    let later = LONG + Duration::from_secs(600);
    vehicle.renew(&relay.token(VEHICLE, OPERATOR, later), relay.now);
    relay.settle(&mut [vehicle]);
    relay.pass(LONG - Duration::from_secs(1), &mut [vehicle, operator]);
    assert_eq!(relay.forward(vehicle.from(0), &datagram(0, 100)), Some(operator.address()));
    relay.pass(Duration::from_secs(2), &mut [vehicle, operator]);
    assert_eq!(relay.forward(vehicle.from(0), &datagram(0, 100)), None, "the operator's has ended");
    let token = relay.token(OPERATOR, VEHICLE, later);
    operator.renew(&token, relay.now);
    relay.pass(Duration::from_secs(6), &mut [vehicle, operator]);
    assert_eq!(relay.forward(vehicle.from(0), &datagram(0, 100)), Some(operator.address()));
    relay.pass(Duration::from_secs(600), &mut [vehicle, operator]);
    assert_eq!(relay.forward(vehicle.from(0), &datagram(0, 100)), None);
    relay.pass(Duration::from_secs(60), &mut []);
    let counters = relay.table.counters();
    assert_eq!((counters.leases, counters.legs), (0, 0));
}

/// The lease ends between a call with a later token and its proof.
#[test]
fn a_call_keeps_its_lease_until_the_proof() {
    let (mut relay, ends) = pair();
    relay.pass(LONG - Duration::from_secs(1), &mut []);
    let counters = relay.table.counters();
    assert_eq!((counters.leases, counters.legs), (1, 0), "both ends are silent");
    let later = relay.token(VEHICLE, OPERATOR, LONG + Duration::from_secs(600));
    let mut vehicle = End::new(VEHICLE, OPERATOR, ends[0].port, &later);
    let (mut said, mut answer) = (Vec::new(), Vec::new());
    let proof = loop {
        let route = vehicle.client.poll_transmit(&mut said, relay.now).unwrap();
        if relay.table.counters().welcomed > counters.welcomed {
            break (vehicle.from(route.socket), said.clone());
        }
        let from = vehicle.from(route.socket);
        relay.table.handle_datagram(from, &said, &mut answer, relay.now);
        vehicle.client.handle_datagram(route, &answer, relay.now);
    };
    relay.pass(Duration::from_secs(3), &mut []);
    assert!(relay.answer(proof.0, &proof.1).is_some());
    assert!(relay.table.is_proven(vehicle.address()));
}

#[test]
fn a_silent_end_is_forgotten_and_registers_again() {
    let (mut relay, mut ends) = pair();
    relay.pass(Duration::from_secs(40), &mut [&mut ends[1]]);
    assert_eq!(relay.table.counters().legs, 1);
    let [vehicle, operator] = &mut ends;
    relay.settle(&mut [vehicle]);
    assert_eq!(relay.forward(operator.from(0), &datagram(0, 100)), Some(vehicle.address()));
}

#[test]
fn ends_register_again_at_a_restarted_relay() {
    let (mut relay, mut ends) = pair();
    let mut anew = Relay::new(LIMITS);
    anew.now = relay.now + Duration::from_millis(100);
    std::mem::swap(&mut relay, &mut anew);
    let [vehicle, operator] = &mut ends;
    let hint = relay.answer(vehicle.from(0), &datagram(0, 100)).unwrap();
    vehicle.take(&hint, relay.now);
    let hint = relay.answer(operator.from(0), &datagram(0, 100)).unwrap();
    operator.take(&hint, relay.now);
    relay.settle(&mut [vehicle, operator]);
    assert_eq!(relay.forward(vehicle.from(0), &datagram(0, 100)), Some(operator.address()));
}

#[test]
fn a_full_relay_refuses_and_limits_calls_from_a_network() {
    let (mut relay, _ends) = pair_of(Limits { leases_max: 1, ..LIMITS });
    let token = relay.token(OTHER_VEHICLE, OTHER, LONG);
    let mut other = End::new(OTHER_VEHICLE, OTHER, 7, &token);
    relay.settle(&mut [&mut other]);
    assert_eq!(other.leg().refused, Some(Refusal::Full));
    for port in 0..60 {
        let mut caller = End::new(VEHICLE, OPERATOR, 300 + port, &token);
        relay.settle(&mut [&mut caller]);
    }
    assert!(relay.dropped(Dropped::OverCalls) > 0);
}

/// Any STUN client, including an end of a lease; none of its requests is forwarded.
#[test]
fn stun_requests_are_answered_up_to_a_limit_per_network() {
    let (mut relay, ends) = pair();
    let question = stun::Request::new(stun::Transaction([7; 12]));
    for from in [route(1, 4_000), ends[0].from(0)] {
        let answer = relay.answer(from, &question.to_bytes()).unwrap();
        let Ok(stun::Message::Success(told)) = stun::Message::parse(&answer) else { panic!() };
        assert_eq!((told.transaction, told.mapped), (question.transaction, from.remote));
    }
    let elsewhere = stun::Change { address: true, port: false };
    let elsewhere = stun::Request { change: elsewhere, ..question.clone() };
    let answer = relay.answer(route(0, 4_001), &elsewhere.to_bytes()).unwrap();
    let Ok(stun::Message::Refusal(refused)) = stun::Message::parse(&answer) else { panic!() };
    assert_eq!(refused.unknown, [CHANGE_REQUEST]);
    relay.now += Duration::from_secs(1);
    let answered =
        (0..200).filter(|_| relay.answer(route(0, 4_000), &question.to_bytes()).is_some());
    assert_eq!(answered.count(), NETWORK_ADDRESSES_MAX as usize);
    let another = Route { socket: 0, remote: ([192, 0, 2, 2], 4_000).into() };
    assert!(relay.answer(another, &question.to_bytes()).is_some());
    assert_eq!(relay.dropped(Dropped::OverAddresses), 200 - u64::from(NETWORK_ADDRESSES_MAX));
    assert_eq!(relay.table.counters().forwarded, 0);
}

/// The relay probes once a second those ends that answer probes, and accepts each answer once.
#[test]
fn ends_are_probed_and_forged_or_repeated_answers_are_ignored() {
    let (mut relay, mut ends) = pair();
    let (mut probe, mut echo, mut answer) = (Vec::new(), Vec::new(), Vec::new());
    let due = relay.table.due_probes(relay.now);
    assert_eq!(due.len(), 2);
    for id in due {
        let to = relay.table.write_probe(id, &mut probe, relay.now).unwrap();
        let end = ends.iter_mut().find(|end| end.address() == to).unwrap();
        // 20 ms outbound, by a clock that is 100 s ahead, and 20 ms back.
        let at = relay.now + Duration::from_millis(100_020);
        end.take(&probe, at);
        assert!(end.client.poll_transmit(&mut echo, at).is_some());
        assert!(echo.len() <= probe.len());
        let back_at = relay.now + Duration::from_millis(40);
        let mut forged = echo.clone();
        forged[14] ^= 1;
        for (bytes, why) in [(&forged, Dropped::Forged), (&echo, Dropped::Replayed)] {
            let before = relay.dropped(why);
            if why == Dropped::Replayed {
                let fate = relay.table.handle_datagram(to, &echo, &mut answer, back_at);
                assert_eq!((fate, answer.len()), (Fate::Dropped, 0));
            }
            relay.table.handle_datagram(to, bytes, &mut answer, back_at);
            assert_eq!(relay.dropped(why), before + 1, "{why:?}");
        }
        let trip = relay.table.poll_round_trip().unwrap();
        let (who, side) = if to == ends[0].address() {
            (VEHICLE, Side::Initiator)
        } else {
            (OPERATOR, Side::Responder)
        };
        assert_eq!((trip.key, trip.side, trip.socket), (identity(who).public(), side, 0));
        assert_eq!((trip.sent_at, trip.seen_at, trip.back_at), (relay.now, at, back_at));
        let one_way = trip.one_way.unwrap();
        assert_eq!((one_way.out_nanos, one_way.in_nanos), (20_000_000, 20_000_000));
        assert_eq!(one_way.error, Duration::from_nanos(20_000_001));
        assert_eq!(relay.table.poll_round_trip(), None);
    }
    assert_eq!(relay.table.due_probes(relay.now + Duration::from_millis(999)), []);
    assert_eq!(relay.table.due_probes(relay.now + Duration::from_secs(1)).len(), 2);
}

/// An older build, which does not announce that it answers, is not probed.
#[test]
fn an_end_that_does_not_announce_probing_is_not_probed() {
    let mut relay = Relay::new(LIMITS);
    let token = relay.token(VEHICLE, OPERATOR, LONG);
    let mut vehicle = End::new(VEHICLE, OPERATOR, 1, &token);
    relay.settle(&mut [&mut vehicle]);
    for leg in relay.table.legs.values_mut() {
        leg.probing = Probing::default();
    }
    assert_eq!(relay.table.due_probes(relay.now), []);
    relay.pass(Duration::from_secs(6), &mut [&mut vehicle]);
    assert_eq!(relay.table.due_probes(relay.now).len(), 1);
}

proptest! {
    /// Without a key nothing is forwarded, and no answer is longer than its request.
    #[test]
    fn no_bytes_panic_are_forwarded_or_draw_more_than_they_are(
        said in vec((0u16..3, vec(any::<u8>(), 0..400), 0u8..11), 0..40),
    ) {
        let (mut relay, ends) = pair();
        let mut answer = Vec::new();
        for (port, mut bytes, kind) in said {
            if bytes.len() > 4 {
                bytes[..4].copy_from_slice(&[0x60 | kind, 1, 0, 0]);
            }
            let fate = relay.table.handle_datagram(route(0, 100 + port), &bytes, &mut answer, relay.now);
            prop_assert!(answer.len() <= bytes.len());
            prop_assert!(!matches!(fate, Fate::Forwarded(_)));
            relay.now += Duration::from_millis(1);
        }
        prop_assert_eq!(relay.table.counters().legs, 2);
        prop_assert_eq!(relay.forward(ends[0].from(0), &datagram(0, 50)), Some(ends[1].address()));
    }
}

struct Relay {
    table: Table,
    now: Instant,
    /// Datagrams of the ends, if they are recorded.
    recorded: Option<Vec<(Route, Vec<u8>)>>,
}

impl Relay {
    fn new(limits: Limits) -> Self {
        let switchboard = identity(SWITCHBOARD).public();
        let table = Table::new(identity(RELAY), switchboard, limits, UNIX, [7; 32]);
        Self { table, now: Instant::from_millis(1), recorded: None }
    }

    /// Returns a token that is valid for `long` from the start.
    fn token(&self, holder: u8, peer: u8, long: Duration) -> Token {
        let is_vehicle = [VEHICLE, OTHER_VEHICLE].contains(&holder);
        let grant = Grant {
            side: if is_vehicle { Side::Initiator } else { Side::Responder },
            holder: identity(holder).public(),
            peer: identity(peer).public(),
            relay: identity(RELAY).public(),
            until: UNIX + long,
        };
        Token::issue(&grant, &identity(SWITCHBOARD))
    }

    /// Delivers the ends' datagrams and the answers until none remain.
    fn settle(&mut self, ends: &mut [&mut End]) {
        let (mut said, mut answer) = (Vec::new(), Vec::new());
        for end in ends {
            while let Some(route) = end.client.poll_transmit(&mut said, self.now) {
                let from = end.from(route.socket);
                if let Some(recorded) = &mut self.recorded {
                    recorded.push((from, said.clone()));
                }
                let fate = self.table.handle_datagram(from, &said, &mut answer, self.now);
                if fate == Fate::Answered {
                    end.client.handle_datagram(route, &answer, self.now);
                }
            }
        }
    }

    /// Advances time by whole seconds; after each, the relay's timeouts are handled and all
    /// datagrams delivered.
    fn pass(&mut self, time: Duration, ends: &mut [&mut End]) {
        for _ in 0..time.as_secs() {
            self.now += Duration::from_secs(1);
            self.table.handle_timeout(self.now);
            self.settle(ends);
        }
    }

    fn forward(&mut self, from: Route, datagram: &[u8]) -> Option<Route> {
        match self.table.handle_datagram(from, datagram, &mut Vec::new(), self.now) {
            Fate::Forwarded(to) => Some(to),
            Fate::Answered | Fate::Dropped => None,
        }
    }

    fn answer(&mut self, from: Route, datagram: &[u8]) -> Option<Vec<u8>> {
        let mut answer = Vec::new();
        let fate = self.table.handle_datagram(from, datagram, &mut answer, self.now);
        (fate == Fate::Answered).then_some(answer)
    }

    fn dropped(&self, why: Dropped) -> u64 {
        self.table.counters().dropped(why)
    }
}

/// A simplified vehicle or operator; its sockets have consecutive ports.
struct End {
    client: Client,
    who: u8,
    peer: u8,
    port: u16,
    sockets: usize,
    /// `true` if each socket also has a connection over TLS.
    has_tls: bool,
}

impl End {
    fn new(who: u8, peer: u8, port: u16, token: &Token) -> Self {
        Self::with_sockets(who, peer, port, 1, token)
    }

    fn with_sockets(who: u8, peer: u8, port: u16, sockets: usize, token: &Token) -> Self {
        let client = Client::default();
        let mut end = Self { client, who, peer, port, sockets, has_tls: false };
        end.renew(token, Instant::from_millis(1));
        end
    }

    fn renew(&mut self, token: &Token, now: Instant) {
        let ticket = Ticket {
            addresses: vec![([198, 51, 100, 1], 7_444).into()],
            streams: self.has_tls.then_some(([198, 51, 100, 1], 443).into()).into_iter().collect(),
            relay: identity(RELAY).public(),
            token: *token,
        };
        let admission = Admission {
            identity: identity(self.who),
            peer: identity(self.peer).public(),
            tickets: vec![ticket],
            seed: u64::from(self.port).into(),
        };
        let locals = vec![SocketAddr::from(([0, 0, 0, 0], 1)); self.sockets];
        self.client.admit(&admission, &locals, now);
    }

    /// Returns the route at which the relay receives from this end's socket or connection.
    fn from(&self, socket: u8) -> Route {
        let route = route(0, self.port + u16::from(socket));
        match socket < 128 {
            true => route,
            false => Route::stream(0, route.remote),
        }
    }

    fn address(&self) -> Route {
        self.from(0)
    }

    fn leg(&self) -> LegView {
        self.client.legs().next().unwrap()
    }

    fn is_proven(&mut self) -> bool {
        self.client.legs().all(|leg| leg.is_proven)
    }

    fn take(&mut self, bytes: &[u8], now: Instant) {
        let route = self.leg().route;
        assert!(self.client.handle_datagram(route, bytes, now));
    }
}

/// Returns a relay with both ends of one lease.
fn pair() -> (Relay, [End; 2]) {
    pair_of(LIMITS)
}

fn pair_of(limits: Limits) -> (Relay, [End; 2]) {
    let mut relay = Relay::new(limits);
    let mut vehicle = End::new(VEHICLE, OPERATOR, 1, &relay.token(VEHICLE, OPERATOR, LONG));
    let mut operator = End::new(OPERATOR, VEHICLE, 50, &relay.token(OPERATOR, VEHICLE, LONG));
    relay.settle(&mut [&mut vehicle, &mut operator]);
    (relay, [vehicle, operator])
}

fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32])
}

fn route(socket: u8, port: u16) -> Route {
    Route { socket, remote: ([192, 0, 2, 1], port).into() }
}

/// Returns bytes that look like a sealed datagram of a session to a relay.
fn datagram(link: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![0xaa; length];
    bytes[0] = 0x30 | link;
    bytes
}

const VEHICLE: u8 = 1;
const OPERATOR: u8 = 2;
const RELAY: u8 = 3;
const OTHER: u8 = 4;
const OTHER_VEHICLE: u8 = 5;
const SWITCHBOARD: u8 = 9;
/// Unix time at the start of the relay's clock.
const UNIX: Duration = Duration::from_secs(1_800_000_000);
const LONG: Duration = Duration::from_secs(300);
const LIMITS: Limits = Limits {
    leases_max: 8,
    lease_rate: Bitrate::from_mbps(100),
    link_bytes_max: ByteCount::new(1 << 30),
};
