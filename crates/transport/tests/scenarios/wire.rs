use std::fmt::Write;

use proptest::prelude::*;
use tautline_transport::channel::{Descriptor, Order, Priority};
use tautline_transport::wire::stream::{self, Part};
use tautline_transport::wire::{
    Acknowledgement, Announcement, Cadence, Coded, Datagram, DeliveryReport, Marks, Packet,
    Packets, Ping, Pong, Prefix, Recent, Report, Standing,
};
use tautline_transport::{ChannelNumber, Identity, LinkNumber};
use tautline_units::{ByteCount, Duration, Instant};

use crate::raw_peer::{NOW, RawPeer};

#[test]
fn the_wire_is_what_the_specification_says() {
    let vectors = vectors();
    insta::assert_snapshot!("vectors", vectors);
    let specification = include_str!("../../../../docs/protocol.md");
    for line in vectors.lines() {
        assert!(specification.contains(line), "docs/protocol.md lacks: {line}");
    }
}

fn vectors() -> String {
    let mut text = String::new();
    let mut line = |name: &str, bytes: &[u8]| {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "{name}: {hex}").unwrap();
    };
    for (name, bytes) in packets() {
        line(name, &bytes);
    }
    let (a, b) = (Identity::from_seed(&[1; 32]), Identity::from_seed(&[2; 32]));
    let peer = RawPeer::new();
    line("vehicle X25519 secret", &*a.noise_secret());
    line("operator X25519 secret", &*b.noise_secret());
    line("lease", &[7; 16]);
    line("vehicle ephemeral secret", &peer.ephemeral);
    line("vehicle session id", &peer.session.to_be_bytes());
    line("operator session id", &peer.peer_session.to_be_bytes());
    line("init on link 0", &peer.init);
    line("response on link 0", &peer.response);
    let mut ping = Vec::new();
    Ping { id: 1, sent_at: NOW }.write(&mut ping);
    line("plaintext", &ping);
    line("sealed on link 2, packet number 4294967301", &peer.seal(2, (1 << 32) + 5, &ping));
    text
}

/// Returns one packet of each kind, parsed back for verification.
fn packets() -> Vec<(&'static str, Vec<u8>)> {
    let at = Instant::from_nanos(0x0102_0304_0506_0708);
    let link = LinkNumber::new(3).unwrap();
    let ping = Ping { id: 0xa1b2_c3d4, sent_at: at };
    let pong = Pong { id: 0xa1b2_c3d4, received_at: at, sent_at: Instant::from_nanos(1_000) };
    let bytes = ByteCount::new(1_000_000);
    let report = Report {
        link,
        taken_at: at,
        highest: 70_000,
        datagrams: 69_000,
        bytes,
        age: Some(Duration::from_micros(2_500)),
        recent: Recent::of(12, |back| back % 3 != 0),
        marks: None,
    };
    let delivery_report =
        DeliveryReport { channel: ChannelNumber::MEDIA, delivered: 5_000, lost: 7 };
    let coded = Coded {
        channel: ChannelNumber::MEDIA,
        unit_low: 0x00ab_cdef,
        index: 5,
        source_count: 4,
        deadline_low: 0x1234,
        symbol: b"symbol",
    };
    let prefix = Prefix::new(1_392, Instant::from_micros(0x0012_3456_789a));
    assert_eq!(Prefix::parse(&prefix.to_bytes()), Some(prefix));
    let mut all = Vec::new();
    let mut add = |name, packet: Packet<'static>, write: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        write(&mut bytes);
        let back: Vec<_> = Packets::of(&bytes).map(|packet| format!("{packet:?}")).collect();
        assert_eq!(back, [format!("{:?}", Ok::<_, ()>(packet))]);
        all.push((name, bytes));
    };
    add("ping", Packet::Ping(ping), &|out| ping.write(out));
    add("pong", Packet::Pong(pong), &|out| pong.write(out));
    add("report", Packet::Report(report), &|out| report.write(out));
    let marked = Report { marks: Some(Marks { ect1: 68_000, ce: 900 }), ..report };
    add("report with marks", Packet::Report(marked), &|out| marked.write(out));
    add("delivery_report", Packet::DeliveryReport(delivery_report), &|out| {
        delivery_report.write(out);
    });
    add("repair packet", Packet::Coded(coded), &|out| {
        coded.write_header(out);
        out.extend_from_slice(coded.symbol);
    });
    let beside = ChannelNumber::new(200);
    let coded = Coded { channel: beside, ..coded };
    add("repair packet of channel 200", Packet::Coded(coded), &|out| {
        coded.write_header(out);
        out.extend_from_slice(coded.symbol);
    });
    let announcement = Announcement {
        channel: beside,
        order: Order::ByDeadline,
        priority: Priority::Data,
        total: 40,
        at: 0,
        bytes: b"\x05/scan\x03cd",
    };
    add("announcement", Packet::Announcement(announcement), &|out| announcement.write(out));
    let acknowledgement = Acknowledgement { channel: beside, received: 9 };
    add("acknowledgement", Packet::Acknowledgement(acknowledgement), &|out| {
        acknowledgement.write(out);
    });
    let standing = Standing { turn: 7, links: 0x8001 };
    add("standing by", Packet::Standing(standing), &|out| standing.write(out));
    let cadence = Cadence { link, interval: Duration::from_millis(25) };
    add("cadence", Packet::Cadence(cadence), &|out| cadence.write(out));
    let descriptor = Descriptor {
        topic: "/scan".into(),
        message_encoding: "cdr".into(),
        schema_name: "Scan".into(),
        schema_encoding: "ros2msg".into(),
        schema: b"float32 x".into(),
    };
    let mut bytes = Vec::new();
    descriptor.write(&mut bytes);
    assert_eq!(Descriptor::parse(&bytes), Ok(descriptor));
    all.push(("descriptor", bytes));
    all.push(("block prefix", prefix.to_bytes().to_vec()));
    let part =
        Part { last: true, unit_low: 0xcdef, index: 2, deadline_low: 0x1234, payload: b"payload" };
    let source = stream::Source { number_low: 0x0012_3456, part };
    let repair =
        stream::Repair { first_low: 0x0012_3400, count: 87, seed: 0xbeef, sum: b"sum bytes" };
    let mut add = |name, packet: Packet<'static>, write: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        write(&mut bytes);
        assert_eq!(Packets::of(&bytes).next(), Some(Ok(packet)));
        all.push((name, bytes));
    };
    add("stream source packet", Packet::Source(source), &|out| source.write(out));
    add("stream repair packet", Packet::Repair(repair), &|out| repair.write(out));
    let mut symbol = Vec::new();
    part.write_symbol(&mut symbol);
    assert_eq!(Part::parse_symbol(&symbol), Ok(part));
    symbol.truncate(part.symbol_bytes());
    all.push(("its symbol, but for zeros", symbol));
    all
}

