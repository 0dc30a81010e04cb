use super::{Codec, Read};
use crate::normal::Cloud;

/// The text format that the paper compares with the binary codecs.
#[derive(Default)]
pub(crate) struct Json(Vec<u8>);

impl Codec for Json {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        self.0.clear();
        serde_json::to_writer(&mut self.0, cloud).expect("a vector grows");
        &self.0
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        Ok(serde_json::from_slice(bytes)?)
    }
}
