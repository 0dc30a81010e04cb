use super::*;

/// Returns a packet's bytes, different for each id.
fn symbol(id: u64, length: usize) -> Vec<u8> {
    (0..length as u64)
        .map(|at| (id.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(at as u32) >> 32) as u8)
        .collect()
}

#[test]
fn lost_packets_are_recovered_as_soon_as_as_many_repair_packets_came() {
    let config = Config::new(40, 16);
    let mut encoder = Encoder::new(config).expect("valid");
    let mut decoder = Decoder::new(config).expect("valid");
    for id in 0..10 {
        assert_eq!(encoder.push(&symbol(id, 40)), Ok(id));
        if ![2, 5, 6].contains(&id) {
            decoder.handle_source(id, &symbol(id, 40)).expect("new");
        }
    }
    for seed in 0..3 {
        let mut payload = [0; 40];
        let repair = encoder.repair(seed, &mut payload).expect("packets are there");
        assert_eq!(decoder.report().rank, usize::from(seed));
        decoder.handle_repair(&repair, &payload).expect("new");
    }
    assert_eq!(decoder.report(), Report { edge: 10, next: 10, missing: 0, rank: 0, lost: 0 });
    for id in 0..10 {
        assert_eq!(decoder.poll_in_order(), Some((id, &symbol(id, 40)[..])));
    }
}
