//! STUN as needed to find one's own address: Binding of RFC 8489, and the extensions of RFC 5780.
//!
//! ```text
//!  0               2               4                               8
//! +---------------+---------------+-------------------------------+
//! | type          | length        | 2112a442                      |
//! +---------------+---------------+-------------------------------+----------------
//! | transaction id, 12 bytes                                      | attributes ..
//! +---------------------------------------------------------------+----------------
//! ```
//!
//! No datagram of ours begins like this: its first byte is at least 16, that of STUN is 0 or 1.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The id of a request, which the answer repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transaction(pub [u8; 12]);

/// A STUN Binding message: a request or one of its two answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A request for the address that the request comes from.
    Request(Request),
    /// The answer to a request: the address that the request came from.
    Success(Success),
    /// The answer to a request that the server cannot process.
    Refusal(Refusal),
}

/// A request for the address that it arrives from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Id of the request.
    pub transaction: Transaction,
    /// Address and port of the server from which it is to answer.
    pub change: Change,
    /// Types of the comprehension-required attributes that this end does not know, the first 8.
    pub unknown: Vec<u16>,
}

/// The requested source of an answer ([RFC5780] 7.2); by default the address and port that the
/// request was sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// True if the server is to answer from its other address.
    pub address: bool,
    /// True if the server is to answer from its other port.
    pub port: bool,
}

/// The answer to a request: the address that the request came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Success {
    /// Transaction id of the request.
    pub transaction: Transaction,
    /// Address that the request came from.
    pub mapped: SocketAddr,
    /// Source address of the answer; `None` if the server does not state it.
    pub origin: Option<SocketAddr>,
    /// The server's other address with its other port; `None` if it has none.
    pub other: Option<SocketAddr>,
}

/// The answer to a request with unknown attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Transaction id of the request.
    pub transaction: Transaction,
    /// Error code: 420 for unknown attributes.
    pub code: u16,
    /// Types of the attributes that the server does not know, the first 8.
    pub unknown: Vec<u16>,
}

/// An error for bytes that are not a Binding message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a STUN Binding message: {0}")]
pub struct Malformed(&'static str);

/// Returns whether `datagram` has a STUN header and thus belongs to no session.
pub fn is_stun(datagram: &[u8]) -> bool {
    datagram.len() >= HEADER_BYTES
        && datagram[0] & 0xc0 == 0
        && datagram[4..8] == COOKIE.to_be_bytes()
        && usize::from(u16::from_be_bytes([datagram[2], datagram[3]])) + HEADER_BYTES
            == datagram.len()
}

impl Message {
    /// Reads a datagram.
    ///
    /// # Errors
    /// [`Malformed`] if the datagram is not a Binding message that this end understands.
    pub fn parse(datagram: &[u8]) -> Result<Self, Malformed> {
        if !is_stun(datagram) {
            return Err(Malformed("another header"));
        }
        let kind = u16::from_be_bytes([datagram[0], datagram[1]]);
        let transaction = datagram[8..].first_chunk().ok_or(Malformed("another header"))?;
        let transaction = Transaction(*transaction);
        let attributes = Attributes { rest: &datagram[HEADER_BYTES..] };
        match kind {
            REQUEST => Request::read(transaction, attributes).map(Self::Request),
            SUCCESS => Success::read(transaction, attributes).map(Self::Success),
            REFUSAL => Refusal::read(transaction, attributes).map(Self::Refusal),
            _ => Err(Malformed("another method")),
        }
    }
}

impl Request {
    /// Creates a request to be answered from the address that it is sent to.
    pub fn new(transaction: Transaction) -> Self {
        Self { transaction, change: Change::default(), unknown: Vec::new() }
    }

    /// Returns the request as a datagram.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = header(REQUEST, self.transaction);
        if self.change != Change::default() {
            let flags = (u32::from(self.change.address) * CHANGE_ADDRESS)
                | (u32::from(self.change.port) * CHANGE_PORT);
            attribute(&mut out, CHANGE_REQUEST, &flags.to_be_bytes());
        }
        finish(out)
    }

    /// Returns the datagram of the request, filled with padding ([RFC5780] 7.6) to `bytes` bytes.
    /// `bytes` is a multiple of four, at least 4 more than without padding.
    ///
    /// # Panics
    /// If `bytes` is not such a number.
    pub fn padded(&self, bytes: usize) -> Vec<u8> {
        let mut out = self.to_bytes();
        let padding = bytes.checked_sub(out.len() + 4).filter(|padding| padding % 4 == 0);
        let padding = padding
            .expect("a padded request's length is a multiple of four, with room for its padding");
        attribute(&mut out, PADDING, &vec![0; padding]);
        finish(out)
    }

    fn read(transaction: Transaction, attributes: Attributes<'_>) -> Result<Self, Malformed> {
        let mut request = Self::new(transaction);
        for attribute in attributes {
            match attribute? {
                (CHANGE_REQUEST, value) => {
                    let flags = value.first_chunk().ok_or(Malformed("truncated attribute"))?;
                    let flags = u32::from_be_bytes(*flags);
                    request.change = Change {
                        address: flags & CHANGE_ADDRESS != 0,
                        port: flags & CHANGE_PORT != 0,
                    };
                }
                (kind, _) if kind >= OPTIONAL_FROM || IGNORED.contains(&kind) => {}
                (kind, _) if request.unknown.len() < UNKNOWN_MAX => request.unknown.push(kind),
                _ => {}
            }
        }
        Ok(request)
    }
}

