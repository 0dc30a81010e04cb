//! Encoders and decoders do not allocate after construction.

use allocation_counter::measure;
use tautline_fec::block::{Code, Scheme};
use tautline_fec::stream::{Config, Decoder, Encoder};

const LENGTH: usize = 1_200;

#[test]
fn a_block_is_encoded_and_recovered_without_allocating() {
    for (source_count, repair_count) in [(8, 6), (32, 32), (100, 1), (100, 10), (100, 50)] {
        for scheme in [Scheme::Cauchy, Scheme::Fft] {
            let code = Code::with_scheme(scheme, source_count, source_count + repair_count)
                .expect("a possible shape");
            let sources: Vec<Vec<u8>> = (0..source_count)
                .map(|index| (0..LENGTH).map(|at| (at * 7 + index * 31) as u8).collect())
                .collect();
            let inputs: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
            let mut repairs = vec![vec![0; LENGTH]; repair_count];
            let mut outputs: Vec<&mut [u8]> = repairs.iter_mut().map(Vec::as_mut_slice).collect();
            let encoding = measure(|| code.encode(&inputs, &mut outputs).expect("lengths agree"));
            assert_eq!(encoding.count_total, 0, "{code:?}");

            let repairs = (source_count..).zip(repairs.iter().map(Vec::as_slice));
            let kept = inputs.iter().copied().enumerate().skip(repair_count.min(source_count));
            let received: Vec<(usize, &[u8])> = kept.chain(repairs).collect();
            let mut recovered = vec![vec![0; LENGTH]; repair_count.min(source_count)];
            let mut missing: Vec<(usize, &mut [u8])> =
                recovered.iter_mut().map(Vec::as_mut_slice).enumerate().collect();
            let recovery = measure(|| {
                code.recover(&received, &mut missing).expect("k packets are there");
            });
            assert_eq!(recovery.count_total, 0, "{code:?}");
            assert_eq!(recovered, sources[..recovered.len()]);
        }
    }
}

#[test]
fn a_stream_allocates_at_construction_only() {
    let config = Config::new(LENGTH, 256);
    let mut encoder = Encoder::new(config).expect("a possible shape");
    let mut decoder = Decoder::new(Config::new(LENGTH, 512)).expect("a possible shape");
    let mut delivered = 0_u64;
    let work = measure(|| {
        let mut payload = [0; LENGTH];
        for id in 0..20_000_u64 {
            let symbol = [(id % 251) as u8; LENGTH];
            encoder.push(&symbol).expect("the right length");
            // Every ninth packet is lost, and at times three in a row.
            if id % 9 != 0 && id % 50 > 2 {
                decoder.handle_source(id, &symbol).expect("new");
            }
            if id % 4 == 3 {
                let repair = encoder.repair((id / 4) as u16, &mut payload).expect("packets");
                let _ = decoder.handle_repair(&repair, &payload);
            }
            while let Some((known, bytes)) = decoder.poll_in_order() {
                assert!(known == delivered && bytes[LENGTH - 1] == (known % 251) as u8);
                delivered += 1;
            }
            encoder.acknowledge(decoder.report().edge).expect("of packets that were sent");
        }
    });
    assert_eq!(work.count_total, 0);
    assert!(delivered > 19_900, "{delivered}");
}
