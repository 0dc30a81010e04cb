use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver, RingResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use super::{Identity, Keys, PublicKey};

/// The initiator's half of the handshake: one message out, one message in.
///
/// Noise_IK_25519_ChaChaPoly_BLAKE2s with the prologue `tautline/1` and the lease id: both sides
/// prove their static keys, and a handshake of another lease fails.
pub(crate) struct Initiator {
    state: Box<HandshakeState>,
    message: Vec<u8>,
}

/// Tells a first message of this lease from noise without a key agreement.
///
/// A first message ends in a tag: HMAC-BLAKE2s over the Noise message, cut to 16 bytes, under the
/// lease id and the responder's X25519 key. Who does not know the lease cannot make the responder
/// work.
#[derive(Clone)]
pub(crate) struct Doorman {
    key: [u8; 48],
}

impl std::fmt::Debug for Doorman {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Doorman")
    }
}

impl Doorman {
    pub(crate) fn new(lease: &[u8; 16], responder: &PublicKey) -> Self {
        let mut key = [0; 48];
        key[..16].copy_from_slice(lease);
        key[16..].copy_from_slice(&responder.noise_public());
        Self { key }
    }

    /// Returns whether `init` ends in the right tag.
    pub(crate) fn admits(&self, init: &[u8]) -> bool {
        let Some((message, tag)) = init.split_last_chunk::<DOOR_TAG_BYTES>() else { return false };
        let differing = self.tag(message).iter().zip(tag).fold(0, |all, (a, b)| all | (a ^ b));
        init.len() == INIT_MESSAGE_BYTES && differing == 0
    }

    fn tag(&self, message: &[u8]) -> [u8; DOOR_TAG_BYTES] {
        let mut hash =
            DefaultResolver.resolve_hash(&HashChoice::Blake2s).expect("the pattern uses BLAKE2s");
        let mut out = [0; 32];
        hash.hmac(&self.key, message, &mut out);
        *out.first_chunk().expect("16 of 32 bytes")
    }
}

impl std::fmt::Debug for Initiator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Initiator")
    }
}

/// What a completed handshake gives the initiator.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) keys: Keys,
    /// The responder's session id.
    pub(crate) peer_session: u16,
}

/// What an accepted first message gives the responder.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) keys: Keys,
    /// The initiator's session id.
    pub(crate) peer_session: u16,
    /// Noise message 2.
    pub(crate) message: Vec<u8>,
}

/// Why a first message is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Not a first message for this key and lease.
    Forged,
    /// Authentic, but of another machine than the expected one.
    WrongPeer,
}

impl Initiator {
    /// Writes the first message; `session` is the id by which the responder shall call us.
    pub(crate) fn new(
        identity: &Identity,
        peer: &PublicKey,
        lease: &[u8; 16],
        session: u16,
        rng: &mut ChaCha20Rng,
    ) -> Self {
        let secret = identity.noise_secret();
        let doorman = Doorman::new(lease, peer);
        let (peer, prologue) = (peer.noise_public(), prologue(lease));
        let mut state = builder(rng)
            .local_private_key(&*secret)
            .and_then(|b| b.remote_public_key(&peer))
            .and_then(|b| b.prologue(&prologue))
            .and_then(|b| b.build_initiator())
            .expect("the pattern is known and both keys are 32 bytes");
        let mut payload = [0; INIT_PAYLOAD_BYTES];
        payload[..2].copy_from_slice(&session.to_be_bytes());
        let mut message = vec![0; INIT_NOISE_BYTES];
        let length = state
            .write_message(&payload, &mut message)
            .expect("the initiator speaks first and the buffer has room");
        assert_eq!(length, INIT_NOISE_BYTES, "IK message 1 has a fixed size");
        message.extend_from_slice(&doorman.tag(&message));
        Self { state: Box::new(state), message }
    }

    /// Returns Noise message 1 and its tag, the same on every link and at every resend.
    pub(crate) fn message(&self) -> &[u8] {
        &self.message
    }

