use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver, RingResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use super::{Identity, Keys, PublicKey, mac};
use crate::wire::{HOLE_PUNCH_TAG_BYTES, Versions};

/// The initiator's half of the handshake: one message sent, one message received.
///
/// Noise_IK_25519_ChaChaPoly_BLAKE2s with the prologue `tautline/2` and the lease id. Both sides
/// prove their static keys, and a handshake of another lease fails. The payloads negotiate the
/// version; their format is the same in all versions from 2 on.
pub(crate) struct Initiator {
    state: Box<HandshakeState>,
    message: Vec<u8>,
    versions: Versions,
    doorman: Doorman,
}

/// A check that distinguishes first messages of this lease from noise without a key agreement.
///
/// A first message ends in a tag: HMAC-BLAKE2s over the Noise message, truncated to 16 bytes, under
/// the lease id and the responder's X25519 key. A sender without the lease cannot cause expensive
/// work at the responder.
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

    /// Returns whether `init`, a complete first message, has the right length and ends in the
    /// correct tag.
    pub(crate) fn admits(&self, init: &[u8]) -> bool {
        let Some((message, tag)) = init.split_last_chunk::<DOOR_TAG_BYTES>() else { return false };
        init.len() == INIT_MESSAGE_BYTES && mac::same(&self.tag(message), tag)
    }

    /// Returns the tag of a hole punch with the bytes `signed`. For hole punches, a doorman is
    /// created with the initiator's key in place of the responder's.
    pub(crate) fn punch(&self, signed: &[u8]) -> [u8; HOLE_PUNCH_TAG_BYTES] {
        self.tag(signed)
    }

    /// Returns whether `tag` is the correct tag of a hole punch with the bytes `signed`.
    pub(crate) fn hears(&self, signed: &[u8], tag: &[u8; HOLE_PUNCH_TAG_BYTES]) -> bool {
        self.punch(signed).iter().zip(tag).fold(0, |all, (a, b)| all | (a ^ b)) == 0
    }

    /// Returns the tag of a refusal of `init` by an end that supports `versions`.
    pub(crate) fn refuse(&self, init: &[u8], versions: Versions) -> [u8; REFUSAL_TAG_BYTES] {
        let mut refused = vec![versions.lowest, versions.highest];
        refused.extend_from_slice(init);
        self.tag(&refused)
    }

    fn tag(&self, message: &[u8]) -> [u8; DOOR_TAG_BYTES] {
        mac::tag(&self.key, message)
    }
}

impl std::fmt::Debug for Initiator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Initiator")
    }
}

/// The initiator's result of a completed handshake.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) keys: Keys,
    /// The responder's session id.
    pub(crate) peer_session: u16,
    /// Protocol version of the session: the highest that both ends support.
    pub(crate) version: u8,
}

/// The responder's result of an accepted first message.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) keys: Keys,
    /// The initiator's session id.
    pub(crate) peer_session: u16,
    /// Noise message 2.
    pub(crate) message: Vec<u8>,
    /// Protocol version of the session: the highest that both ends support.
    pub(crate) version: u8,
}

/// A reason why a first message does not begin a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The message is not a first message for this key and lease, or it is damaged.
    Forged,
    /// The message is authentic, but from another machine than the expected one.
    WrongPeer,
    /// The message is authentic, but the two ends have no common version.
    NoVersion {
        /// The initiator's session id.
        peer_session: u16,
        /// Versions that the initiator supports.
        theirs: Versions,
    },
}

impl Initiator {
    /// Begins the handshake and writes the first message; `session` is our session id, which the
    /// responder is to put into its datagrams.
    pub(crate) fn new(
        identity: &Identity,
        peer: &PublicKey,
        lease: &[u8; 16],
        session: u16,
        versions: Versions,
        rng: &mut ChaCha20Rng,
    ) -> Self {
        let secret = identity.noise_secret();
        let doorman = Doorman::new(lease, peer);
        let (peer, prologue) = (peer.noise_public(), prologue(PROTOCOL, lease));
        let mut state = builder(rng)
            .local_private_key(&*secret)
            .and_then(|b| b.remote_public_key(&peer))
            .and_then(|b| b.prologue(&prologue))
            .and_then(|b| b.build_initiator())
            .expect("the pattern is known and both keys are 32 bytes");
        let mut payload = [0; INIT_PAYLOAD_BYTES];
        payload[..2].copy_from_slice(&session.to_be_bytes());
        payload[2..4].copy_from_slice(&[versions.lowest, versions.highest]);
        let mut message = vec![0; INIT_NOISE_BYTES];
        let length = state
            .write_message(&payload, &mut message)
            .expect("the initiator speaks first and the buffer has room");
        assert_eq!(length, INIT_NOISE_BYTES, "IK message 1 has a fixed size");
        message.extend_from_slice(&doorman.tag(&message));
        Self { state: Box::new(state), message, versions, doorman }
    }

