use super::{
    Code, fec_rs, isal, raptorq, reed_solomon_erasure, reed_solomon_simd, rlnc_simdx, tautline,
};

/// Returns all block codes.
pub(crate) fn codes() -> Vec<Box<dyn Code>> {
    let mut codes = tautline::codes();
    codes.push(Box::new(isal::Isal { decoding: isal::Decoding::AsItsExample }));
    codes.push(Box::new(isal::Isal { decoding: isal::Decoding::Syndromes }));
    codes.push(Box::new(reed_solomon_simd::ReedSolomonSimd));
    codes.push(Box::new(reed_solomon_erasure::ReedSolomonErasure));
    codes.push(Box::new(fec_rs::FecRs));
    codes.push(Box::new(raptorq::RaptorQ));
    codes.push(Box::new(rlnc_simdx::Rlnc));
    codes
}
