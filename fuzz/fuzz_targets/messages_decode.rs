//! Any bytes are rejected as a message, or decode to a message that survives a round trip through
//! the encoder.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tautline_message::point_cloud::{Reader, View};
use tautline_message::{
    Command, Control, Description, LinkAction, OperatorStatus, PointCloud, ProbeAnswer, ProbeQuestion,
    QuorumStep, Snapshot, Telemetry, Values, VideoFeedback,
};
use tautline_units::Instant;

macro_rules! comes_back {
    ($bytes:ident: $($message:ident)*) => {$(
        if let Ok(message) = $message::decode($bytes) {
            assert_eq!($message::decode(&message.encode()), Ok(message));
        }
    )*};
}

fuzz_target!(|bytes: &[u8]| {
    comes_back!(bytes: Command Control LinkAction OperatorStatus ProbeAnswer ProbeQuestion
        QuorumStep Snapshot Telemetry Values VideoFeedback);
    // A limit that is not a number equals none, not even itself.
    if let Ok(message) = Description::decode(bytes) {
        let again = message.encode();
        assert_eq!(Description::decode(&again).map(|read| read.encode()), Ok(again));
    }
    comes_back!(bytes: PointCloud);
    // A reader with a known sensor treats any bytes as one without does.
    let mut reader = Reader::new();
    let known = PointCloud::new(Instant::ZERO, "lidar").encode();
    reader.read(&known).expect("our own message is well formed");
    assert_eq!(reader.read(bytes), View::of(bytes));
    assert_eq!(reader.read(bytes), View::of(bytes));
});
