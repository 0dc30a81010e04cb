use proptest::collection::vec;
use proptest::prelude::*;
use rand_chacha::rand_core::SeedableRng;

use super::super::handshake::Call;
use super::super::token::{Grant, Side};
use super::*;

fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32])
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

fn admission(peer: u8, until: u64) -> Admission {
    let grant = Grant {
        side: Side::Initiator,
        holder: identity(VEHICLE).public(),
        peer: identity(peer).public(),
        relay: identity(RELAY).public(),
        until: Duration::from_secs(until),
    };
    let token = Token::issue(&grant, &identity(SWITCHBOARD));
    let addresses = vec!["[2001:db8::1]:7444".parse().unwrap(), address(7444), address(7445)];
    Admission {
        identity: identity(VEHICLE),
        peer: identity(peer).public(),
        tickets: vec![Ticket {
            addresses,
            streams: Vec::new(),
            relay: identity(RELAY).public(),
            token,
        }],
        seed: 1.into(),
    }
}

fn locals() -> [SocketAddr; 2] {
    [SocketAddr::from(([0, 0, 0, 0], 1)), SocketAddr::from(([127, 0, 0, 1], 2))]
}

/// Returns a client with one leg, and the leg's route.
fn client() -> (Client, Route) {
    let mut client = Client::default();
    client.admit(&admission(OPERATOR, 9), &locals(), Instant::ZERO);
    let legs: Vec<LegView> = client.legs().collect();
    assert_eq!(legs.len(), 1, "a loopback socket does not reach the relay: {legs:?}");
    (client, legs[0].route)
}

fn said(client: &mut Client, now: Instant) -> Option<Vec<u8>> {
    let mut buffer = Vec::new();
    client.poll_transmit(&mut buffer, now).map(|_| buffer)
}

/// Answers the client's messages as a relay does until the leg is established; returns its key.
fn bring_up(client: &mut Client, route: Route, now: Instant) -> MacKey {
    let mut out = Vec::new();
    let call = said(client, now).unwrap();
    let Some(Message::Call { reference, cookie, .. }) = Message::parse(&call) else { panic!() };
    assert_eq!(cookie, Cookie::default());
    wire::write_cookie(&mut out, reference, Cookie([5; 16]));
    assert!(client.handle_datagram(route, &out, now));
    let call = said(client, now).unwrap();
    let Some(Message::Call { reference, cookie, message }) = Message::parse(&call) else {
        panic!()
    };
    assert_eq!(cookie, Cookie([5; 16]));
    let mut rng = ChaCha20Rng::from_seed([3; 32]);
    let call = Call::read(&identity(RELAY), message, &mut rng).unwrap();
    let key = MacKey::new([7; 32]);
    wire::write_welcome(&mut out, reference, &call.welcome(LEG, &key));
    assert!(client.handle_datagram(route, &out, now));
    prove(client, route, &key, now);
    assert!(client.legs().all(|leg| leg.is_proven));
    key
}

/// Reads the client's next proof, answers it, and returns whether it carried a token.
fn prove(client: &mut Client, route: Route, key: &MacKey, now: Instant) -> bool {
    let bytes = said(client, now).unwrap();
    let Some(Message::Prove(prove)) = Message::parse(&bytes) else { panic!("{bytes:?}") };
    assert!(prove.is_under(key) && prove.leg == LEG);
    let mut out = Vec::new();
    let metered = [ByteCount::new(70), ByteCount::new(100)];
    wire::write_proven(&mut out, LEG, prove.number, metered, true, key);
    client.handle_datagram(route, &out, now);
    prove.token.is_some()
}

#[test]
fn a_leg_is_called_and_proven_and_kept() {
    let (mut client, route) = client();
    assert_eq!(route.remote, address(7444));
    let key = bring_up(&mut client, route, Instant::ZERO);
    assert_eq!(said(&mut client, Instant::ZERO), None);
    let due = client.poll_timeout().unwrap();
    assert_eq!(due, Instant::ZERO + KEEP_INTERVAL);
    assert!(!prove(&mut client, route, &key, due));
    let leg = client.legs().next().unwrap();
    assert_eq!((leg.metered, leg.metered_max), (ByteCount::new(70), ByteCount::new(100)));
    assert_eq!(leg.round_trip, Some(Duration::ZERO));
}