impl Success {
    /// Returns the answer as a datagram.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = header(SUCCESS, self.transaction);
        let mapped = xored(self.mapped, self.transaction);
        attribute(&mut out, XOR_MAPPED_ADDRESS, &address_value(mapped));
        for (kind, address) in [(RESPONSE_ORIGIN, self.origin), (OTHER_ADDRESS, self.other)] {
            if let Some(address) = address {
                attribute(&mut out, kind, &address_value(address));
            }
        }
        finish(out)
    }

    fn read(transaction: Transaction, attributes: Attributes<'_>) -> Result<Self, Malformed> {
        let (mut plain, mut hidden, mut origin, mut other) = (None, None, None, None);
        for attribute in attributes {
            match attribute? {
                (MAPPED_ADDRESS, value) => plain = plain.or(Some(read_address(value)?)),
                (XOR_MAPPED_ADDRESS, value) => {
                    hidden = hidden.or(Some(xored(read_address(value)?, transaction)));
                }
                (RESPONSE_ORIGIN, value) => origin = Some(read_address(value)?),
                (OTHER_ADDRESS, value) => other = Some(read_address(value)?),
                (kind, _) if kind >= OPTIONAL_FROM || IGNORED.contains(&kind) => {}
                _ => return Err(Malformed("an answer that is not understood")),
            }
        }
        let mapped = hidden.or(plain).ok_or(Malformed("an answer without an address"))?;
        Ok(Self { transaction, mapped, origin, other })
    }
}

impl Refusal {
    /// Returns the refusal as a datagram.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = header(REFUSAL, self.transaction);
        let [class, number] = [self.code / 100, self.code % 100].map(|part| part as u8);
        attribute(&mut out, ERROR_CODE, &[0, 0, class, number]);
        if !self.unknown.is_empty() {
            let kinds: Vec<u8> = self.unknown.iter().flat_map(|kind| kind.to_be_bytes()).collect();
            attribute(&mut out, UNKNOWN_ATTRIBUTES, &kinds);
        }
        finish(out)
    }

    fn read(transaction: Transaction, attributes: Attributes<'_>) -> Result<Self, Malformed> {
        let (mut code, mut unknown) = (None, Vec::new());
        for attribute in attributes {
            match attribute? {
                (ERROR_CODE, value) => {
                    let &[_, _, class, number] =
                        value.first_chunk().ok_or(Malformed("truncated attribute"))?;
                    code = Some(u16::from(class & 7) * 100 + u16::from(number % 100));
                }
                (UNKNOWN_ATTRIBUTES, value) => {
                    let kinds = value.as_chunks().0.iter().take(UNKNOWN_MAX);
                    unknown = kinds.map(|kind| u16::from_be_bytes(*kind)).collect();
                }
                _ => {}
            }
        }
        let code = code.ok_or(Malformed("a refusal without a code"))?;
        Ok(Self { transaction, code, unknown })
    }
}

/// Returns the answer to a request received from `from`: that address, or a refusal with code 420
/// if the request has unknown attributes.
///
/// `places` holds the address and port from which the answer will be sent, and the server's other
/// address and port; `None` for a server with one address.
pub fn answer(request: &Request, from: SocketAddr, places: Option<[SocketAddr; 2]>) -> Vec<u8> {
    let transaction = request.transaction;
    if !request.unknown.is_empty() {
        let unknown = request.unknown.clone();
        return Refusal { transaction, code: UNKNOWN_ATTRIBUTE, unknown }.to_bytes();
    }
    let [origin, other] = places.map_or([None; 2], |places| places.map(Some));
    Success { transaction, mapped: from, origin, other }.to_bytes()
}

