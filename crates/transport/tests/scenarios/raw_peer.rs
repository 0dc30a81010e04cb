//! A vehicle played by the test: it has the session's keys and may send anything.

use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use snow::StatelessTransportState;
use tautline_transport::wire::{self, Coded, Ping, Pong, Prefix, Recent, Report};
use tautline_transport::{
    ChannelNumber, Config, Discard, Event, Identity, LinkNumber, Session, Timer,
};
use tautline_units::{ByteCount, Duration, Instant};

use crate::exchange::route;

pub(crate) struct RawPeer {
    pub(crate) operator: Session,
    state: StatelessTransportState,
    /// The operator's session id.
    pub(crate) peer_session: u16,
    next: u64,
    /// Ephemeral key of the handshake, for the test vectors.
    pub(crate) ephemeral: [u8; 32],
    pub(crate) session: u16,
    pub(crate) init: Vec<u8>,
    pub(crate) response: Vec<u8>,
}

pub(crate) const NOW: Instant = Instant::from_millis(100_000);

impl RawPeer {
    pub(crate) fn new() -> Self {
        let (a, b) = (Identity::from_seed(&[1; 32]), Identity::from_seed(&[2; 32]));
        let (lease, config) = ([7; 16], Config::default());
        let routes = [route(1)];
        let mut vehicle =
            Session::initiate(config.clone(), &a, b.public(), lease, &routes, 1, NOW).unwrap();
        let mut operator = Session::respond(config, &b, a.public(), lease, 2, NOW).unwrap();
        let (mut init, mut response) = (Vec::new(), Vec::new());
        vehicle.poll_transmit(&mut init, NOW).unwrap();
        operator.handle_datagram(route(1), &init, NOW);
        operator.poll_transmit(&mut response, NOW).unwrap();

        // The vehicle's seed, as the session draws from it: an id, then a seed for the ephemeral.
        let mut seed = [0; 32];
        seed[7] = 1;
        let mut rng = ChaCha20Rng::from_seed(seed);
        let session = rng.next_u32() as u16;
        rng.fill_bytes(&mut seed);
        let mut ephemeral = [0; 32];
        ChaCha20Rng::from_seed(seed).fill_bytes(&mut ephemeral);
        let prologue = [&b"tautline/2"[..], &lease].concat();
        let mut state = snow::Builder::new("Noise_IK_25519_ChaChaPoly_BLAKE2s".parse().unwrap())
            .local_private_key(&*a.noise_secret())
            .and_then(|b2| {
                b2.remote_public_key(&b.public().noise_public())?
                    .prologue(&prologue)?
                    .fixed_ephemeral_key_for_testing_only(&ephemeral)
                    .build_initiator()
            })
            .unwrap();
        let mut payload = [0; 35];
        payload[..2].copy_from_slice(&session.to_be_bytes());
        payload[2..4].copy_from_slice(&[3, 3]);
        let mut message = [0; 131];
        assert_eq!(state.write_message(&payload, &mut message), Ok(131));
        assert_eq!(message, init[3..134], "the peer speaks as the vehicle did");
        let mut answer = [0; 3];
        state.read_message(&response[3..], &mut answer).unwrap();
        let [high, low, version] = answer;
        assert_eq!(version, 3);
        let state = state.into_stateless_transport_mode().unwrap();
        let peer_session = u16::from_be_bytes([high, low]);
        Self { operator, state, peer_session, next: 0, ephemeral, session, init, response }
    }

    pub(crate) fn seal(&self, link: u8, number: u64, plaintext: &[u8]) -> Vec<u8> {
        let mut datagram = Vec::new();
        let number_of_link = LinkNumber::new(link).unwrap();
        wire::write_sealed_header(&mut datagram, number_of_link, self.peer_session, number);
        let mut sealed = vec![0; plaintext.len() + 16];
        let nonce = u64::from(link) << 56 | number;
        self.state.write_message(nonce, plaintext, &mut sealed).unwrap();
        datagram.extend_from_slice(&sealed);
        datagram
    }

    pub(crate) fn say(&mut self, plaintext: &[u8], now: Instant) {
        let datagram = self.seal(0, self.next, plaintext);
        self.next += 1;
        self.operator.handle_datagram(route(1), &datagram, now);
        self.operator.handle_timeout(now);
        let mut buffer = Vec::new();
        while self.operator.poll_transmit(&mut buffer, now).is_some() {}
    }

    pub(crate) fn discarded(&self, what: Discard) -> u64 {
        self.operator.counters().discarded(what)
    }

    fn units(&mut self) -> usize {
        std::iter::from_fn(|| self.operator.poll_event())
            .filter(|event| matches!(event, Event::Unit { .. }))
            .count()
    }
}