    /// Returns Noise message 1 and its tag, identical on every link and in every resend.
    pub(crate) fn message(&self) -> &[u8] {
        &self.message
    }

    /// Completes the handshake with the responder's message; returns itself as the error if the
    /// message is forged or damaged, so that another one can be tried.
    pub(crate) fn accept(mut self, message: &[u8]) -> Result<Accepted, Self> {
        let mut payload = [0; RESPONSE_PAYLOAD_BYTES];
        if message.len() != RESPONSE_MESSAGE_BYTES
            || self.state.read_message(message, &mut payload).is_err()
        {
            return Err(self);
        }
        let [high, low, version] = payload;
        let state = self.state.into_stateless_transport_mode().expect("IK has two messages");
        let peer_session = u16::from_be_bytes([high, low]);
        Ok(Accepted { keys: Keys::new(state), peer_session, version })
    }

    /// Returns whether a refusal with `tag`, by an end that supports `versions`, is authentic,
    /// answers this first message, and is justified: there is no common version.
    pub(crate) fn is_refused(&self, versions: Versions, tag: &[u8; REFUSAL_TAG_BYTES]) -> bool {
        let expected = self.doorman.refuse(&self.message, versions);
        mac::same(&expected, tag) && self.versions.common(versions).is_none()
    }
}

/// Answers a first message that the [`Doorman`] admitted. `session` is our session id, which the
/// initiator is to put into its datagrams.
///
/// # Errors
/// [`Refusal`]; nothing changes then.
pub(crate) fn answer(
    identity: &Identity,
    peer: &PublicKey,
    lease: &[u8; 16],
    session: u16,
    versions: Versions,
    init: &[u8],
    rng: &mut ChaCha20Rng,
) -> Result<Answer, Refusal> {
    let Some(init) = init.get(..INIT_NOISE_BYTES) else { return Err(Refusal::Forged) };
    let mut payload = [0; INIT_PAYLOAD_BYTES];
    let mut read = |protocol| {
        let (secret, prologue) = (identity.noise_secret(), prologue(protocol, lease));
        let mut state = builder(rng)
            .local_private_key(&*secret)
            .and_then(|b| b.prologue(&prologue))
            .and_then(|b| b.build_responder())
            .expect("the pattern is known and the key is 32 bytes");
        state.read_message(init, &mut payload).map_err(|_| Refusal::Forged)?;
        match state.get_remote_static() == Some(&peer.noise_public()[..]) {
            true => Ok(state),
            false => Err(Refusal::WrongPeer),
        }
    };
    let read_now = read(PROTOCOL);
    let of_version_1 = matches!(read_now, Err(Refusal::Forged)) && read(PROTOCOL_1).is_ok();
    let peer_session = u16::from_be_bytes([payload[0], payload[1]]);
    if of_version_1 {
        return Err(Refusal::NoVersion { peer_session, theirs: Versions::UNSAID });
    }
    let mut state = read_now?;
    let theirs = Versions::new(payload[2], payload[3]).ok_or(Refusal::Forged)?;
    let Some(version) = versions.common(theirs) else {
        return Err(Refusal::NoVersion { peer_session, theirs });
    };
    let mut message = vec![0; RESPONSE_MESSAGE_BYTES];
    let [high, low] = session.to_be_bytes();
    state.write_message(&[high, low, version], &mut message).map_err(|_| Refusal::Forged)?;
    let state = state.into_stateless_transport_mode().map_err(|_| Refusal::Forged)?;
    Ok(Answer { keys: Keys::new(state), peer_session, message, version })
}

/// Returns the builder of a handshake with randomness from `rng`.
pub(crate) fn builder<'a>(rng: &mut ChaCha20Rng) -> Builder<'a> {
    let mut seed = Zeroizing::new([0; 32]);
    rng.fill_bytes(&mut *seed);
    let params = PATTERN.parse().expect("the pattern's name is well-formed");
    Builder::with_resolver(params, Box::new(Resolver { seed }))
}

fn prologue(protocol: &[u8; 10], lease: &[u8; 16]) -> [u8; 26] {
    let mut prologue = [0; 26];
    prologue[..10].copy_from_slice(protocol);
    prologue[10..].copy_from_slice(lease);
    prologue
}

/// snow's primitives, with *ring*'s cipher and the session's own randomness, so that runs are
/// reproducible.
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
        // Every byte passes through the cipher: ring's assembly takes a third of the portable
        // code's time.
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
const PROTOCOL: &[u8; 10] = b"tautline/2";
/// Prologue of version 1, whose messages state no versions: recognized in order to refuse it with a
/// proper answer.
const PROTOCOL_1: &[u8; 10] = b"tautline/1";