/// An iterator over the attributes of a message: type and value.
struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<(u16, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let rest = std::mem::take(&mut self.rest);
        let Some((&[a, b, c, d], rest)) = rest.split_first_chunk() else {
            return Some(Err(Malformed("truncated attribute")));
        };
        let (kind, length) = (u16::from_be_bytes([a, b]), usize::from(u16::from_be_bytes([c, d])));
        let Some((value, rest)) = rest.split_at_checked(length) else {
            return Some(Err(Malformed("truncated attribute")));
        };
        // Values are padded to four bytes; the last one's padding may be missing.
        self.rest = rest.get(length.next_multiple_of(4) - length..).unwrap_or_default();
        Some(Ok((kind, value)))
    }
}

fn header(kind: u16, transaction: Transaction) -> Vec<u8> {
    let mut out = Vec::with_capacity(88);
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&COOKIE.to_be_bytes());
    out.extend_from_slice(&transaction.0);
    out
}

fn attribute(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(value.len() as u16).to_be_bytes());
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

fn finish(mut out: Vec<u8>) -> Vec<u8> {
    let length = (out.len() - HEADER_BYTES) as u16;
    out[2..4].copy_from_slice(&length.to_be_bytes());
    out
}

fn address_value(address: SocketAddr) -> Vec<u8> {
    let mut value = vec![0, if address.is_ipv4() { 1 } else { 2 }];
    value.extend_from_slice(&address.port().to_be_bytes());
    match address.ip() {
        IpAddr::V4(ip) => value.extend_from_slice(&ip.octets()),
        IpAddr::V6(ip) => value.extend_from_slice(&ip.octets()),
    }
    value
}

fn read_address(value: &[u8]) -> Result<SocketAddr, Malformed> {
    let truncated = Malformed("truncated address");
    let (&[_, family, high, low], rest) = value.split_first_chunk().ok_or(truncated)?;
    let ip = match family {
        1 => IpAddr::V4(Ipv4Addr::from(*rest.first_chunk::<4>().ok_or(truncated)?)),
        2 => IpAddr::V6(Ipv6Addr::from(*rest.first_chunk::<16>().ok_or(truncated)?)),
        _ => return Err(Malformed("an address of an unknown family")),
    };
    Ok(SocketAddr::new(ip, u16::from_be_bytes([high, low])))
}

/// Returns `address` combined with the message's header by XOR, so that no router recognizes and
/// rewrites it in the payload; the same call reverses that.
fn xored(address: SocketAddr, transaction: Transaction) -> SocketAddr {
    let mut pad = [0; 16];
    pad[..4].copy_from_slice(&COOKIE.to_be_bytes());
    pad[4..].copy_from_slice(&transaction.0);
    let ip = match address.ip() {
        IpAddr::V4(ip) => IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() ^ COOKIE)),
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() ^ u128::from_be_bytes(pad))),
    };
    SocketAddr::new(ip, address.port() ^ (COOKIE >> 16) as u16)
}