#[test]
fn a_relays_probe_is_answered_once_and_a_forged_one_never() {
    let (mut client, route) = client();
    let key = bring_up(&mut client, route, Instant::ZERO);
    let (mut out, now) = (Vec::new(), Instant::from_millis(40));
    let sent_at = Instant::from_millis(7_000);
    wire::write_probe(&mut out, LEG, sent_at, &MacKey::new([8; 32]));
    client.handle_datagram(route, &out, now);
    assert_eq!(said(&mut client, now), None, "another's key");
    wire::write_probe(&mut out, LEG, sent_at, &key);
    client.handle_datagram(route, &out, now);
    assert_eq!(client.poll_timeout(), Some(now));
    let echo = said(&mut client, Instant::from_millis(41)).unwrap();
    let Some(Message::Echo(read)) = Message::parse(&echo) else { panic!("{echo:?}") };
    assert!(read.is_under(&key) && echo.len() <= out.len());
    assert_eq!((read.leg, read.sent_at, read.seen_at), (LEG, sent_at, now));
    client.handle_datagram(route, &out, now);
    assert_eq!(said(&mut client, now), None, "said again");
}

#[test]
fn a_silent_relay_is_called_with_backoff_and_counts_as_gone() {
    let (mut client, route) = client();
    for pause in [100, 200, 400, 800, 1_000, 1_000] {
        let due = client.poll_timeout().unwrap();
        assert!(said(&mut client, due).is_some());
        assert_eq!(client.poll_timeout(), Some(due + Duration::from_millis(pause)));
    }
    let now = client.poll_timeout().unwrap();
    bring_up(&mut client, route, now);
    for _ in 0..8 {
        let due = client.poll_timeout().unwrap();
        said(&mut client, due).unwrap();
    }
    assert!(client.legs().all(|leg| !leg.is_proven));
}

#[test]
fn only_a_newer_token_is_sent_to_the_relay() {
    let (mut client, route) = client();
    let key = bring_up(&mut client, route, Instant::ZERO);
    client.admit(&admission(OPERATOR, 9), &locals(), Instant::ZERO);
    assert_eq!(said(&mut client, Instant::ZERO), None);
    client.admit(&admission(OPERATOR, 99), &locals(), Instant::ZERO);
    assert!(prove(&mut client, route, &key, Instant::ZERO));
    assert_eq!(said(&mut client, Instant::ZERO), None);
}

#[test]
fn a_new_address_is_proven_and_a_restarted_relay_called() {
    let (mut client, route) = client();
    let key = bring_up(&mut client, route, Instant::ZERO);
    let (mut out, now) = (Vec::new(), Instant::from_millis(70));
    // A datagram of the session reached the relay from another address.
    wire::write_cookie(&mut out, Reference([0xee; 8]), Cookie([6; 16]));
    client.handle_datagram(route, &out, now);
    let bytes = said(&mut client, now).unwrap();
    let Some(Message::Prove(asked)) = Message::parse(&bytes) else { panic!() };
    assert_eq!(asked.cookie, Cookie([5; 16]), "what refers to nothing of ours is not kept");
    wire::write_cookie(&mut out, Reference(LEG.0), Cookie([6; 16]));
    client.handle_datagram(route, &out, now);
    let bytes = said(&mut client, now).unwrap();
    let Some(Message::Prove(asked)) = Message::parse(&bytes) else { panic!() };
    assert!(asked.cookie == Cookie([6; 16]) && asked.is_under(&key));

    wire::write_gone(&mut out, LegId([1; 8]));
    client.handle_datagram(route, &out, now);
    assert_eq!(said(&mut client, now), None, "another's");
    wire::write_gone(&mut out, LEG);
    client.handle_datagram(route, &out, now);
    let call = said(&mut client, now).unwrap();
    assert!(matches!(Message::parse(&call), Some(Message::Call { .. })));
}

