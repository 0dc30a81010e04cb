//! Whatever comes as a message is refused, or is read as something that comes back from being
//! written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tautline_message::{
    Command, Control, LinkAction, OperatorStatus, ProbeAnswer, ProbeQuestion, Survey, Telemetry,
};

macro_rules! comes_back {
    ($bytes:ident: $($message:ident)*) => {$(
        if let Ok(message) = $message::decode($bytes) {
            assert_eq!($message::decode(&message.encode()), Ok(message));
        }
    )*};
}

fuzz_target!(|bytes: &[u8]| {
    comes_back!(bytes: Command Control LinkAction OperatorStatus ProbeAnswer ProbeQuestion Survey
        Telemetry);
    let _ = tautline_message::point_cloud::View::of(bytes);
});
