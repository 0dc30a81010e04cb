//! Signed orders of a supervisor to a vehicle, independent of who carries them.

use std::fmt;

use tautline_units::Duration;

use crate::crypto::{Identity, PublicKey, SIGNATURE_BYTES};

pub mod answer;

/// A supervisor's order to a vehicle: to end the current drive with the guard's manoeuvre.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// Key of the supervisor who gives the order.
    pub supervisor: PublicKey,
    /// Key of the vehicle that must obey.
    pub vehicle: PublicKey,
    /// Creation time since the Unix epoch in whole milliseconds. It is also the order's number,
    /// which increases with each order of a supervisor.
    pub made_at: Duration,
    /// End of validity, as a time since the Unix epoch in whole milliseconds.
    pub until: Duration,
}

/// The bytes of an order, signed by the supervisor named in it.
///
/// ```text
///  0               1               2                               34
/// +---------------+---------------+-------------------------------+
/// | version, 1    | deed, 1: end  | supervisor's key, 32 bytes    |
/// +---------------+---------------+-------------------------------+
/// | vehicle's key, 32 bytes       | made at, ms, 8 bytes          |
/// +-------------------------------+-------------------------------+
/// | until, ms of Unix time, 8     | signature, 64 bytes           |
/// +-------------------------------+-------------------------------+
/// ```
///
/// Keys are Ed25519. The signature covers the words `tautline order` and all bytes before it.
// protocol 13
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SignedOrder([u8; SignedOrder::BYTES]);

/// A reason why an order is not valid for this vehicle at this time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// The bytes are no order, or the order's validity is longer than [`Order::LIFE_MAX`].
    #[error("not an order of this version")]
    Malformed,
    /// The order is not signed by the supervisor named in it.
    #[error("the order is forged")]
    Forged,
    /// The order is for another vehicle.
    #[error("the order is for another vehicle")]
    Foreign,
    /// The creation time lies more than ten seconds in the future.
    #[error("the order is not yet in force, or the clocks differ")]
    Early,
    /// The end of validity has passed.
    #[error("the order has expired, or the clocks differ")]
    Expired,
}

impl Order {
    /// Maximum time from an order's creation to its end of validity. An order with a longer one is
    /// malformed. It bounds how long the carrier of the order can hold it back.
    pub const LIFE_MAX: Duration = Duration::from_secs(600);

    /// Signs the order and returns its bytes.
    ///
    /// # Panics
    /// If `supervisor` is not the one named in the order.
    pub fn sign(&self, supervisor: &Identity) -> SignedOrder {
        assert_eq!(supervisor.public(), self.supervisor, "the named supervisor signs");
        let mut bytes = vec![VERSION, END];
        bytes.extend_from_slice(self.supervisor.as_bytes());
        bytes.extend_from_slice(self.vehicle.as_bytes());
        for time in [self.made_at, self.until] {
            bytes.extend_from_slice(&millis(time).to_be_bytes());
        }
        let signature = supervisor.sign(&[WORDS, &bytes].concat());
        bytes.extend_from_slice(&signature);
        SignedOrder(bytes.try_into().expect("the parts have this length"))
    }

    /// Returns the number of the order, unique among those of its supervisor: the creation time in
    /// milliseconds since the Unix epoch.
    pub fn number(&self) -> u64 {
        millis(self.made_at)
    }

    /// Checks the order for the vehicle with the key `vehicle`, at `now`, the time since the Unix
    /// epoch.
    ///
    /// # Errors
    /// [`OrderError::Foreign`] for another vehicle's order, [`OrderError::Early`] if it was created
    /// more than ten seconds after `now`, [`OrderError::Expired`] from its end of validity on.
    pub fn judge(&self, vehicle: &PublicKey, now: Duration) -> Result<(), OrderError> {
        if self.vehicle != *vehicle {
            return Err(OrderError::Foreign);
        }
        if self.made_at > now + SKEW_MAX {
            return Err(OrderError::Early);
        }
        if self.until <= now {
            return Err(OrderError::Expired);
        }
        Ok(())
    }

    fn parse(told: &[u8]) -> Option<Self> {
        let (&[VERSION, END], rest) = told.split_first_chunk::<2>()? else { return None };
        let (supervisor, rest) = rest.split_first_chunk::<32>()?;
        let (vehicle, rest) = rest.split_first_chunk::<32>()?;
        let (made_at, until) = rest.split_first_chunk::<8>()?;
        let key = |bytes: &[u8; 32]| PublicKey::from_bytes(*bytes).ok();
        let time = |bytes: &[u8; 8]| Duration::from_millis(u64::from_be_bytes(*bytes));
        let (made_at, until) = (time(made_at), time(until.first_chunk()?));
        let life = until.checked_sub(made_at)?;
        let order = Self { supervisor: key(supervisor)?, vehicle: key(vehicle)?, made_at, until };
        (life <= Self::LIFE_MAX).then_some(order)
    }
}

impl SignedOrder {
    /// Length of a signed order in bytes.
    pub const BYTES: usize = SIGNED_BYTES + SIGNATURE_BYTES;