    /// Completes the handshake with the responder's message; gives itself back if it is forged.
    pub(crate) fn accept(mut self, message: &[u8]) -> Result<Accepted, Self> {
        let mut payload = [0; RESPONSE_PAYLOAD_BYTES];
        if message.len() != RESPONSE_MESSAGE_BYTES
            || self.state.read_message(message, &mut payload).is_err()
        {
            return Err(self);
        }
        let state = self.state.into_stateless_transport_mode().expect("IK has two messages");
        Ok(Accepted { keys: Keys::new(state), peer_session: u16::from_be_bytes(payload) })
    }
}

/// Answers a first message that the [`Doorman`] admitted; `session` is the id by which the initiator shall call us.
///
/// # Errors
/// [`Refusal`], after which nothing has changed.
pub(crate) fn answer(
    identity: &Identity,
    peer: &PublicKey,
    lease: &[u8; 16],
    session: u16,
    init: &[u8],
    rng: &mut ChaCha20Rng,
) -> Result<Answer, Refusal> {
    let Some(init) = init.get(..INIT_NOISE_BYTES) else { return Err(Refusal::Forged) };
    let (secret, prologue) = (identity.noise_secret(), prologue(lease));
    let mut state = builder(rng)
        .local_private_key(&*secret)
        .and_then(|b| b.prologue(&prologue))
        .and_then(|b| b.build_responder())
        .expect("the pattern is known and the key is 32 bytes");
    let mut payload = [0; INIT_PAYLOAD_BYTES];
    state.read_message(init, &mut payload).map_err(|_| Refusal::Forged)?;
    if state.get_remote_static() != Some(&peer.noise_public()[..]) {
        return Err(Refusal::WrongPeer);
    }
    let peer_session = u16::from_be_bytes([payload[0], payload[1]]);
    let mut message = vec![0; RESPONSE_MESSAGE_BYTES];
    state.write_message(&session.to_be_bytes(), &mut message).map_err(|_| Refusal::Forged)?;
    let state = state.into_stateless_transport_mode().map_err(|_| Refusal::Forged)?;
    Ok(Answer { keys: Keys::new(state), peer_session, message })
}

fn builder<'a>(rng: &mut ChaCha20Rng) -> Builder<'a> {
    let mut seed = Zeroizing::new([0; 32]);
    rng.fill_bytes(&mut *seed);
    let params = PATTERN.parse().expect("the pattern's name is well-formed");
    Builder::with_resolver(params, Box::new(Resolver { seed }))
}

fn prologue(lease: &[u8; 16]) -> [u8; 26] {
    let mut prologue = [0; 26];
    prologue[..10].copy_from_slice(PROTOCOL);
    prologue[10..].copy_from_slice(lease);
    prologue
}

/// snow's primitives, *ring*'s cipher among them, with the session's own randomness, so that a run can be repeated.
struct Resolver {
    seed: Zeroizing<[u8; 32]>,
}

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Seeded(ChaCha20Rng::from_seed(*self.seed))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        // Every byte passes it: ring's assembly takes a third of the portable code's time.
        RingResolver.resolve_cipher(choice)
    }
}

struct Seeded(ChaCha20Rng);

impl Random for Seeded {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), snow::Error> {
        self.0.fill_bytes(dest);
        Ok(())
    }
}

const PATTERN: &str = "Noise_IK_25519_ChaChaPoly_BLAKE2s";
const PROTOCOL: &[u8; 10] = b"tautline/1";

