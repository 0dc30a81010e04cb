/// Adds the three public functions of a message, based on its own `write` and `read`.
macro_rules! codec {
    ($message:ident) => {
        impl $message {
            /// Returns the message's bytes. Its values are not checked.
            pub fn encode(&self) -> Vec<u8> {
                self.encode_into(&mut $crate::Builder::new()).to_vec()
            }

            /// Returns the message's bytes, in `builder`'s buffer until its next use.
            pub fn encode_into<'b>(&self, builder: &'b mut $crate::Builder) -> &'b [u8] {
                let builder = builder.fresh();
                self.write(builder);
                builder.finished_data()
            }

            /// Returns the message in `bytes`, verified and checked.
            ///
            /// # Errors
            /// If the bytes are not such a message, or a value is invalid: see
            /// [`Error`](crate::Error). Any input bytes are safe.
            pub fn decode(bytes: &[u8]) -> Result<Self, $crate::Error> {
                Self::read($crate::wire::root::<Root<'_>>(&KIND, bytes)?)
            }
        }
    };
}
pub(crate) use codec;
