//! Identifiers: of a step, a console, a session, a stop, an act.

use core::num::NonZeroU32;
use core::num::NonZeroU64;

/// Defines an identifier type, never 0: on the wire 0 means "none".
macro_rules! identity {
    ($(#[$meta:meta])* $name:ident, $number:ty, $nonzero:ty) => {
        $(#[$meta])*
        #[derive(serde::Serialize, serde::Deserialize)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name($nonzero);

        impl $name {
            /// Creates an identifier from this number; `None` for 0.
            pub const fn new(number: $number) -> Option<Self> {
                match <$nonzero>::new(number) {
                    Some(number) => Some(Self(number)),
                    None => None,
                }
            }

            /// Returns the number.
            pub const fn get(self) -> $number {
                self.0.get()
            }

            /// Returns the number on the wire, where 0 means "none".
            pub const fn to_wire(this: Option<Self>) -> $number {
                match this {
                    Some(this) => this.get(),
                    None => 0,
                }
            }
        }
    };
}

identity!(
    /// One step of a guard: stamped on pictures, and cited by commands for the newest picture that
    /// a person could see.
    Tick,
    u32,
    NonZeroU32
);
identity!(
    /// A console, drawn at random by each loaded page.
    Console,
    u64,
    NonZeroU64
);
identity!(
    /// A session of vehicle and operator, numbered by the vehicle.
    Session,
    u32,
    NonZeroU32
);
identity!(
    /// One stop: a reset names the stop whose latch it releases.
    Stop,
    u32,
    NonZeroU32
);
identity!(
    /// Number of a deliberate act of a person: rises with each act of a console.
    ActNumber,
    u32,
    NonZeroU32
);

impl Tick {
    /// Returns the next tick; after the last comes the first.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.checked_add(1).unwrap_or(NonZeroU32::MIN))
    }

    /// Returns the number of steps by which this tick precedes `newest`, 0 if both are the same;
    /// `None` if it is later, which a distance above half the range counts as.
    pub(crate) fn behind(self, newest: Self) -> Option<u32> {
        // 0 is no tick, so after a wrap the distance is one less.
        let (this, newest) = (self.get(), newest.get());
        let behind = if newest >= this { newest - this } else { newest.wrapping_sub(this) - 1 };
        (behind <= u32::MAX / 2).then_some(behind)
    }
}

impl Stop {
    /// Returns the next stop; after the last comes the first.
    #[must_use]
    pub(crate) fn next(self) -> Self {
        Self(self.0.checked_add(1).unwrap_or(NonZeroU32::MIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_go_around_and_know_which_is_older() {
        let tick = |number| Tick::new(number).unwrap();
        assert_eq!(tick(u32::MAX).next(), tick(1));
        assert_eq!(tick(7).behind(tick(9)), Some(2));
        assert_eq!(tick(9).behind(tick(7)), None);
        assert_eq!(tick(u32::MAX).behind(tick(1)), Some(1));
        assert_eq!(tick(u32::MAX - 1).behind(tick(2)), Some(3));
        assert_eq!(Tick::new(0), None);
        assert_eq!((Tick::to_wire(None), Tick::to_wire(Some(tick(3)))), (0, 3));
    }
}