/// A due ping that the peer's address allowance does not permit is rescheduled. The next call for
/// datagrams learns the new time.
#[test]
fn a_ping_that_may_not_leave_is_not_due_at_once_again() {
    let mut peer = RawPeer::new();
    let mut ping = Vec::new();
    Ping { id: 1, sent_at: NOW }.write(&mut ping);
    peer.say(&ping, NOW);
    let mut buffer = Vec::new();
    let mut left = 0;
    for ms in 0..2_000 {
        let now = NOW + Duration::from_millis(ms);
        while peer.operator.poll_transmit(&mut buffer, now).is_some() {
            left += 1;
        }
        let due = peer.operator.poll_timeout();
        assert!(
            due.is_some_and(|(at, timer)| at > now || timer != Timer::Probe),
            "{due:?} at {now:?}"
        );
    }
    assert!(left < 20, "{left} pings to an address that has not proved itself");
}

fn source(unit: u32, index: u8, k: u8, symbol: &[u8]) -> Vec<u8> {
    let packet = Coded {
        channel: ChannelNumber::MEDIA,
        unit_low: unit,
        index,
        source_count: k,
        deadline_low: 34_664,
        symbol,
    };
    let mut bytes = Vec::new();
    packet.write_header(&mut bytes);
    bytes.extend_from_slice(symbol);
    bytes
}

#[test]
fn authentic_malformed_packets_are_counted_and_end_nothing() {
    let mut peer = RawPeer::new();
    for malformed in [&[0x90_u8][..], &[0x20, 1], &[0x1f; 30], &[0x10; 8], &[0x21; 40]] {
        peer.say(malformed, NOW);
    }
    assert!(peer.operator.is_established());
    assert_eq!(peer.discarded(Discard::PacketMalformed), 4);
    assert_eq!(peer.discarded(Discard::ChannelUnknown), 1);
    let block = Prefix::new(4, NOW).to_bytes();
    peer.say(&source(0, 0, 1, &block), NOW);
    assert_eq!(peer.discarded(Discard::UnitMalformed), 1);
    peer.say(&source(1, 0, 2, b"ab"), NOW);
    peer.say(&source(1, 1, 3, b"ab"), NOW);
    peer.say(&source(1, 1, 2, b"abc"), NOW);
    assert_eq!(peer.discarded(Discard::PacketInconsistent), 2);
    let mut pong = Vec::new();
    Pong { id: 9_999, received_at: NOW, sent_at: NOW }.write(&mut pong);
    peer.say(&pong, NOW);
    assert_eq!(peer.discarded(Discard::PongUnknown), 1);
    let mut report = Vec::new();
    let link = LinkNumber::new(0).unwrap();
    let bytes = ByteCount::new(1 << 40);
    Report {
        link,
        taken_at: NOW,
        highest: 1 << 40,
        datagrams: 3,
        bytes,
        age: None,
        recent: Recent::of(0, |_| false),
        marks: None,
    }
    .write(&mut report);
    peer.say(&report, NOW);
    assert_eq!(peer.discarded(Discard::ReportImpossible), 1);
    let block = [&Prefix::new(2, NOW).to_bytes()[..], b"ok"].concat();
    peer.say(&source(2, 0, 1, &block), NOW);
    assert_eq!(peer.units(), 1);
}

#[test]
fn wild_times_and_ids_are_survived() {
    let mut peer = RawPeer::new();
    let ends = [0, 1, 1 << 62, 1 << 63, u64::MAX - 1, u64::MAX].map(Instant::from_nanos);
    for (step, at) in ends.into_iter().enumerate() {
        for id in 0..40 {
            let mut bytes = Vec::new();
            Ping { id, sent_at: at }.write(&mut bytes);
            Pong { id, received_at: at, sent_at: ends[(step + 1) % ends.len()] }.write(&mut bytes);
            peer.say(&bytes, Instant::from_millis(100_000 + 100 * step as u64 + u64::from(id)));
        }
    }
    assert!(peer.operator.clock().is_some());
    let _ = peer.operator.links().count();
    assert!(peer.operator.poll_timeout().is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_authentic_plaintext_is_survived(
        plaintexts in prop::collection::vec(
            (0_u8..6, prop::collection::vec(any::<u8>(), 1..120), 0_u64..200), 1..60,
        ),
    ) {
        let mut peer = RawPeer::new();
        let mut now = NOW;
        for (kind, mut plaintext, millis) in plaintexts {
            now += std::time::Duration::from_millis(millis);
            plaintext[0] = kind << 4 | plaintext[0] & 1;
            peer.say(&plaintext, now);
        }
        peer.say(&[0], now);
        prop_assert!(peer.operator.is_established());
        let counters = peer.operator.counters();
        let forged = counters.discarded(Discard::DatagramForged);
        prop_assert_eq!(forged, 0);
    }
}