#[test]
fn packets_follow_each_other_and_padding_ends_them() {
    let mut bytes = Vec::new();
    let ping = Ping { id: 7, sent_at: Instant::from_millis(1) };
    ping.write(&mut bytes);
    ping.write(&mut bytes);
    bytes.extend_from_slice(&[0, 0x20, 9]);
    let packets: Vec<_> = Packets::of(&bytes).collect();
    assert_eq!(packets, [Ok(Packet::Ping(ping)), Ok(Packet::Ping(ping))]);
}

#[test]
fn any_truncation_of_a_packet_is_malformed() {
    for (name, bytes) in packets().into_iter().take(3) {
        for length in 1..bytes.len() {
            let mut packets = Packets::of(&bytes[..length]);
            assert!(matches!(packets.next(), Some(Err(_))), "{name} {length}");
            assert_eq!(packets.next(), None);
        }
    }
    for length in 0..24 {
        assert!(Datagram::parse(&[0x35; 24][..length]).is_err());
    }
    for kind in [0x00, 0x50, 0xf0] {
        assert!(Datagram::parse(&[kind; 64]).is_err());
    }
}

proptest! {
    #[test]
    fn marks_in_reports_round_trip_and_later_fields_are_skipped(
        ect1 in 0..1_u64 << 48,
        ce in 0..1_u64 << 48,
        more in prop::collection::vec(any::<u8>(), 0..40),
        cut in 1_usize..15,
    ) {
        let (link, marks) = (LinkNumber::new(3).unwrap(), Some(Marks { ect1, ce }));
        let (bytes, recent) = (ByteCount::new(9), Recent::of(700, |back| back % 2 == 0));
        let report = Report {
            link,
            taken_at: NOW,
            highest: 9,
            datagrams: 9,
            bytes,
            age: None,
            recent,
            marks,
        };
        let mut bytes = Vec::new();
        report.write(&mut bytes);
        prop_assert_eq!(bytes.len(), report.bytes_on_wire());
        prop_assert!(Packets::of(&bytes[..bytes.len() - cut]).any(|packet| packet.is_err()));
        // Fields of a later version follow these.
        let length = bytes.len() - 13;
        bytes[length] += more.len() as u8;
        bytes.extend_from_slice(&more);
        Ping { id: 7, sent_at: NOW }.write(&mut bytes);
        let packets: Vec<_> = Packets::of(&bytes).collect();
        let fields = if more.is_empty() { 0 } else { 1 };
        prop_assert_eq!(packets.len(), 2 + fields);
        prop_assert_eq!(&packets[0], &Ok(Packet::Report(report)));
        prop_assert_eq!(packets.last(), Some(&Ok(Packet::Ping(Ping { id: 7, sent_at: NOW }))));
    }

    #[test]
    fn any_bytes_are_a_row_of_packets_or_end_one(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), (0_u8..16).prop_map(|kind| kind << 4)], 0..400),
    ) {
        let packets: Vec<_> = Packets::of(&bytes).collect();
        // Every packet takes at least three bytes, except the fields after a packet.
        prop_assert!(packets.len() <= bytes.len() + 1);
        for (at, packet) in packets.iter().enumerate() {
            prop_assert!(packet.is_ok() || at + 1 == packets.len());
        }
        let _ = Datagram::parse(&bytes);
    }
}
