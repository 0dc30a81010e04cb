//! First bytes of a console's messages; generated.

// By crates/operator/src/console/page.rs, which says how: do not edit.

pub(super) mod from_operator {
    pub(in crate::operator) const SLICE: u8 = 1;
    pub(in crate::operator) const TELEMETRY: u8 = 2;
    pub(in crate::operator) const STATUS: u8 = 3;
    pub(in crate::operator) const PONG: u8 = 4;
    pub(in crate::operator) const HELLO: u8 = 5;
    pub(in crate::operator) const SNAPSHOT: u8 = 6;
    pub(in crate::operator) const STANDING: u8 = 7;
    pub(in crate::operator) const TOPICS: u8 = 8;
    pub(in crate::operator) const FLEET: u8 = 9;
    pub(in crate::operator) const DESCRIPTION: u8 = 10;
    pub(in crate::operator) const VALUES: u8 = 11;
}

pub(super) mod to_operator {
    pub(in crate::operator) const COMMAND: u8 = 1;
    pub(in crate::operator) const LINK_ACTION: u8 = 2;
    pub(in crate::operator) const PING: u8 = 3;
    pub(in crate::operator) const VIDEO_FEEDBACK: u8 = 4;
    pub(in crate::operator) const ASK: u8 = 5;
    pub(in crate::operator) const ANSWER: u8 = 6;
    pub(in crate::operator) const PICK: u8 = 7;
    pub(in crate::operator) const LEAVE: u8 = 8;
    pub(in crate::operator) const DECODER: u8 = 9;
}
