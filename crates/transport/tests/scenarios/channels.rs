//! Channels: announced, handled each in its own order, and skipped if unknown.

use tautline_transport::channel::{Channel, Descriptor, Order, Priority};
use tautline_transport::wire::{Announcement, Coded, Ping, Prefix};
use tautline_transport::{ChannelNumber, Discard, Event, SendError};
use tautline_units::{Bitrate, Duration};

use crate::exchange::{direct, route, units};
use crate::harness::ms;
use crate::raw_peer::{NOW, RawPeer};

pub(crate) fn channel(number: u8, order: Order, priority: Priority, kbps: u64) -> Channel {
    Channel {
        number: ChannelNumber::new(number),
        order,
        priority,
        rate_cap: Some(Bitrate::from_kbps(kbps)),
        descriptor: Descriptor {
            topic: format!("/{number}"),
            message_encoding: "cdr".into(),
            schema_name: "Scan".into(),
            schema_encoding: "ros2msg".into(),
            schema: vec![number; 3_000],
        },
    }
}

#[test]
fn a_channel_that_one_end_opens_is_announced_to_the_other_once() {
    let mut sessions = direct(&[route(1), route(2)]);
    let opened = channel(200, Order::ByDeadline, Priority::Telemetry, 500);
    sessions.operator.open(opened.clone()).unwrap();
    sessions.run_until(ms(2_000));
    let later = channel(201, Order::NewestWins, Priority::Telemetry, 500);
    sessions.operator.open(later.clone()).unwrap();
    sessions.run_until(ms(4_000));
    let announced: Vec<_> = std::iter::from_fn(|| sessions.vehicle.poll_event())
        .filter_map(|event| match event {
            Event::Announced { channel, descriptor } => Some((channel, descriptor)),
            _ => None,
        })
        .collect();
    let expected = [opened, later].map(|channel| (channel.number, channel.descriptor));
    assert_eq!(announced, expected);
    let (deadline, now) = (Duration::from_millis(200), sessions.now);
    sessions.operator.send(ChannelNumber::new(200), b"scan", deadline, now).unwrap();
    // A channel that was not opened here cannot be used for sending, even if the other end opened
    // it.
    let refused = sessions.vehicle.send(ChannelNumber::new(200), b"scan", deadline, now);
    assert_eq!(refused, Err(SendError::NotOpened { channel: ChannelNumber::new(200) }));
    sessions.run_until(ms(4_200));
    assert_eq!(units(&mut sessions.vehicle), ["channel 200 scan"]);
    assert_eq!(sessions.vehicle.counters().discarded(Discard::ChannelUnknown), 0);
    // Everything is announced.
    let sent = sessions.operator.counters().datagrams_sent;
    sessions.run_until(ms(5_200));
    let a_second = sessions.operator.counters().datagrams_sent - sent;
    assert!(a_second < 250, "{a_second}: pings, pongs and reports of two links");
}

/// Returns a packet of a unit of `symbols` equal parts.
fn packet(channel: u8, unit: u32, index: u8, content: &[u8], symbols: u8) -> Vec<u8> {
    let block = [&Prefix::new(content.len(), NOW).to_bytes()[..], content].concat();
    let symbol_bytes = block.len().div_ceil(usize::from(symbols));
    let mut block = block;
    block.resize(symbol_bytes * usize::from(symbols), 0);
    let coded = Coded {
        channel: ChannelNumber::new(channel),
        unit_low: unit,
        index,
        source_count: symbols,
        deadline_low: 34_664,
        symbol: &[],
    };
    let mut bytes = Vec::new();
    coded.write_header(&mut bytes);
    bytes.extend_from_slice(&block[usize::from(index) * symbol_bytes..][..symbol_bytes]);
    bytes
}

fn announce(peer: &mut RawPeer, channel: u8, order: Order) {
    let mut bytes = Vec::new();
    Announcement {
        channel: ChannelNumber::new(channel),
        order,
        priority: Priority::Telemetry,
        total: 100,
        at: 0,
        bytes: &[],
    }
    .write(&mut bytes);
    peer.say(&bytes, NOW);
}

#[test]
fn the_newest_wins_on_its_own_channel_and_on_no_other() {
    let mut peer = RawPeer::new();
    for channel in [3, 4, 5] {
        announce(&mut peer, channel, Order::NewestWins);
    }
    // A snapshot in two packets, newer telemetry between them, and a probe's request before a
    // command that was sent earlier.
    peer.say(&packet(4, 0, 0, b"report", 2), NOW);
    for unit in 1..40 {
        peer.say(&packet(3, unit, 0, b"telemetry", 1), NOW);
    }
    peer.say(&packet(5, 900, 0, b"question", 1), NOW);
    peer.say(&packet(4, 0, 1, b"report", 2), NOW);
    peer.say(&packet(0, 7, 0, b"command", 1), NOW);
    peer.say(&packet(3, 12, 0, b"stale", 1), NOW);
    peer.say(&packet(0, 6, 0, b"stale", 1), NOW);
    let came = units(&mut peer.operator);
    assert_eq!(came.len(), 39 + 3);
    for unit in ["channel 4 report", "channel 5 question", "channel 0 command"] {
        assert!(came.iter().any(|came| came == unit), "{unit}");
    }
    assert_eq!(peer.operator.units(ChannelNumber::COMMAND).superseded, 1);
    assert_eq!(peer.operator.units(ChannelNumber::new(3)).delivered, 39);
    assert_eq!(peer.operator.units(ChannelNumber::new(4)).delivered, 1);
}

#[test]
fn unknown_packets_of_a_later_version_are_skipped_and_counted() {
    let mut peer = RawPeer::new();
    let mut bytes = Vec::new();
    // An unknown kind, a ping with unknown fields, an acknowledgement with a longer body, and a
    // unit of an unannounced channel.
    bytes.extend_from_slice(&[0xc0, 0, 3, 1, 2, 3]);
    Ping { id: 1, sent_at: NOW }.write(&mut bytes);
    bytes.extend_from_slice(&[0xf0, 0, 2, 9, 9]);
    bytes.extend_from_slice(&[0x90, 0, 5, 77, 0, 0, 8, 8]);
    let pongs = peer.operator.counters().datagrams_sent;
    bytes.extend_from_slice(&packet(33, 0, 0, &[7; 200], 1));
    peer.say(&bytes, NOW);
    assert_eq!(peer.discarded(Discard::PacketUnknown), 1);
    assert_eq!(peer.discarded(Discard::FieldsUnknown), 2);
    assert_eq!(peer.discarded(Discard::ChannelUnknown), 1);
    assert_eq!(peer.discarded(Discard::PacketMalformed), 0);
    assert!(peer.operator.counters().datagrams_sent > pongs, "the ping was answered");
    assert_eq!(units(&mut peer.operator), [""; 0]);
    // A packet with a wrong length ends the sequence.
    peer.say(&[0xd0, 255, 255, 1], NOW + Duration::from_millis(1));
    assert_eq!(peer.discarded(Discard::PacketMalformed), 1);
    assert!(peer.operator.is_established());
}
