//! Any datagram is parsed or rejected. Parsed packets are written back byte for byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tautline_transport::channel::Descriptor;
use tautline_transport::order::SignedOrder;
use tautline_transport::wire::stream::Part;
use tautline_transport::wire::{Datagram, Packet, Packets, Prefix};
use tautline_units::Instant;

fuzz_target!(|bytes: &[u8]| {
    let _ = Datagram::parse(bytes);
    assert!(SignedOrder::read(bytes).is_err(), "nobody has the key");
    if let Some(prefix) = Prefix::parse(bytes) {
        assert_eq!(prefix.to_bytes(), bytes[..Prefix::BYTES]);
        prefix.sent_at(Instant::from_nanos(u64::MAX));
    }
    if let Ok(part) = Part::parse_symbol(bytes) {
        let mut symbol = Vec::new();
        part.write_symbol(&mut symbol);
        assert_eq!(Part::parse_symbol(&symbol), Ok(part));
    }
    if let Ok(descriptor) = Descriptor::parse(bytes) {
        let mut again = Vec::new();
        descriptor.write(&mut again);
        assert_eq!(again[..], bytes[..again.len()]);
    }
    // Every packet but the last knows its length: the row is rebuilt from its packets.
    let mut row = Vec::new();
    for packet in Packets::of(bytes) {
        let Ok(packet) = packet else { break };
        // Fields of later versions are skipped; they have no encoder.
        if matches!(packet, Packet::Unknown { .. } | Packet::UnknownFields) {
            continue;
        }
        let start = row.len();
        write(&packet, &mut row);
        assert_eq!(Packets::of(&row[start..]).next(), Some(Ok(packet)));
    }
    assert!(row.len() <= bytes.len(), "{} bytes from {}", row.len(), bytes.len());
});

fn write(packet: &Packet<'_>, out: &mut Vec<u8>) {
    match packet {
        Packet::Coded(coded) => {
            coded.write_header(out);
            out.extend_from_slice(coded.symbol);
        }
        Packet::Ping(ping) => ping.write(out),
        Packet::Pong(pong) => pong.write(out),
        Packet::Cadence(cadence) => cadence.write(out),
        Packet::Report(report) => report.write(out),
        Packet::DeliveryReport(report) => report.write(out),
        Packet::Source(source) => source.write(out),
        Packet::Repair(repair) => repair.write(out),
        Packet::Announcement(announcement) => announcement.write(out),
        Packet::Acknowledgement(acknowledgement) => acknowledgement.write(out),
        Packet::Standing(standing) => standing.write(out),
        Packet::Unknown { .. } | Packet::UnknownFields => {}
    }
}
