use super::{Codec, Read};
use crate::normal::{Cloud, Info};

/// A codec that does nothing, which measures the overhead of the harness.
pub(crate) struct Noop;

impl Codec for Noop {
    fn encode(&mut self, _: &Cloud) -> &[u8] {
        &[]
    }

    fn decode(&mut self, _: &[u8]) -> Read<Cloud> {
        Ok(Cloud { info: Info::default(), points: Vec::new() })
    }

    fn sum(&mut self, _: &[u8]) -> Read<f64> {
        Ok(0.0)
    }

    fn guid(&mut self, _: &[u8]) -> Read<u64> {
        Ok(0)
    }

    fn middle_y(&mut self, _: &[u8]) -> Read<f32> {
        Ok(0.0)
    }
}
