/// A relay, and the right to reach a peer through it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelayTicket {
    /// Addresses of the relay: `host:port`, at most 32.
    pub addresses: Vec<String>,
    /// Static public key of the relay.
    pub key: [u8; 32],
    /// Token that the relay checks, at most 256 bytes.
    pub token: Vec<u8>,
}
