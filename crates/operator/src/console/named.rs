//! Enums whose variants the page knows by a name, and numbers that it knows by one: the page's
//! lists are generated from these (see [`page`](super::page)).

/// Declares an enum with a name for each variant.
macro_rules! named {
    (
        $(#[$meta:meta])*
        $vis:vis enum $named:ident { $($(#[$doc:meta])* $variant:ident: $name:literal,)+ }
    ) => {
        $(#[$meta])*
        $vis enum $named { $($(#[$doc])* $variant,)+ }

        impl $named {
            /// Names of all variants on the page, in their order.
            #[cfg(test)]
            pub(crate) const NAMES: &'static [&'static str] = &[$($name),+];

            /// Returns the variant's name on the page.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}
pub(crate) use named;

/// Declares the first bytes of messages, with their names on the page.
macro_rules! kinds {
    ($($list:ident { $($kind:ident = $number:literal: $name:literal,)+ })+) => {$(
        $(pub(in crate::console) const $kind: u8 = $number;)+
        #[cfg(test)]
        pub(in crate::console) const $list: &[(&str, u8)] = &[$(($name, $number)),+];
    )+};
}
pub(super) use kinds;