#[test]
fn a_move_is_reported_once_when_the_relay_lost_the_address() {
    let (mut client, route) = client();
    let key = bring_up(&mut client, route, Instant::ZERO);
    client.hurry(Instant::from_millis(100));
    assert_eq!(said(&mut client, Instant::from_millis(100)), None, "five times a second");
    let now = Instant::from_millis(300);
    client.hurry(now);
    assert!(!prove(&mut client, route, &key, now));
    assert_eq!(client.poll_moved(), None, "it is where it was");
    let now = Instant::from_millis(600);
    client.hurry(now);
    assert!(said(&mut client, now).is_some());
    let mut out = Vec::new();
    wire::write_cookie(&mut out, Reference(LEG.0), Cookie([6; 16]));
    client.handle_datagram(route, &out, now);
    assert_eq!((client.poll_moved(), client.poll_moved()), (Some(0), None));
    prove(&mut client, route, &key, now);
}

#[test]
fn a_stream_leg_is_proven_again_with_each_connection() {
    let mut client = Client::default();
    let mut admission = admission(OPERATOR, 9);
    admission.tickets[0].streams = vec![address(443)];
    let locals = vec![SocketAddr::from(([0, 0, 0, 0], 1)); 6];
    client.admit(&admission, &locals, Instant::ZERO);
    let streams: Vec<_> = client.streams().collect();
    let expected =
        (0..4).map(|index| (Route::stream(index, address(443)), identity(RELAY).public()));
    assert_eq!(streams, expected.collect::<Vec<_>>());
    let route = streams[1].0;
    assert!(client.has_route(route) && !client.has_route(Route::stream(7, address(443))));
    let mut single =
        Client { legs: client.legs.drain(7..8).collect(), peers: client.peers.clone() };
    assert_eq!(single.legs().next().map(|leg| leg.route), Some(route));
    bring_up(&mut single, route, Instant::ZERO);
    single.hurry(Instant::from_millis(500));
    assert_eq!(said(&mut single, Instant::from_millis(500)), None, "no NAT moves a connection");
    single.handle_open(route, Instant::from_millis(500));
    let bytes = said(&mut single, Instant::from_millis(500)).unwrap();
    assert!(matches!(Message::parse(&bytes), Some(Message::Prove(_))));
}

#[test]
fn a_peer_at_another_peers_relay_address_replaces_it() {
    let (mut client, first) = client();
    let mut elsewhere = admission(6, 9);
    elsewhere.tickets[0].addresses.reverse();
    client.admit(&elsewhere, &locals(), Instant::ZERO);
    assert_eq!(client.legs().count(), 2);
    client.admit(&admission(7, 9), &locals(), Instant::ZERO);
    let legs: Vec<(PublicKey, SocketAddr)> =
        client.legs().map(|leg| (leg.peer, leg.route.remote)).collect();
    let key = |seed| identity(seed).public();
    assert_eq!(legs, [(key(6), address(7445)), (key(7), first.remote)]);
}

#[test]
fn a_refusal_is_reported_and_the_relay_called_again_later() {
    let (mut client, route) = client();
    let call = said(&mut client, Instant::ZERO).unwrap();
    let reference = wire::reference_of(&call).unwrap();
    let mut out = Vec::new();
    wire::write_refused(&mut out, reference, Refusal::Expired);
    client.handle_datagram(route, &out, Instant::ZERO);
    assert_eq!(client.legs().next().unwrap().refused, Some(Refusal::Expired));
    assert_eq!(client.poll_timeout(), Some(Instant::ZERO + REFUSED_PAUSE));
}

proptest! {
    #[test]
    fn no_bytes_panic_or_bring_a_leg_up_or_down(
        mut bytes in vec(any::<u8>(), 0..300),
        kind in 0u8..16,
        is_up in any::<bool>(),
    ) {
        let (mut client, route) = client();
        if is_up {
            bring_up(&mut client, route, Instant::ZERO);
        }
        if bytes.len() > 4 {
            bytes[..4].copy_from_slice(&[0x60 | kind, 1, 0, 0]);
        }
        client.handle_datagram(route, &bytes, Instant::from_millis(100));
        prop_assert!(client.legs().all(|leg| leg.is_proven == is_up));
    }
}

const VEHICLE: u8 = 1;
const OPERATOR: u8 = 2;
const RELAY: u8 = 3;
const SWITCHBOARD: u8 = 9;
const LEG: LegId = LegId([2; 8]);
