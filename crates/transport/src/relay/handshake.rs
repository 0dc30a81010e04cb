use std::fmt;

use rand_chacha::ChaCha20Rng;
use snow::HandshakeState;

use super::token::Token;
use super::wire::{CALL_BYTES, CALL_PAYLOAD_BYTES, LegId, WELCOME_BYTES, WELCOME_PAYLOAD_BYTES};
use crate::crypto::{Identity, MacKey, PublicKey, builder};

/// An end's half of the handshake with a relay: one message sent, one message received.
///
/// Noise_IK_25519_ChaChaPoly_BLAKE2s with the prologue `tautline-relay/1`. The end sends its token
/// and the number of its socket; the relay's answer carries the leg's key.
// protocol 11
pub(super) struct Caller {
    state: Box<HandshakeState>,
    message: Box<[u8; CALL_BYTES]>,
}

/// An end's first message, as read by a relay.
pub struct Call {
    state: Box<HandshakeState>,
    caller: [u8; 32],
    token: Token,
    socket: u8,
}

impl Caller {
    /// Begins the handshake and writes the first message.
    pub(super) fn new(
        identity: &Identity,
        relay: &PublicKey,
        token: &Token,
        socket: u8,
        rng: &mut ChaCha20Rng,
    ) -> Self {
        let (secret, relay) = (identity.noise_secret(), relay.noise_public());
        let mut state = builder(rng)
            .local_private_key(&*secret)
            .and_then(|b| b.remote_public_key(&relay))
            .and_then(|b| b.prologue(PROTOCOL))
            .and_then(|b| b.build_initiator())
            .expect("the pattern is known and both keys are 32 bytes");
        let mut payload = [0; CALL_PAYLOAD_BYTES];
        payload[..Token::BYTES].copy_from_slice(token.as_bytes());
        payload[Token::BYTES] = socket;
        let mut message = Box::new([0; CALL_BYTES]);
        let length = state
            .write_message(&payload, &mut message[..])
            .expect("the initiator speaks first and the buffer has room");
        assert_eq!(length, CALL_BYTES, "IK message 1 has a fixed size");
        Self { state: Box::new(state), message }
    }

    /// Returns the first message, identical in every resend.
    pub(super) fn message(&self) -> &[u8; CALL_BYTES] {
        &self.message
    }

    /// Handles the relay's answer and returns the leg's id and key. Returns itself as the error if
    /// the answer is forged or damaged, so that another one can be tried.
    pub(super) fn finish(mut self, message: &[u8]) -> Result<(LegId, MacKey), Self> {
        let mut payload = [0; WELCOME_PAYLOAD_BYTES];
        if message.len() != WELCOME_BYTES || self.state.read_message(message, &mut payload).is_err()
        {
            return Err(self);
        }
        let (leg, key) = payload.split_first_chunk().expect("a payload is longer");
        let key = key.try_into().expect("the rest has this length");
        Ok((LegId(*leg), MacKey::new(key)))
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Caller")
    }
}

impl Call {
    /// Reads an end's first message to the relay `identity`; `None` if it is invalid or meant for
    /// another.
    ///
    /// It costs two key agreements: call it only for an end that has proved its address.
    pub fn read(identity: &Identity, message: &[u8], rng: &mut ChaCha20Rng) -> Option<Self> {
        if message.len() != CALL_BYTES {
            return None;
        }
        let secret = identity.noise_secret();
        let mut state = builder(rng)
            .local_private_key(&*secret)
            .and_then(|b| b.prologue(PROTOCOL))
            .and_then(|b| b.build_responder())
            .expect("the pattern is known and the key is 32 bytes");
        let mut payload = [0; CALL_PAYLOAD_BYTES];
        state.read_message(message, &mut payload).ok()?;
        let caller = state.get_remote_static()?.try_into().ok()?;
        let (token, socket) = payload.split_first_chunk::<{ Token::BYTES }>()?;
        let socket = *socket.first().filter(|socket| **socket < SOCKETS_MAX)?;
        Some(Self { state: Box::new(state), caller, token: Token::from_bytes(token)?, socket })
    }

    /// Returns the end's token.
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// Returns the number of the end's socket, 0 to 15.
    pub fn socket(&self) -> u8 {
        self.socket
    }

    /// Returns whether the message was created by the holder of `key`. It may be a replay.
    pub fn is_of(&self, key: &PublicKey) -> bool {
        self.caller == key.noise_public()
    }

    /// Returns the answer with the leg's id and key, which only the end itself can read.
    ///
    /// # Panics
    /// Never: the answer has a fixed size.
    pub fn welcome(mut self, leg: LegId, key: &MacKey) -> [u8; WELCOME_BYTES] {
        let mut payload = [0; WELCOME_PAYLOAD_BYTES];
        payload[..LegId::BYTES].copy_from_slice(&leg.0);
        payload[LegId::BYTES..].copy_from_slice(key.as_bytes());
        let mut message = [0; WELCOME_BYTES];
        let length = self
            .state
            .write_message(&payload, &mut message)
            .expect("the responder speaks second and the buffer has room");
        assert_eq!(length, WELCOME_BYTES, "IK message 2 has a fixed size");
        message
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("socket", &self.socket).finish_non_exhaustive()
    }
}

const PROTOCOL: &[u8] = b"tautline-relay/1";
/// Number of sockets that an end distinguishes: as many as a session has links.
pub(super) const SOCKETS_MAX: u8 = 16;
/// First socket number of streams; lower numbers are for datagram sockets.
pub const SEATS_OF_STREAMS_FROM: u8 = 12;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_chacha::rand_core::SeedableRng;
    use tautline_units::Duration;

    use super::super::token::{Grant, Side};
    use super::*;

    #[test]
    fn an_end_and_its_relay_agree_on_a_secret_key() {
        let identity = |seed| Identity::from_seed(&[seed; 32]);
        let (end, relay, mut rng) = (identity(1), identity(3), ChaCha20Rng::from_seed([5; 32]));
        let grant = Grant {
            side: Side::Initiator,
            holder: end.public(),
            peer: identity(2).public(),
            relay: relay.public(),
            until: Duration::from_secs(9),
        };
        let token = Token::issue(&grant, &identity(9));
        let caller = Caller::new(&end, &relay.public(), &token, 7, &mut rng);
        assert!(Call::read(&identity(4), caller.message(), &mut rng).is_none(), "another relay");
        let call = Call::read(&relay, caller.message(), &mut rng).unwrap();
        assert!(call.is_of(&end.public()) && !call.is_of(&identity(2).public()));
        assert_eq!((call.token(), call.socket()), (&token, 7));
        let welcome = call.welcome(LegId([6; 8]), &MacKey::new([8; 32]));
        assert!(welcome.len() < caller.message().len());
        let mut forged = welcome;
        forged[40] ^= 1;
        let caller = caller.finish(&forged).unwrap_err();
        let (leg, key) = caller.finish(&welcome).unwrap();
        assert_eq!((leg, key.as_bytes()), (LegId([6; 8]), &[8; 32]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn any_bytes_are_no_call(bytes: Vec<u8>, whole in prop::collection::vec(any::<u8>(), CALL_BYTES)) {
            let (relay, mut rng) = (Identity::from_seed(&[3; 32]), ChaCha20Rng::from_seed([5; 32]));
            prop_assert!(Call::read(&relay, &bytes, &mut rng).is_none());
            prop_assert!(Call::read(&relay, &whole, &mut rng).is_none());
        }
    }
}
