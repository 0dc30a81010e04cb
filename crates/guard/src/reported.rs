//! Optional numbers that a machine reports for people, defined in one list.

/// Defines a struct of optional numbers from a list. Encoding, decoding, names and output in other
/// modules are derived from that list.
macro_rules! reported {
    (
        $(#[$about:meta])*
        pub struct $told:ident { $($(#[$doc:meta])* $field:ident: $name:literal, $unit:literal;)+ }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Default, Debug, serde::Serialize, serde::Deserialize)]
        pub struct $told { $($(#[$doc])* pub $field: Option<f32>,)+ }

        impl $told {
            /// Display name and unit of each number, in the order of the list.
            pub const NAMES: &'static [(&'static str, &'static str)] = &[$(($name, $unit)),+];
            /// Number of numbers in the list.
            pub const COUNT: usize = Self::NAMES.len();

            /// Returns the numbers in the order of the list.
            pub fn numbers(&self) -> [Option<f32>; Self::COUNT] {
                [$(self.$field),+]
            }

            /// Creates the struct from these numbers; a number that is not finite becomes `None`.
            pub fn from_numbers(numbers: [Option<f32>; Self::COUNT]) -> Self {
                let [$($field),+] = numbers.map(|number| number.filter(|number| number.is_finite()));
                Self { $($field),+ }
            }
        }
    };
}
pub(crate) use reported;