/// Bytes of the first message: ephemeral, sealed static, sealed payload, tag.
///
/// With the three header bytes an init is 150 bytes. This is the smallest packet size of a link and
/// more than twice the response, so reflection gains nothing.
pub(crate) const INIT_MESSAGE_BYTES: usize = 147;
const DOOR_TAG_BYTES: usize = super::MacKey::TAG_BYTES;
const REFUSAL_TAG_BYTES: usize = crate::wire::REFUSAL_TAG_BYTES;
const INIT_NOISE_BYTES: usize = INIT_MESSAGE_BYTES - DOOR_TAG_BYTES;
const INIT_PAYLOAD_BYTES: usize = INIT_NOISE_BYTES - 32 - 48 - 16;
/// Bytes of Noise message 2: ephemeral, sealed payload.
const RESPONSE_MESSAGE_BYTES: usize = 32 + RESPONSE_PAYLOAD_BYTES + 16;
const RESPONSE_PAYLOAD_BYTES: usize = 3;

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
        let init =
            Initiator::new(&vehicle, &operator.public(), &lease, 7, Versions::OURS, &mut rng);
        let answer = answer(
            &operator,
            &vehicle.public(),
            &lease,
            8,
            Versions::OURS,
            init.message(),
            &mut rng,
        )
        .unwrap();
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
        let init =
            Initiator::new(&vehicle, &operator.public(), &lease, 7, Versions::OURS, &mut rng);
        let message = init.message().to_vec();
        let mut try_answer = |peer: &Identity, lease: &[u8; 16], message: &[u8]| {
            answer(&operator, &peer.public(), lease, 8, Versions::OURS, message, &mut rng)
                .map(|_| ())
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
    fn the_highest_common_version_is_chosen_or_the_init_refused() {
        let (vehicle, operator, mut rng) = pair();
        let lease = [9; 16];
        let of = |lowest, highest| Versions::new(lowest, highest).unwrap();
        let init = Initiator::new(&vehicle, &operator.public(), &lease, 7, of(2, 5), &mut rng);
        let mut try_answer = |versions| {
            answer(&operator, &vehicle.public(), &lease, 8, versions, init.message(), &mut rng)
        };
        assert_eq!(try_answer(of(3, 9)).unwrap().version, 5);
        let refusal = Refusal::NoVersion { peer_session: 7, theirs: of(2, 5) };
        assert_eq!(try_answer(of(6, 9)).unwrap_err(), refusal);
        let response = try_answer(of(2, 4)).unwrap();
        let doorman = Doorman::new(&lease, &operator.public());
        let tag = doorman.refuse(init.message(), of(6, 9));
        assert!(init.is_refused(of(6, 9), &tag));
        assert!(!init.is_refused(of(7, 9), &tag));
        // A refusal with a common version is not valid.
        let contradiction = doorman.refuse(init.message(), of(4, 9));
        assert!(!init.is_refused(of(4, 9), &contradiction));
        assert_eq!(init.accept(&response.message).unwrap().version, 4);
    }

    #[test]
    fn a_first_message_of_version_1_is_known_for_what_it_is() {
        let (vehicle, operator, mut rng) = pair();
        let lease = [9; 16];
        let (secret, public) = (vehicle.noise_secret(), operator.public().noise_public());
        let prologue = prologue(PROTOCOL_1, &lease);
        let mut state = builder(&mut rng)
            .local_private_key(&*secret)
            .and_then(|b| b.remote_public_key(&public)?.prologue(&prologue)?.build_initiator())
            .unwrap();
        let mut payload = [0; INIT_PAYLOAD_BYTES];
        payload[1] = 7;
        let mut init = vec![0; INIT_NOISE_BYTES];
        state.write_message(&payload, &mut init).unwrap();
        let doorman = Doorman::new(&lease, &operator.public());
        init.extend_from_slice(&doorman.tag(&init));
        assert!(doorman.admits(&init));
        let mut try_answer = |peer: &Identity| {
            let peer = peer.public();
            answer(&operator, &peer, &lease, 8, Versions::OURS, &init, &mut rng).unwrap_err()
        };
        let refusal = Refusal::NoVersion { peer_session: 7, theirs: Versions::UNSAID };
        assert_eq!(try_answer(&vehicle), refusal);
        assert_eq!(try_answer(&Identity::from_seed(&[5; 32])), Refusal::Forged);
    }

    #[test]
    fn a_forged_response_leaves_the_handshake_open_for_the_true_one() {
        let (vehicle, operator, mut rng) = pair();
        let lease = [9; 16];
        let init =
            Initiator::new(&vehicle, &operator.public(), &lease, 7, Versions::OURS, &mut rng);
        let answer = answer(
            &operator,
            &vehicle.public(),
            &lease,
            8,
            Versions::OURS,
            init.message(),
            &mut rng,
        )
        .unwrap();
        let mut forged = answer.message.clone();
        forged[40] ^= 1;
        let init = init.accept(&forged).unwrap_err();
        let init = init.accept(&forged[..10]).unwrap_err();
        assert!(init.accept(&answer.message).is_ok());
    }
}
