/// Declares a set of counters, with access by name and conversion to and from the wire.
///
/// Each line is a field and the counter's name in flatc's table.
macro_rules! counts {
    (
        $(#[$about:meta])*
        $name:ident of $arguments:ty, $table:ty {
            $($(#[$doc:meta])* $field:ident: $wire:ident,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
        pub struct $name {
            $($(#[$doc])* pub $field: u64,)+
        }

        impl $name {
            /// Returns a set whose counters are the results of `count`, called with each field's
            /// name.
            pub fn by_name(mut count: impl FnMut(&'static str) -> u64) -> Self {
                Self { $($field: count(stringify!($field)),)+ }
            }

            /// Returns every counter with its name, always in the same order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($field), self.$field),)+].into_iter()
            }

            fn write(&self, arguments: &mut $arguments) {
                $(arguments.$wire = self.$field;)+
            }

            fn read(table: $table) -> Self {
                Self { $($field: table.$wire(),)+ }
            }
        }
    };
}
pub(super) use counts;
