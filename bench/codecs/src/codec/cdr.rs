//! CDR as written by Rust's serde crate for it.

use byteorder::LittleEndian;

use super::{Codec, Read};
use crate::normal::Cloud;

#[derive(Default)]
pub(crate) struct Serde(Vec<u8>);

impl Codec for Serde {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        self.0.clear();
        cdr::serialize_into::<_, _, _, cdr::CdrLe>(&mut self.0, cloud, cdr::Infinite)
            .expect("a vector grows");
        &self.0
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        Ok(cdr::deserialize(bytes)?)
    }
}

#[derive(Default)]
pub(crate) struct Encoding(Vec<u8>);

impl Codec for Encoding {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        self.0.clear();
        cdr_encoding::to_writer::<_, LittleEndian, _>(&mut self.0, cloud).expect("a vector grows");
        &self.0
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        Ok(cdr_encoding::from_bytes::<Cloud, LittleEndian>(bytes)?.0)
    }
}
