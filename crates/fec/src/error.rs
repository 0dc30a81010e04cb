//! What a caller can get wrong.

/// Requirement of a code that a call did not meet; no output is written then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such code exists over GF(2^8).
    #[error(
        "no block code has {source_count} source packets among {packet_count} packets: \
         1 <= source packets <= packets <= 256 must hold"
    )]
    Shape {
        /// Source packets asked for (k).
        source_count: usize,
        /// Packets asked for in all (n).
        packet_count: usize,
    },
    /// No FFT code of this shape exists over GF(2^8).
    #[error(
        "no FFT code has {source_count} source packets among {packet_count} packets: source \
         packets + repair packets, these rounded up to a power of two, must not exceed 256"
    )]
    FftShape {
        /// Source packets asked for (k).
        source_count: usize,
        /// Packets asked for in all (n).
        packet_count: usize,
    },
    /// The block's source packets were not given exactly.
    #[error("{given} source packets were given to a block of {expected}")]
    SourceCount {
        /// Source packets of the block (k).
        expected: usize,
        /// Source packets given.
        given: usize,
    },
    /// More repair packets were asked for than the code has.
    #[error("{asked} repair packets were asked of a code that has {available}")]
    RepairCount {
        /// Repair packets of the code (n - k).
        available: usize,
        /// Repair packets asked for.
        asked: usize,
    },
    /// The packets of one block differ in length.
    #[error("packet {index} has {given} bytes where the block's packets have {expected}")]
    Length {
        /// Packet index within the block, 0..n.
        index: usize,
        /// Bytes of the block's first packet.
        expected: usize,
        /// Bytes of this packet.
        given: usize,
    },
    /// A received packet's index lies outside the block.
    #[error("packet index {index} lies outside a block of {packet_count} packets")]
    PacketIndex {
        /// Packet index given.
        index: usize,
        /// Packets of the block (n).
        packet_count: usize,
    },
    /// A packet asked for is not a source packet.
    #[error("packet {index} cannot be recovered: only the first {source_count} are source packets")]
    NotASource {
        /// Packet index given.
        index: usize,
        /// Source packets of the block (k).
        source_count: usize,
    },
    /// The same packet index was given twice.
    #[error("packet {index} was given twice")]
    Duplicate {
        /// Packet index given twice.
        index: usize,
    },
    /// A packet asked for is among the received ones.
    #[error("packet {index} was asked for and is among the received packets")]
    NotMissing {
        /// Packet index given.
        index: usize,
    },
    /// Fewer than k packets were received: the block cannot be recovered from these.
    #[error("{received} packets were received where a block needs {needed}")]
    TooFew {
        /// Packets needed (k).
        needed: usize,
        /// Distinct packets received.
        received: usize,
    },
    /// A coding window or a decoder's memory of such a size is not possible.
    #[error("a window of {window_max} source packets is not possible: 1 to 65535 are")]
    Window {
        /// Source packets asked for.
        window_max: usize,
    },
    /// A decoder cannot hold so many repair packets.
    #[error(
        "a decoder that remembers {window_max} source packets can hold 1 to {window_max} repair \
         packets, not {repairs_max}"
    )]
    Repairs {
        /// Repair packets asked for.
        repairs_max: usize,
        /// Source packets remembered.
        window_max: usize,
    },
    /// A packet of a stream has another length than all others.
    #[error("the packet has {given} bytes where the stream's packets have {expected}")]
    Symbol {
        /// Bytes of every packet of the stream.
        expected: usize,
        /// Bytes of this packet.
        given: usize,
    },
    /// A repair packet was asked for while the coding window is empty.
    #[error("there is no source packet to make a repair packet from")]
    EmptyWindow,
    /// Source packets were acknowledged that were never sent.
    #[error("packets below {edge} were acknowledged where {next} is the next to be sent")]
    Acknowledgement {
        /// The edge acknowledged.
        edge: u64,
        /// The number of the next source packet.
        next: u64,
    },
}
