//! Errors of the codes.

/// Requirement of a code that a call violated; the call writes no output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No block code has these numbers of packets: `1 <= k <= n <= 256` does not hold.
    #[error(
        "no block code has {source_count} source packets among {packet_count} packets: \
         1 <= source packets <= packets <= 256 must hold"
    )]
    Shape {
        /// Requested number of source packets (k).
        source_count: usize,
        /// Requested total number of packets (n).
        packet_count: usize,
    },
    /// No FFT code has these numbers of packets: k plus n - k, rounded up to a power of two,
    /// exceeds 256.
    #[error(
        "no FFT code has {source_count} source packets among {packet_count} packets: source \
         packets + repair packets, these rounded up to a power of two, must not exceed 256"
    )]
    FftShape {
        /// Requested number of source packets (k).
        source_count: usize,
        /// Requested total number of packets (n).
        packet_count: usize,
    },
    /// The number of source packets differs from the block's k.
    #[error("{given} source packets were given to a block of {expected}")]
    SourceCount {
        /// Number of source packets of the block (k).
        expected: usize,
        /// Number of source packets passed.
        given: usize,
    },
    /// More repair packets were requested than the code has.
    #[error("{asked} repair packets were asked of a code that has {available}")]
    RepairCount {
        /// Number of repair packets of the code (n - k).
        available: usize,
        /// Number of repair packets requested.
        asked: usize,
    },
    /// The packets of one block differ in length.
    #[error("packet {index} has {given} bytes where the block's packets have {expected}")]
    Length {
        /// Index within the block, 0..n, of the first packet whose length differs from `expected`.
        index: usize,
        /// Length of the first packet passed, in bytes.
        expected: usize,
        /// Length of the packet at `index`, in bytes.
        given: usize,
    },
    /// A received packet's index is outside the block.
    #[error("packet index {index} lies outside a block of {packet_count} packets")]
    PacketIndex {
        /// Index of the received packet, n or more.
        index: usize,
        /// Number of packets of the block (n).
        packet_count: usize,
    },
    /// A requested packet is not a source packet.
    #[error("packet {index} cannot be recovered: only the first {source_count} are source packets")]
    NotASource {
        /// Index of the requested packet, k or more.
        index: usize,
        /// Number of source packets of the block (k).
        source_count: usize,
    },
    /// The same packet index was passed twice.
    #[error("packet {index} was given twice")]
    Duplicate {
        /// Packet index passed twice.
        index: usize,
    },
    /// A requested packet is among the received ones.
    #[error("packet {index} was asked for and is among the received packets")]
    NotMissing {
        /// Index of the packet that is both requested and received.
        index: usize,
    },
    /// Fewer than k packets were received, so the block cannot be recovered.
    #[error("{received} packets were received where a block needs {needed}")]
    TooFew {
        /// Number of packets needed (k).
        needed: usize,
        /// Number of packets received.
        received: usize,
    },
    /// A coding window or a decoder's memory cannot have this size: 1 to 65535 packets are
    /// possible.
    #[error("a window of {window_max} source packets is not possible: 1 to 65535 are")]
    Window {
        /// Requested size in source packets.
        window_max: usize,
    },
    /// A decoder cannot hold this number of repair packets: 1 to `window_max` are possible.
    #[error(
        "a decoder that remembers {window_max} source packets can hold 1 to {window_max} repair \
         packets, not {repairs_max}"
    )]
    Repairs {
        /// Requested maximum number of held repair packets.
        repairs_max: usize,
        /// Number of source packets that the decoder remembers.
        window_max: usize,
    },
    /// A packet's length differs from the stream's symbol length.
    #[error("the packet has {given} bytes where the stream's packets have {expected}")]
    Symbol {
        /// Length of every packet of the stream, in bytes.
        expected: usize,
        /// Length of the packet or buffer passed, in bytes.
        given: usize,
    },
    /// A repair packet was requested over no source packets: the coding window, or the requested
    /// part of it, is empty.
    #[error("there is no source packet to make a repair packet from")]
    EmptyWindow,
    /// Source packets were acknowledged that were never sent.
    #[error("packets below {edge} were acknowledged where {next} is the next to be sent")]
    Acknowledgement {
        /// Edge passed: the number below which all packets were acknowledged.
        edge: u64,
        /// Number of the next source packet to be sent.
        next: u64,
    },
}
