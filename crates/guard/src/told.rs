//! Numbers that a machine tells for people, in one list.

/// Makes a struct of numbers that may not be known from a list of them: what is written, read, named and told
/// elsewhere follows from it.
macro_rules! told {
    (
        $(#[$about:meta])*
        pub struct $told:ident { $($(#[$doc:meta])* $field:ident: $name:literal, $unit:literal;)+ }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Default, Debug, serde::Serialize, serde::Deserialize)]
        pub struct $told { $($(#[$doc])* pub $field: Option<f32>,)+ }

        impl $told {
            /// Name for people and unit of each, in the order of the list.
            pub const NAMES: &'static [(&'static str, &'static str)] = &[$(($name, $unit)),+];
            /// How many there are.
            pub const COUNT: usize = Self::NAMES.len();

            /// Returns each number, in the order of the list.
            pub fn numbers(&self) -> [Option<f32>; Self::COUNT] {
                [$(self.$field),+]
            }

            /// Returns them with these numbers, of which one that is not finite is not known.
            pub fn from_numbers(numbers: [Option<f32>; Self::COUNT]) -> Self {
                let [$($field),+] = numbers.map(|number| number.filter(|number| number.is_finite()));
                Self { $($field),+ }
            }
        }
    };
}
pub(crate) use told;
