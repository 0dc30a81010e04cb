use std::ops::RangeInclusive;

use crate::bits::Bits;

/// A number in the data of a message.
#[derive(Clone, PartialEq, Debug)]
pub struct Signal {
    pub(crate) name: String,
    pub(crate) bits: Bits,
    pub(crate) number: Number,
    pub(crate) factor: f64,
    pub(crate) offset: f64,
    /// Limits of the value in its unit, if the DBC names any.
    pub(crate) range: Option<(f64, f64)>,
    pub(crate) unit: String,
    /// Names of single values, each with the [integer](Self::integer) of its bits.
    pub(crate) names: Vec<(i64, String)>,
    /// Bits that the signal has in a message to which no other value was written.
    pub(crate) initial: u64,
    pub(crate) selection: Option<Selection>,
}

/// Format of a signal's bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Number {
    Unsigned,
    Signed,
    Float32,
    Float64,
}

/// A condition on which a message has a signal: the value of another signal, the switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Selection {
    /// Index of the switch among the message's signals.
    pub(crate) switch: usize,
    pub(crate) values: Vec<RangeInclusive<u64>>,
}

impl Signal {
    /// Returns the name of the signal in the DBC.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the unit of the signal in the DBC; may be empty.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// Returns the number of bits of the signal.
    pub fn length(&self) -> u32 {
        self.bits.length()
    }

    /// Returns whether the signal's bits are those of an IEEE 754 number.
    pub fn is_float(&self) -> bool {
        matches!(self.number, Number::Float32 | Number::Float64)
    }

    /// Returns the integer of these bits; of a floating-point signal the bits themselves.
    pub fn integer(&self, raw: u64) -> i64 {
        match self.number {
            Number::Signed => {
                let unused = 64 - self.bits.length();
                ((raw << unused) as i64) >> unused
            }
            Number::Unsigned | Number::Float32 | Number::Float64 => raw as i64,
        }
    }

    /// Returns the value of these bits, in the signal's unit.
    pub fn physical(&self, raw: u64) -> f64 {
        let number = match self.number {
            Number::Unsigned => raw as f64,
            Number::Signed => self.integer(raw) as f64,
            Number::Float32 => f32::from_bits(raw as u32).into(),
            Number::Float64 => f64::from_bits(raw),
        };
        number * self.factor + self.offset
    }

    /// Returns the bits of the nearest value that the signal can have. NaN gives the bits 0, or in
    /// a floating-point signal those of NaN.
    pub fn raw(&self, physical: f64) -> u64 {
        let number = (physical - self.offset) / self.factor;
        let length = self.bits.length();
        match self.number {
            // Conversions of floating-point numbers saturate.
            Number::Unsigned => (number.round() as u64).min(u64::MAX >> (64 - length)),
            Number::Signed => {
                let most = i64::MAX >> (64 - length);
                let integer = (number.round() as i64).clamp(-most - 1, most);
                integer as u64 & u64::MAX >> (64 - length)
            }
            Number::Float32 => (number as f32).to_bits().into(),
            Number::Float64 => number.to_bits(),
        }
    }

    /// Returns the name of these bits, if they have one.
    pub(crate) fn name_of(&self, raw: u64) -> Option<&str> {
        let integer = self.integer(raw);
        self.names.iter().find(|(number, _)| *number == integer).map(|(_, name)| &**name)
    }
}

impl Selection {
    /// Returns whether a message whose switch has this value has the signal.
    pub(crate) fn holds(&self, switch: u64) -> bool {
        self.values.iter().any(|values| values.contains(&switch))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bits::Order;

    fn signal(number: Number, length: u64, factor: f64, offset: f64) -> Signal {
        Signal {
            name: "S".into(),
            bits: Bits::new(0, length, Order::Little, 8).unwrap(),
            number,
            factor,
            offset,
            range: None,
            unit: String::new(),
            names: vec![(-1, "none".into())],
            initial: 0,
            selection: None,
        }
    }

    #[test]
    fn values_are_rounded_and_saturate() {
        let speed = signal(Number::Unsigned, 16, 0.01, -67.67);
        assert_eq!(speed.raw(0.0), 6767);
        assert_eq!(speed.raw(-100.0), 0);
        assert_eq!(speed.raw(f64::INFINITY), 0xFFFF);
        assert_eq!(speed.raw(f64::NAN), 0);
        let torque = signal(Number::Signed, 12, 1.0, 0.0);
        assert_eq!(torque.raw(-1.0), 0xFFF);
        assert_eq!(torque.raw(-1e9), 0x800);
        assert_eq!(torque.raw(1e9), 0x7FF);
        assert_eq!(torque.physical(0x800), -2048.0);
        assert_eq!(torque.name_of(0xFFF), Some("none"));
        let wide = signal(Number::Signed, 64, 1.0, 0.0);
        assert_eq!(wide.raw(-1e30), 1 << 63);
    }

    proptest! {
        #[test]
        fn a_value_that_was_read_is_written_as_it_was(
            raw: u64,
            length in 1_u64..=52,
            is_signed: bool,
            factor in prop_oneof![Just(1.0), Just(-0.5), Just(0.00390625), 0.001_f64..1e3],
            offset in -1e3_f64..1e3,
        ) {
            let number = if is_signed { Number::Signed } else { Number::Unsigned };
            let raw = raw & u64::MAX >> (64 - length);
            // 52 bits less those that the offset takes.
            prop_assume!(offset == 0.0 || length <= 30);
            let signal = signal(number, length, factor, offset);
            prop_assert_eq!(signal.raw(signal.physical(raw)), raw);
        }

        #[test]
        fn a_float_that_was_read_is_written_as_it_was(bits: u64) {
            let double = signal(Number::Float64, 64, 1.0, 0.0);
            let single = signal(Number::Float32, 32, 1.0, 0.0);
            for (signal, raw) in [(double, bits), (single, bits & 0xFFFF_FFFF)] {
                let value = signal.physical(raw);
                // 0 is added: -0 becomes 0.
                prop_assert!(value.is_nan() || value == 0.0 || signal.raw(value) == raw);
            }
        }
    }
}
