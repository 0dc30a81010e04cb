//! Signed answers of a vehicle to a supervisor's order, independent of who carries them.

use std::fmt;

use crate::crypto::{Identity, PublicKey, SIGNATURE_BYTES};

/// The outcome of an order, as reported by the vehicle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Key of the vehicle that answers.
    pub vehicle: PublicKey,
    /// Key of the supervisor who gave the order.
    pub supervisor: PublicKey,
    /// Number of the order that is answered; see [`Order::number`](super::Order::number).
    pub number: u64,
    /// Epoch of the newest lease that the vehicle has accepted; 0 before the first.
    pub epoch: u64,
    /// Action that the vehicle took in response to the order.
    pub outcome: Outcome,
}

/// The action that a vehicle took in response to an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The drive has ended, and the guard brings the machine to a standstill.
    Begun,
    /// The drive has ended, and the guard holds the machine at standstill.
    Held,
    /// The drive has ended. The vehicle has no contact with its guard, without which the machine
    /// stops by itself.
    Unheard,
    /// The order is refused: it is dated more than ten seconds ahead of the vehicle's clock.
    Early,
    /// The order is refused: it has expired.
    Expired,
    /// The order is refused: its signer is not on the vehicle's list of supervisors.
    Stranger,
    /// The order is refused: it, or a later one of this supervisor, was obeyed before.
    Repeated,
}

/// The bytes of an answer, signed by the vehicle named in it.
///
/// ```text
///  0               1               2                               34
/// +---------------+---------------+-------------------------------+
/// | version, 1    | outcome       | vehicle's key, 32 bytes       |
/// +---------------+---------------+-------------------------------+
/// | supervisor's key, 32 bytes    | order's number, 8 bytes       |
/// +-------------------------------+-------------------------------+
/// | epoch, 8 bytes                | signature, 64 bytes           |
/// +-------------------------------+-------------------------------+
/// ```
///
/// Keys are Ed25519. The signature covers the words `tautline answer` and all bytes before it.
// protocol 13
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SignedAnswer([u8; SignedAnswer::BYTES]);

/// A reason why bytes are not a valid answer to an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The bytes are no answer of this version.
    #[error("not an answer of this version")]
    Malformed,
    /// The answer is not signed by the vehicle named in it.
    #[error("the answer is forged")]
    Forged,
    /// The answer is from another vehicle, or to another order, than the expected one.
    #[error("the answer is from another vehicle, or to another order")]
    Foreign,
}

impl Answer {
    /// Signs the answer and returns its bytes.
    ///
    /// # Panics
    /// If `vehicle` is not the one named in the answer.
    pub fn sign(&self, vehicle: &Identity) -> SignedAnswer {
        assert_eq!(vehicle.public(), self.vehicle, "the named vehicle signs");
        let mut bytes = vec![VERSION, self.outcome.number()];
        bytes.extend_from_slice(self.vehicle.as_bytes());
        bytes.extend_from_slice(self.supervisor.as_bytes());
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.extend_from_slice(&self.epoch.to_be_bytes());
        let signature = vehicle.sign(&[WORDS, &bytes].concat());
        bytes.extend_from_slice(&signature);
        SignedAnswer(bytes.try_into().expect("the parts have this length"))
    }

    fn parse(told: &[u8]) -> Option<Self> {
        let (&[VERSION, outcome], rest) = told.split_first_chunk::<2>()? else { return None };
        let (vehicle, rest) = rest.split_first_chunk::<32>()?;
        let (supervisor, rest) = rest.split_first_chunk::<32>()?;
        let (number, epoch) = rest.split_first_chunk::<8>()?;
        let key = |bytes: &[u8; 32]| PublicKey::from_bytes(*bytes).ok();
        Some(Self {
            vehicle: key(vehicle)?,
            supervisor: key(supervisor)?,
            number: u64::from_be_bytes(*number),
            epoch: u64::from_be_bytes(*epoch.first_chunk()?),
            outcome: Outcome::of(outcome)?,
        })
    }
}

impl Outcome {
    const ALL: [Self; 7] = [
        Self::Begun,
        Self::Held,
        Self::Unheard,
        Self::Early,
        Self::Expired,
        Self::Stranger,
        Self::Repeated,
    ];

    fn number(self) -> u8 {
        match self {
            Self::Begun => 1,
            Self::Held => 2,
            Self::Unheard => 3,
            Self::Early => 16,
            Self::Expired => 17,
            Self::Stranger => 18,
            Self::Repeated => 19,
        }
    }

    fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.number() == number)
    }

    /// Returns whether the vehicle has obeyed: it has ended the drive.
    pub fn is_obeyed(self) -> bool {
        match self {
            Self::Begun | Self::Held | Self::Unheard => true,
            Self::Early | Self::Expired | Self::Stranger | Self::Repeated => false,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Begun => "the drive has ended, and the guard's manoeuvre has begun",
            Self::Held => "the machine stands, and the guard holds it",
            Self::Unheard => {
                "the drive has ended, but the guard does not respond: the machine must stop by \
                 itself"
            }
            Self::Early => "refused: the order is dated later than the vehicle's clock",
            Self::Expired => "refused: the order has expired by the vehicle's clock",
            Self::Stranger => "refused: this key is not on the vehicle's own list of supervisors",
            Self::Repeated => {
                "refused: this order, or a later one of this supervisor, was already obeyed"
            }
        })
    }
}

impl SignedAnswer {
    /// Length of a signed answer in bytes.
    pub const BYTES: usize = SIGNED_BYTES + SIGNATURE_BYTES;

