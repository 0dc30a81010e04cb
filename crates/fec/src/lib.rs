//! Packet erasure codes over GF(2^8)
