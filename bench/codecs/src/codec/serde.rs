//! Codecs that write Rust's types without a schema: bincode, postcard, wincode, bitcode.

use super::{Codec, Read};
use crate::normal::Cloud;

/// bincode 1.3.3, the last functional version.
#[derive(Default)]
pub(crate) struct Bincode(Vec<u8>);

impl Codec for Bincode {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        self.0.clear();
        bincode::serialize_into(&mut self.0, cloud).expect("a vector grows");
        &self.0
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        Ok(bincode::deserialize(bytes)?)
    }
}

#[derive(Default)]
pub(crate) struct Postcard(Vec<u8>);

impl Codec for Postcard {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        let mut buffer = std::mem::take(&mut self.0);
        buffer.clear();
        self.0 = postcard::to_extend(cloud, buffer).expect("a vector grows");
        &self.0
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        Ok(postcard::from_bytes(bytes)?)
    }
}

#[derive(Default)]
pub(crate) struct Wincode(Vec<u8>);

impl Codec for Wincode {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        self.0.clear();
        wincode::serialize_into(&mut self.0, cloud).expect("a vector grows");
        &self.0
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        Ok(wincode::deserialize(bytes)?)
    }
}

#[derive(Default)]
pub(crate) struct Bitcode {
    encoder: bitcode::Buffer,
    decoder: bitcode::Buffer,
}

impl Codec for Bitcode {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        self.encoder.encode(cloud)
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        Ok(self.decoder.decode(bytes)?)
    }
}