    /// Returns the bytes of the signed answer, in the layout that [`SignedAnswer`] shows.
    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// Returns the answer in `bytes` if `vehicle` has signed it and it belongs to the order
    /// `number` of `supervisor`.
    ///
    /// # Errors
    /// [`AnswerError::Malformed`], [`AnswerError::Forged`] or [`AnswerError::Foreign`].
    pub fn read(
        bytes: &[u8],
        vehicle: &PublicKey,
        (supervisor, number): (&PublicKey, u64),
    ) -> Result<Answer, AnswerError> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().map_err(|_| AnswerError::Malformed)?;
        let (told, signature) =
            bytes.split_last_chunk::<SIGNATURE_BYTES>().expect("an answer is longer");
        let answer = Answer::parse(told).ok_or(AnswerError::Malformed)?;
        if !answer.vehicle.has_signed(&[WORDS, told].concat(), signature) {
            return Err(AnswerError::Forged);
        }
        let is_awaited = answer.vehicle == *vehicle
            && answer.supervisor == *supervisor
            && answer.number == number;
        is_awaited.then_some(answer).ok_or(AnswerError::Foreign)
    }
}

impl fmt::Debug for SignedAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignedAnswer")
    }
}

/// First words of the bytes that are signed, for domain separation: no other kind of signed bytes
/// begins with them.
const WORDS: &[u8] = b"tautline answer";
const VERSION: u8 = 1;
const SIGNED_BYTES: usize = 2 + 2 * 32 + 2 * 8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::order::{Order, SignedOrder};
    use tautline_units::Duration;

    fn identity(seed: u8) -> Identity {
        Identity::from_seed(&[seed; 32])
    }

    fn answer() -> Answer {
        Answer {
            vehicle: identity(1).public(),
            supervisor: identity(9).public(),
            number: 1_800_000_000_123,
            epoch: 7,
            outcome: Outcome::Held,
        }
    }

    fn read(bytes: &[u8]) -> Result<Answer, AnswerError> {
        let Answer { vehicle, supervisor, number, .. } = answer();
        SignedAnswer::read(bytes, &vehicle, (&supervisor, number))
    }

    #[test]
    fn an_answer_is_what_the_vehicle_signed_to_one_order() {
        for outcome in Outcome::ALL {
            let answer = Answer { outcome, ..answer() };
            assert_eq!(read(answer.sign(&identity(1)).as_bytes()), Ok(answer));
        }
        for (other, seed) in [
            (Answer { number: answer().number - 1, ..answer() }, 1),
            (Answer { supervisor: identity(8).public(), ..answer() }, 1),
            (Answer { vehicle: identity(2).public(), ..answer() }, 2),
        ] {
            assert_eq!(read(other.sign(&identity(seed)).as_bytes()), Err(AnswerError::Foreign));
        }
    }

    #[test]
    fn every_bit_of_an_answer_is_signed_and_by_the_vehicle_alone() {
        let signed = answer().sign(&identity(1));
        for bit in 0..SignedAnswer::BYTES * 8 {
            let mut bytes = *signed.as_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&bytes).is_err(), "bit {bit}");
        }
        let mut bytes = *signed.as_bytes();
        let told = bytes[..SIGNED_BYTES].to_vec();
        for forged in [
            identity(9).sign(&[WORDS, &told].concat()),
            identity(1).sign(&told),
            identity(1).sign(&[b"tautline order", &told[..]].concat()),
        ] {
            bytes[SIGNED_BYTES..].copy_from_slice(&forged);
            assert_eq!(read(&bytes), Err(AnswerError::Forged));
        }
    }

    #[test]
    fn an_order_is_no_answer_and_an_answer_no_order() {
        let made_at = Duration::from_millis(answer().number);
        let (supervisor, vehicle) = (identity(9).public(), identity(1).public());
        let order = Order { supervisor, vehicle, made_at, until: made_at };
        assert!(read(order.sign(&identity(9)).as_bytes()).is_err());
        // Both have the same length: the words before them distinguish them.
        assert!(SignedOrder::read(answer().sign(&identity(1)).as_bytes()).is_err());
    }

    #[test]
    fn the_bytes_are_those_of_the_protocols_test_vector() {
        let hex: String = answer()
            .sign(&identity(1))
            .as_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let page = include_str!("../../../../docs/protocol.md");
        assert!(page.contains(&format!("answer to an order: {hex}\n")), "{hex}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_answer(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(read(&bytes).is_err());
        }

        #[test]
        fn any_payload_is_read_as_it_was_signed_or_refused(
            outcome: u8,
            supervisor: [u8; 32],
            number: u64,
            epoch: u64,
        ) {
            let vehicle = identity(1);
            let mut told = vec![VERSION, outcome];
            told.extend_from_slice(vehicle.public().as_bytes());
            told.extend_from_slice(&supervisor);
            told.extend_from_slice(&number.to_be_bytes());
            told.extend_from_slice(&epoch.to_be_bytes());
            let bytes = [&told[..], &vehicle.sign(&[WORDS, &told].concat())].concat();
            let Ok(key) = PublicKey::from_bytes(supervisor) else {
                prop_assert!(read(&bytes).is_err());
                return Ok(());
            };
            match SignedAnswer::read(&bytes, &vehicle.public(), (&key, number)) {
                Ok(answer) => {
                    let again = answer.sign(&vehicle);
                    prop_assert_eq!(&again.as_bytes()[..], &bytes[..]);
                }
                Err(error) => {
                    prop_assert_eq!(error, AnswerError::Malformed);
                    prop_assert!(Outcome::of(outcome).is_none());
                }
            }
        }
    }
}
