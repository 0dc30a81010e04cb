//! Kinds of packets: the first nibble of each.

pub(super) const KIND_PADDING: u8 = 0;
pub(super) const KIND_CODED: u8 = 1;
pub(super) const KIND_PING: u8 = 2;
pub(super) const KIND_PONG: u8 = 3;
pub(super) const KIND_REPORT: u8 = 4;
pub(super) const KIND_DELIVERY_REPORT: u8 = 5;
pub(super) const KIND_STREAM_SOURCE: u8 = 6;
pub(super) const KIND_STREAM_REPAIR: u8 = 7;
pub(super) const KIND_ANNOUNCEMENT: u8 = 8;
pub(super) const KIND_ACKNOWLEDGEMENT: u8 = 9;
pub(super) const KIND_STANDING: u8 = 10;
pub(super) const KIND_CADENCE: u8 = 11;
pub(super) const KIND_FIELDS: u8 = 15;
