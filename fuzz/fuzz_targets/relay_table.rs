//! For any datagrams to a relay, from any address: only STUN answers are longer than their
//! question, and nothing is forwarded before an end is proven.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tautline_fuzz::Input;
use tautline_relay::Table;
use tautline_relay::config::Limits;
use tautline_relay::table::Fate;
use tautline_transport::Identity;
use tautline_transport::Route;
use tautline_transport::relay::wire::Message;
use tautline_transport::stun::is_stun;
use tautline_units::{Bitrate, ByteCount, Instant};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        leases_max: 4,
        lease_rate: Bitrate::from_mbps(1),
        link_bytes_max: ByteCount::new(100_000),
    };
    let switchboard = Identity::from_seed(&[9; 32]).public();
    let identity = Identity::from_seed(&[3; 32]);
    let mut table = Table::new(identity, switchboard, limits, Duration::from_secs(1), [7; 32]);
    let mut input = Input(bytes);
    let (mut answer, mut now) = (Vec::new(), Instant::ZERO);
    while !input.0.is_empty() {
        let port = 1 + input.up_to(3) as u16;
        let from = Route { socket: 0, remote: ([192, 0, 2, 1], port).into() };
        let mut datagram: Vec<u8> = (0..input.up_to(400)).map(|_| input.byte()).collect();
        // Half of them have a valid header and the latest cookie.
        if input.up_to(1) == 1 && datagram.len() >= 28 {
            datagram[..4].copy_from_slice(&[0x60 | input.up_to(15) as u8, 1, 0, 0]);
            if let Some(Message::Cookie { cookie, .. }) = Message::parse(&answer) {
                datagram[12..28].copy_from_slice(&cookie.0);
            }
        }
        let fate = table.handle_datagram(from, &datagram, &mut answer, now);
        // A STUN answer adds one address, and lists at most nine attributes.
        let most = datagram.len() + if is_stun(&datagram) { 24 } else { 0 };
        assert!(answer.len() <= most);
        assert!(!matches!(fate, Fate::Forwarded(_)));
        now += Duration::from_millis(input.up_to(2_000) as u64);
        table.handle_timeout(now);
    }
    assert_eq!(table.counters().legs, 0);
});
