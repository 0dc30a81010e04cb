/// A machine to which another may be introduced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// Name of the machine, at most 64 bytes.
    pub name: String,
    /// Static public key of the machine.
    pub key: [u8; 32],
}