    /// Returns the bytes of the signed order, in the layout that [`SignedOrder`] shows.
    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// Returns the order in `bytes` if its supervisor has signed it. The caller checks whether that
    /// supervisor may give orders.
    ///
    /// # Errors
    /// [`OrderError::Malformed`] if the bytes are no order or its validity is longer than
    /// [`Order::LIFE_MAX`]; [`OrderError::Forged`] if the signature is not the supervisor's.
    pub fn read(bytes: &[u8]) -> Result<Order, OrderError> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().map_err(|_| OrderError::Malformed)?;
        let (told, signature) =
            bytes.split_last_chunk::<SIGNATURE_BYTES>().expect("an order is longer");
        let order = Order::parse(told).ok_or(OrderError::Malformed)?;
        let is_signed = order.supervisor.has_signed(&[WORDS, told].concat(), signature);
        is_signed.then_some(order).ok_or(OrderError::Forged)
    }
}

impl fmt::Debug for SignedOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignedOrder")
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// First words of the bytes that are signed, for domain separation: no other kind of signed bytes
/// begins with them.
const WORDS: &[u8] = b"tautline order";
const VERSION: u8 = 1;
/// Code of the only action that an order can demand: to end the drive.
const END: u8 = 1;
const SIGNED_BYTES: usize = 2 + 2 * 32 + 2 * 8;
/// Maximum time by which an order may be dated ahead of the vehicle's clock, beyond which it is
/// refused as [`OrderError::Early`]: clocks synchronized by NTP agree better.
const SKEW_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn identity(seed: u8) -> Identity {
        Identity::from_seed(&[seed; 32])
    }

    fn order() -> Order {
        Order {
            supervisor: identity(9).public(),
            vehicle: identity(1).public(),
            made_at: Duration::from_millis(1_800_000_000_123),
            until: Duration::from_millis(1_800_000_060_123),
        }
    }

    #[test]
    fn an_order_is_valid_for_one_vehicle_within_its_time() {
        let read = SignedOrder::read(order().sign(&identity(9)).as_bytes());
        assert_eq!(read, Ok(order()));
        assert_eq!(order().number(), 1_800_000_000_123);
        let (vehicle, other) = (identity(1).public(), identity(2).public());
        let at = |millis| order().judge(&vehicle, Duration::from_millis(millis));
        assert_eq!(at(1_800_000_000_123), Ok(()));
        assert_eq!(at(1_799_999_990_123), Ok(()), "a clock that is 10 s behind");
        assert_eq!(at(1_799_999_990_122), Err(OrderError::Early));
        assert_eq!(at(1_800_000_060_122), Ok(()));
        assert_eq!(at(1_800_000_060_123), Err(OrderError::Expired));
        assert_eq!(order().judge(&other, order().made_at), Err(OrderError::Foreign));
    }

    #[test]
    fn the_bytes_are_those_of_the_protocols_test_vector() {
        let signed = order().sign(&identity(9));
        let hex: String = signed.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let page = include_str!("../../../docs/protocol.md");
        assert!(page.contains(&format!("order to end: {hex}\n")), "{hex}");
    }

    #[test]
    fn every_bit_of_an_order_is_signed() {
        let signed = order().sign(&identity(9));
        for bit in 0..SignedOrder::BYTES * 8 {
            let mut bytes = *signed.as_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(SignedOrder::read(&bytes).is_err(), "bit {bit}");
        }
        // A foreign signature under the supervisor's name, and a signature over other words.
        let mut bytes = *signed.as_bytes();
        let told = bytes[..SIGNED_BYTES].to_vec();
        for forged in [
            identity(8).sign(&[WORDS, &told].concat()),
            identity(9).sign(&told),
            identity(9).sign(&[b"tautline relay token", &told[..]].concat()),
        ] {
            bytes[SIGNED_BYTES..].copy_from_slice(&forged);
            assert_eq!(SignedOrder::read(&bytes), Err(OrderError::Forged));
        }
    }

    #[test]
    fn an_order_with_an_invalid_period_is_malformed() {
        let read = |until: Duration| {
            SignedOrder::read(Order { until, ..order() }.sign(&identity(9)).as_bytes())
        };
        let made_at = order().made_at;
        assert!(read(made_at + Order::LIFE_MAX).is_ok());
        let longer = made_at + Order::LIFE_MAX + Duration::from_millis(1);
        assert_eq!(read(longer), Err(OrderError::Malformed));
        assert_eq!(read(made_at - Duration::from_millis(1)), Err(OrderError::Malformed));
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_order(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(SignedOrder::read(&bytes).is_err());
        }

        #[test]
        fn any_payload_is_read_as_it_was_signed_or_refused(
            payload in proptest::collection::vec(any::<u8>(), SIGNED_BYTES - 34),
            made_at: u64,
            life in 0u64..700_000,
        ) {
            let supervisor = identity(9);
            let mut told = vec![VERSION, END];
            told.extend_from_slice(supervisor.public().as_bytes());
            told.extend_from_slice(&payload[..32]);
            told.extend_from_slice(&made_at.to_be_bytes());
            told.extend_from_slice(&made_at.saturating_add(life).to_be_bytes());
            let signature = supervisor.sign(&[WORDS, &told].concat());
            let bytes = [&told[..], &signature].concat();
            if let Ok(order) = SignedOrder::read(&bytes) {
                let again = order.sign(&supervisor);
                prop_assert_eq!(&again.as_bytes()[..], &bytes[..]);
                prop_assert!(order.until - order.made_at <= Order::LIFE_MAX);
                // Any times are checked without a panic.
                let _ = order.judge(&order.vehicle, Duration::from_millis(u64::MAX));
                let _ = order.judge(&order.vehicle, Duration::ZERO);
            }
        }
    }
}
