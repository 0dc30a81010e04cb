//! Tests of encoders, decoders and concealment on complete strips.

mod avc;
mod bad_input;
mod budget;
mod ffmpeg;
mod joining;
#[cfg(feature = "libavcodec")]
mod libavcodec;
mod loss_recovery;
mod random;
mod scene;
mod streams;
