//! Wire format: docs/protocol.md in code, one file per datagram or packet type.
//!
//! A datagram is `type | link`, a session id and, when sealed, a packet number and one AEAD
//! ciphertext. The plaintext is a sequence of packets. All numbers are big-endian.

mod announcement;
mod block;
mod cadence;
mod coded;
mod datagram;
mod delivery_report;
mod field;
mod frames;
mod kind;
mod malformed;
mod marks;
mod ping;
mod pong;
mod report;
mod standing;
pub mod stream;
mod versions;

pub use announcement::{Acknowledgement, Announcement};
pub use block::Prefix;
pub use cadence::Cadence;
pub use coded::{Coded, UNIT_NUMBER_BITS};
pub use datagram::{Datagram, LinkNumber, SEALED_HEADER_BYTES, TAG_BYTES};
pub use datagram::{
    HOLE_PUNCH_BYTES, HOLE_PUNCH_TAG_BYTES, REFUSAL_TAG_BYTES, write_hole_punch, write_init_header,
    write_refusal, write_response_header, write_sealed_header,
};
pub use delivery_report::DeliveryReport;
pub use frames::{Frames, write_frame};
pub use malformed::Malformed;
pub use marks::Marks;
pub use ping::Ping;
pub use pong::Pong;
pub use report::{Recent, Report};
pub use standing::Standing;
pub use versions::{VersionMismatch, Versions};

use field::take;
use kind::{
    KIND_ACKNOWLEDGEMENT, KIND_ANNOUNCEMENT, KIND_CADENCE, KIND_CODED, KIND_DELIVERY_REPORT,
    KIND_FIELDS, KIND_PADDING, KIND_PING, KIND_PONG, KIND_REPORT, KIND_STANDING,
    KIND_STREAM_REPAIR, KIND_STREAM_SOURCE,
};

/// One packet of a sealed datagram's plaintext.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A source or repair packet; always the last of its datagram.
    Coded(Coded<'a>),
    /// A ping for clock comparison and liveness.
    Ping(Ping),
    /// The answer to a ping.
    Pong(Pong),
    /// A report of what arrived on a link.
    Report(Report),
    /// A report on the outcome of units.
    DeliveryReport(DeliveryReport),
    /// A source packet of the streaming code; always the last of its datagram.
    Source(stream::Source<'a>),
    /// A repair packet of the streaming code; always the last of its datagram.
    Repair(stream::Repair<'a>),
    /// A part of a channel's announcement.
    Announcement(Announcement<'a>),
    /// An acknowledgement of an announcement.
    Acknowledgement(Acknowledgement),
    /// The initiator's choice of standby links.
    Standing(Standing),
    /// The interval of a link's reports.
    Cadence(Cadence),
    /// A packet of a kind unknown to this version, skipped.
    Unknown {
        /// Kind of the packet, 12 to 14.
        kind: u8,
    },
    /// Fields of the previous packet that are unknown to this version, skipped.
    UnknownFields,
}

/// An iterator over the packets of a plaintext, in order; it ends after the first malformed one.
///
/// Padding (kind 0) ends the sequence: everything after it is ignored. Kinds from 8 on carry their
/// length.
#[derive(Debug, Clone)]
pub struct Packets<'a> {
    rest: &'a [u8],
    /// True if the packet returned last has unknown fields, which the next item reports.
    fields: bool,
}

impl<'a> Packets<'a> {
    /// Creates the iterator over `plaintext`.
    pub fn of(plaintext: &'a [u8]) -> Self {
        Self { rest: plaintext, fields: false }
    }

    fn parse(&mut self, head: u8) -> Result<Option<Packet<'a>>, Malformed> {
        match head >> 4 {
            KIND_PADDING => {
                self.rest = &[];
                Ok(None)
            }
            KIND_CODED => {
                let packet = Coded::parse(std::mem::take(&mut self.rest))?;
                Ok(Some(Packet::Coded(packet)))
            }
            KIND_PING => Ok(Some(Packet::Ping(Ping::parse(&mut self.rest)?))),
            KIND_PONG => Ok(Some(Packet::Pong(Pong::parse(&mut self.rest)?))),
            KIND_REPORT => {
                let mut report = Report::parse(&mut self.rest)?;
                if self.rest.first().is_some_and(|head| head >> 4 == KIND_FIELDS) {
                    let mut body = self.take_body()?;
                    report.marks = Some(Marks::parse(&mut body)?);
                    self.fields = !body.is_empty();
                }
                Ok(Some(Packet::Report(report)))
            }
            KIND_DELIVERY_REPORT => {
                let report = DeliveryReport::parse(&mut self.rest)?;
                Ok(Some(Packet::DeliveryReport(report)))
            }
            KIND_STREAM_SOURCE => {
                let source = stream::Source::parse(std::mem::take(&mut self.rest))?;
                Ok(Some(Packet::Source(source)))
            }
            KIND_STREAM_REPAIR => {
                let repair = stream::Repair::parse(std::mem::take(&mut self.rest))?;
                Ok(Some(Packet::Repair(repair)))
            }
            KIND_ANNOUNCEMENT => {
                let body = self.take_body()?;
                Ok(Some(Packet::Announcement(Announcement::parse(body)?)))
            }
            KIND_ACKNOWLEDGEMENT => {
                let mut body = self.take_body()?;
                let packet = Acknowledgement::parse(&mut body)?;
                self.fields = !body.is_empty();
                Ok(Some(Packet::Acknowledgement(packet)))
            }
            KIND_FIELDS => {
                self.take_body()?;
                Ok(Some(Packet::UnknownFields))
            }
            KIND_STANDING => {
                let mut body = self.take_body()?;
                let packet = Standing::parse(&mut body)?;
                self.fields = !body.is_empty();
                Ok(Some(Packet::Standing(packet)))
            }
            KIND_CADENCE => {
                let mut body = self.take_body()?;
                let packet = Cadence::parse(&mut body)?;
                self.fields = !body.is_empty();
                Ok(Some(Packet::Cadence(packet)))
            }
            kind @ 12..=14 => {
                self.take_body()?;
                Ok(Some(Packet::Unknown { kind }))
            }
            16.. => unreachable!("a nibble is at most 15"),
        }
    }

    /// Reads a packet of a kind with a length field, and returns the bytes after that field.
    fn take_body(&mut self) -> Result<&'a [u8], Malformed> {
        let [_kind, high, low] = take(&mut self.rest)?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (body, tail) =
            self.rest.split_at_checked(length).ok_or(Malformed("truncated packet"))?;
        self.rest = tail;
        Ok(body)
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Packet<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if std::mem::take(&mut self.fields) {
            return Some(Ok(Packet::UnknownFields));
        }
        let head = *self.rest.first()?;
        match self.parse(head) {
            Ok(packet) => packet.map(Ok),
            Err(malformed) => {
                self.rest = &[];
                Some(Err(malformed))
            }
        }
    }
}

/// Bytes around the symbol in the datagram of a source or repair packet: header, packet header and
/// tag.
pub const SYMBOL_AROUND_BYTES: usize = SEALED_HEADER_BYTES + Coded::HEADER_BYTES + TAG_BYTES;

const _: () = assert!(SYMBOL_AROUND_BYTES <= 32, "guaranteed by the wire format");

/// The byte that fills a datagram: kind 0.
pub const PADDING: u8 = KIND_PADDING << 4;
