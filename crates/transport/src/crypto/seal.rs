use snow::StatelessTransportState;

use crate::wire::{LinkNumber, TAG_BYTES};

/// The session's keys, which seal and open datagrams.
///
/// The nonce is `link << 56 | packet number`, so a datagram opens only under the link and number in
/// its header. Noise uses separate keys for the two directions.
#[derive(Debug)]
pub(crate) struct Keys {
    state: StatelessTransportState,
}

impl Keys {
    pub(crate) fn new(state: StatelessTransportState) -> Self {
        Self { state }
    }

    /// Appends the ciphertext and tag of `plaintext` to `datagram`.
    pub(crate) fn seal(
        &self,
        link: LinkNumber,
        number: u64,
        plaintext: &[u8],
        datagram: &mut Vec<u8>,
    ) {
        let start = datagram.len();
        datagram.resize(start + plaintext.len() + TAG_BYTES, 0);
        self.state
            .write_message(nonce(link, number), plaintext, &mut datagram[start..])
            .expect("the buffer has room for the tag and a datagram is below 65535 bytes");
    }

    /// Opens `ciphertext` into `plaintext`, replacing its content. Returns false if it is forged,
    /// damaged or too short, or if `number` is beyond the range; `plaintext` then has no meaning.
    pub(crate) fn open(
        &self,
        link: LinkNumber,
        number: u64,
        ciphertext: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> bool {
        let Some(length) = ciphertext.len().checked_sub(TAG_BYTES) else { return false };
        if number >= NUMBER_END {
            return false;
        }
        // With room for the tag it is opened in place.
        plaintext.resize(ciphertext.len(), 0);
        let opened = self.state.read_message(nonce(link, number), ciphertext, plaintext).is_ok();
        plaintext.truncate(length);
        opened
    }
}

fn nonce(link: LinkNumber, number: u64) -> u64 {
    assert!(number < NUMBER_END, "a link's packet numbers are exhausted");
    u64::from(link.get()) << NUMBER_BITS | number
}

const NUMBER_BITS: u32 = 56;
/// One past the last packet number of a link: sealing panics and opening fails from here on. A
/// million datagrams a second reach it after 2,283 years.
const NUMBER_END: u64 = 1 << NUMBER_BITS;