const HEADER_BYTES: usize = 20;
const COOKIE: u32 = 0x2112_a442;
const REQUEST: u16 = 0x0001;
const SUCCESS: u16 = 0x0101;
const REFUSAL: u16 = 0x0111;
const MAPPED_ADDRESS: u16 = 0x0001;
/// Attribute type of [`Change`]; a server without another address does not support it.
pub const CHANGE_REQUEST: u16 = 0x0003;
const ERROR_CODE: u16 = 0x0009;
const UNKNOWN_ATTRIBUTES: u16 = 0x000a;
const XOR_MAPPED_ADDRESS: u16 = 0x0020;
const RESPONSE_ORIGIN: u16 = 0x802b;
const OTHER_ADDRESS: u16 = 0x802c;
/// First comprehension-optional attribute type.
const OPTIONAL_FROM: u16 = 0x8000;
/// Attribute type of padding, which only makes a message longer.
const PADDING: u16 = 0x0026;
/// Ignored attributes: user name, integrity, realm, nonce, padding. The sender's identity is
/// irrelevant here.
const IGNORED: [u16; 7] = [0x0006, 0x0008, 0x0014, 0x0015, 0x001c, 0x001e, PADDING];
const CHANGE_ADDRESS: u32 = 4;
const CHANGE_PORT: u32 = 2;
const UNKNOWN_ATTRIBUTE: u16 = 420;
const UNKNOWN_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// [RFC5769] 2.2 and 2.3, without integrity and fingerprint.
    const SAMPLE: Transaction = Transaction(*b"\xb7\xe7\xa7\x01\xbc\x34\xd6\x86\xfa\x87\xdf\xae");

    #[test]
    fn addresses_are_hidden_as_the_samples_of_rfc_5769_show() {
        let success = |address: &str| Success {
            transaction: SAMPLE,
            mapped: address.parse().unwrap(),
            origin: None,
            other: None,
        };
        let four = success("192.0.2.1:32853");
        let expected = b"\x00\x20\x00\x08\x00\x01\xa1\x47\xe1\x12\xa6\x43";
        assert_eq!(four.to_bytes()[HEADER_BYTES..], *expected);
        let six = success("[2001:db8:1234:5678:11:2233:4455:6677]:32853");
        let expected = b"\x00\x20\x00\x14\x00\x02\xa1\x47\x01\x13\xa9\xfa\
            \xa5\xd3\xf1\x79\xbc\x25\xf4\xb5\xbe\xd2\xb9\xd9";
        assert_eq!(six.to_bytes()[HEADER_BYTES..], *expected);
        for message in [four, six] {
            assert_eq!(Message::parse(&message.to_bytes()), Ok(Message::Success(message)));
        }
    }

    #[test]
    fn a_request_of_any_client_is_read() {
        let mut bytes = header(REQUEST, SAMPLE);
        attribute(&mut bytes, 0x8022, b"STUN test client");
        attribute(&mut bytes, 0x0006, b"evtj:h6vY");
        let request = Message::parse(&finish(bytes)).unwrap();
        assert_eq!(request, Message::Request(Request::new(SAMPLE)));
    }

    #[test]
    fn a_padded_request_has_the_requested_length_and_meaning() {
        for change in [Change::default(), Change { address: true, port: false }] {
            let request = Request { change, ..Request::new(SAMPLE) };
            for bytes in [32, 548, 1_472] {
                let padded = request.padded(bytes);
                assert_eq!(padded.len(), bytes);
                assert_eq!(Message::parse(&padded), Ok(Message::Request(request.clone())));
            }
        }
    }

    #[test]
    fn an_unknown_mandatory_attribute_is_refused_by_its_number() {
        let mut bytes = header(REQUEST, SAMPLE);
        attribute(&mut bytes, 0x0027, &[0; 4]);
        let Ok(Message::Request(request)) = Message::parse(&finish(bytes)) else { panic!() };
        let from = "192.0.2.1:7".parse().unwrap();
        let Ok(Message::Refusal(refusal)) = Message::parse(&answer(&request, from, None)) else {
            panic!()
        };
        assert_eq!((refusal.code, refusal.unknown), (420, vec![0x0027]));
    }

    #[test]
    fn no_datagram_of_a_session_is_taken_for_one_of_stun() {
        let request = Request::new(SAMPLE).to_bytes();
        assert!(is_stun(&request));
        assert!(!is_stun(&request[..19]));
        for kind in 1..=5_u8 {
            let mut ours = request.clone();
            ours[0] = kind << 4;
            assert!(crate::wire::Datagram::parse(&request).is_err());
            assert!(Message::parse(&ours).is_err());
        }
    }

    fn address() -> impl Strategy<Value = SocketAddr> {
        any::<(IpAddr, u16)>().prop_map(SocketAddr::from)
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Message::parse(&bytes);
        }

        #[test]
        fn any_attributes_are_read_or_refused(
            kind in prop::sample::select(vec![REQUEST, SUCCESS, REFUSAL]),
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut message = header(kind, SAMPLE);
            message.extend_from_slice(&bytes);
            let _ = Message::parse(&finish(message));
        }

        #[test]
        fn stun_messages_round_trip(
            name in any::<[u8; 12]>(),
            mapped in address(),
            origin in prop::option::of(address()),
            other in prop::option::of(address()),
            change in any::<(bool, bool)>(),
        ) {
            let transaction = Transaction(name);
            let success = Success { transaction, mapped, origin, other };
            let read = Message::parse(&success.to_bytes());
            prop_assert_eq!(read, Ok(Message::Success(success)));
            let change = Change { address: change.0, port: change.1 };
            let request = Request { change, ..Request::new(transaction) };
            let read = Message::parse(&request.to_bytes());
            prop_assert_eq!(read, Ok(Message::Request(request)));
        }
    }
}
