//! Any k packets of a block recover its sources, with both codes, on every kernel, in any order.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tautline_fec::block::{Code, Scheme};
use tautline_fec::kernel::Kernel;
use tautline_fuzz::Input;

fuzz_target!(|bytes: &[u8]| recovers(&mut Input(bytes)));

fn recovers(input: &mut Input<'_>) {
    let kernels: Vec<Kernel> = Kernel::all().collect();
    let kernel = kernels[input.up_to(kernels.len() - 1)];
    let source_count = 1 + input.up_to(63);
    let packet_count = source_count + input.up_to(64);
    let length = input.up_to(300);
    let scheme = match input.byte() & 1 {
        0 => Scheme::Cauchy,
        _ => Scheme::fastest(source_count, packet_count),
    };
    let code = Code::with_scheme(scheme, source_count, packet_count).expect("a possible shape");
    let code = code.on(kernel);
    let sources: Vec<Box<[u8]>> = (0..source_count).map(|_| input.packet(length)).collect();
    let sources: Vec<&[u8]> = sources.iter().map(|source| &**source).collect();
    let mut repairs: Vec<Box<[u8]>> =
        (source_count..packet_count).map(|_| input.packet(length)).collect();
    let mut outputs: Vec<&mut [u8]> = repairs.iter_mut().map(|repair| &mut **repair).collect();
    code.encode(&sources, &mut outputs).expect("lengths agree");

    // The input shuffles all packets; the first k, and some more, arrive.
    let repairs = repairs.iter().map(|repair| &**repair);
    let mut received: Vec<(usize, &[u8])> =
        sources.iter().copied().chain(repairs).enumerate().collect();
    for position in 0..packet_count {
        received.swap(position, position + input.up_to(packet_count - 1 - position));
    }
    received.truncate(source_count + input.up_to(packet_count - source_count));

    let lost = |index: &usize| received.iter().all(|(came, _)| came != index);
    let mut restored: Vec<(usize, Box<[u8]>)> =
        (0..source_count).filter(lost).map(|index| (index, input.packet(length))).collect();
    // Recover some of the lost packets, or all.
    restored.truncate(restored.len() - input.up_to(restored.len()) * usize::from(input.byte() & 1));
    let mut missing: Vec<(usize, &mut [u8])> =
        restored.iter_mut().map(|(index, packet)| (*index, &mut **packet)).collect();
    code.recover(&received, &mut missing).expect("k packets came");
    for (index, packet) in &restored {
        assert_eq!(**packet, *sources[*index], "source packet {index}");
    }
}
