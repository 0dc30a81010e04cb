//! Kernel counters of one network namespace.

use std::collections::BTreeMap;
use std::fs;

use serde::{Deserialize, Serialize};

use crate::transport::Transport;

/// Counters of `/proc/net` by name: `Udp.OutDatagrams`, `sockets.DCCP`, `va0.sent_packets`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Reads the counters of the calling process's namespace; a missing file counts as empty.
    pub(crate) fn read() -> Self {
        let text = |name: &str| fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
        let mut counters = Self::default();
        counters.take_tables(&text("snmp"));
        counters.take_tables(&text("netstat"));
        counters.take_list(&text("sctp/snmp"));
        counters.take_protocols(&text("protocols"));
        counters.take_devices(&text("dev"));
        counters
    }

    /// Returns a counter, or 0 if it does not exist.
    pub(crate) fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Returns the name of the counter of a transport's own protocol, and the number of packets
    /// that this end has sent with it.
    ///
    /// The kernel has no DCCP packet counter in `/proc/net`. If a DCCP socket is open and no other
    /// protocol has sent anything, the interface's packets are those of DCCP.
    pub(crate) fn own(&self, transport: Transport) -> (&'static str, u64) {
        let name = match transport {
            Transport::Udp
            | Transport::Tautline
            | Transport::TautlineTwo
            | Transport::QuicStreams
            | Transport::QuicStreamsBbr
            | Transport::QuicDatagrams => "Udp.OutDatagrams",
            Transport::UdpLite | Transport::UdpLiteSealed => "UdpLite.OutDatagrams",
            // Data chunks: a packet counted by the kernel may be segmented later.
            Transport::Sctp => "SctpOutOrderChunks",
            Transport::SctpPartial => "SctpOutUnorderChunks",
            Transport::Dccp | Transport::DccpPartial => {
                let others = ["Udp.OutDatagrams", "UdpLite.OutDatagrams", "Tcp.OutSegs"];
                let alone = others.iter().all(|name| self.get(name) == 0);
                let open = self.get("sockets.DCCP") > 0;
                let packets = if alone && open { self.get("va0.sent_packets") } else { 0 };
                return ("va0.sent_packets", packets);
            }
            // Segments are counted as TCP's; only MPTCP sends them on both links.
            Transport::Mptcp if self.get("MPTcpExt.MPJoinSynAckRx") == 0 => {
                "MPTcpExt.MPJoinSynAckRx"
            }
            Transport::Reno
            | Transport::RenoLarge
            | Transport::Westwood
            | Transport::Cubic
            | Transport::Bbr
            | Transport::CubicTimed
            | Transport::BbrTimed
            | Transport::Mptcp => "Tcp.OutSegs",
        };
        (name, self.get(name))
    }

    /// Parses pairs of lines: names, then numbers.
    fn take_tables(&mut self, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        for [names, numbers] in lines.as_chunks::<2>().0 {
            let Some((table, names)) = names.split_once(':') else { continue };
            let numbers = numbers.split_once(':').map_or("", |(_, numbers)| numbers);
            for (name, number) in names.split_whitespace().zip(numbers.split_whitespace()) {
                self.put(format!("{table}.{name}"), number);
            }
        }
    }

    /// Parses lines of a name and a number.
    fn take_list(&mut self, text: &str) {
        for line in text.lines() {
            let mut words = line.split_whitespace();
            if let (Some(name), Some(number)) = (words.next(), words.next()) {
                self.put(name.to_owned(), number);
            }
        }
    }

    /// Parses the number of open sockets per protocol.
    fn take_protocols(&mut self, text: &str) {
        for line in text.lines().skip(1) {
            let mut words = line.split_whitespace();
            if let (Some(name), Some(number)) = (words.next(), words.nth(1)) {
                self.put(format!("sockets.{name}"), number);
            }
        }
    }

    /// Parses the packets sent by each interface. These have left its queue, where NetEm drops
    /// packets.
    fn take_devices(&mut self, text: &str) {
        for line in text.lines() {
            let Some((name, numbers)) = line.split_once(':') else { continue };
            let numbers: Vec<&str> = numbers.split_whitespace().collect();
            let (name, Some([bytes, packets])) = (name.trim(), numbers.get(8..10)) else {
                continue;
            };
            self.put(format!("{name}.sent_bytes"), bytes);
            self.put(format!("{name}.sent_packets"), packets);
        }
    }

    fn put(&mut self, name: String, number: &str) {
        // Some kernel values are negative; none of them is needed.
        if let Ok(number) = number.parse() {
            self.0.insert(name, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_kernels_tables_is_read() {
        let mut counters = Counters::default();
        counters.take_tables("Tcp: MaxConn OutSegs\nTcp: -1 12\nUdp: OutDatagrams\nUdp: 3\n");
        counters.take_list("SctpCurrEstab                   \t1\nSctpOutOrderChunks \t 44\n");
        counters.take_protocols("protocol  size sockets  memory\nDCCP      1464      2      -1\n");
        counters.take_devices("face |bytes\n  va0: 1 2 3 4 5 6 7 8 900 10 0 0 0 0 0 0\n");
        assert_eq!(counters.get("Tcp.OutSegs"), 12);
        assert_eq!(counters.get("Tcp.MaxConn"), 0);
        assert_eq!(counters.get("SctpOutOrderChunks"), 44);
        assert_eq!(counters.get("sockets.DCCP"), 2);
        assert_eq!(counters.get("va0.sent_bytes"), 900);
    }

    #[test]
    fn packets_of_another_protocol_are_none_of_dccps_own() {
        let mut counters = Counters::default();
        counters.take_devices("va0: 1 2 3 4 5 6 7 8 900 10 0\n");
        assert_eq!(counters.own(Transport::Dccp).1, 0);
        counters.put("sockets.DCCP".to_owned(), "1");
        assert_eq!(counters.own(Transport::Dccp).1, 10);
        counters.put("Tcp.OutSegs".to_owned(), "5");
        assert_eq!(counters.own(Transport::DccpPartial).1, 0);
    }
}