/// Bytes of the first message: ephemeral, sealed static, sealed payload, tag.
///
/// With the three bytes of header an init is 150 bytes, the smallest packet size a link may have
/// and more than twice the response: nobody gains by reflecting it.
pub(crate) const INIT_MESSAGE_BYTES: usize = 147;
const DOOR_TAG_BYTES: usize = 16;
const INIT_NOISE_BYTES: usize = INIT_MESSAGE_BYTES - DOOR_TAG_BYTES;
const INIT_PAYLOAD_BYTES: usize = INIT_NOISE_BYTES - 32 - 48 - 16;
/// Bytes of Noise message 2: ephemeral, sealed payload.
const RESPONSE_MESSAGE_BYTES: usize = 32 + RESPONSE_PAYLOAD_BYTES + 16;
const RESPONSE_PAYLOAD_BYTES: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::LinkNumber;

    fn pair() -> (Identity, Identity, ChaCha20Rng) {
        let rng = ChaCha20Rng::from_seed([3; 32]);
        (Identity::from_seed(&[1; 32]), Identity::from_seed(&[2; 32]), rng)
    }

    #[test]
    fn both_sides_agree_on_keys_and_ids() {
        let (vehicle, operator, mut rng) = pair();
        let lease = [9; 16];
        let init = Initiator::new(&vehicle, &operator.public(), &lease, 7, &mut rng);
        let answer =
            answer(&operator, &vehicle.public(), &lease, 8, init.message(), &mut rng).unwrap();
        assert!(answer.message.len() < init.message().len());
        let accepted = init.accept(&answer.message).unwrap();
        assert_eq!((answer.peer_session, accepted.peer_session), (7, 8));
        let link = LinkNumber::new(3).unwrap();
        let (mut sealed, mut opened) = (Vec::new(), Vec::new());
        accepted.keys.seal(link, 5, b"hello", &mut sealed);
        assert!(!answer.keys.open(link, 6, &sealed, &mut opened));
        assert!(!answer.keys.open(LinkNumber::new(2).unwrap(), 5, &sealed, &mut opened));
        assert!(answer.keys.open(link, 5, &sealed, &mut opened));
        assert_eq!(opened, b"hello");
    }

    #[test]
    fn another_machine_another_lease_or_a_flipped_bit_is_refused() {
        let (vehicle, operator, mut rng) = pair();
        let (lease, stranger) = ([9; 16], Identity::from_seed(&[5; 32]));
        let init = Initiator::new(&vehicle, &operator.public(), &lease, 7, &mut rng);
        let message = init.message().to_vec();
        let mut try_answer = |peer: &Identity, lease: &[u8; 16], message: &[u8]| {
            answer(&operator, &peer.public(), lease, 8, message, &mut rng).map(|_| ())
        };
        assert_eq!(try_answer(&stranger, &lease, &message), Err(Refusal::WrongPeer));
        assert_eq!(try_answer(&vehicle, &[8; 16], &message), Err(Refusal::Forged));
        let doorman = Doorman::new(&lease, &operator.public());
        assert!(doorman.admits(&message));
        assert!(!Doorman::new(&[8; 16], &operator.public()).admits(&message));
        for at in 0..message.len() {
            let mut flipped = message.clone();
            flipped[at] ^= 1;
            assert!(!doorman.admits(&flipped), "{at}");
            if at < INIT_NOISE_BYTES {
                assert_eq!(try_answer(&vehicle, &lease, &flipped), Err(Refusal::Forged), "{at}");
            }
        }
        assert!(!doorman.admits(&message[..146]));
        assert_eq!(try_answer(&vehicle, &lease, &message[..100]), Err(Refusal::Forged));
    }

    #[test]
    fn a_forged_response_leaves_the_handshake_open_for_the_true_one() {
        let (vehicle, operator, mut rng) = pair();
        let lease = [9; 16];
        let init = Initiator::new(&vehicle, &operator.public(), &lease, 7, &mut rng);
        let answer =
            answer(&operator, &vehicle.public(), &lease, 8, init.message(), &mut rng).unwrap();
        let mut forged = answer.message.clone();
        forged[40] ^= 1;
        let init = init.accept(&forged).unwrap_err();
        let init = init.accept(&forged[..10]).unwrap_err();
        assert!(init.accept(&answer.message).is_ok());
    }
}
