//! Encodes and recovers blocks, with every kernel of this CPU; throughput counts source bytes.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use tautline_fec::block::{Code, Scheme};
use tautline_fec::kernel::Kernel;

fn main() {
    divan::main();
}

/// Shape of one block: k source packets, n - k repair packets, bytes per packet. All repairs are
/// used.
#[derive(Clone, Copy)]
struct Shape {
    source_count: usize,
    repair_count: usize,
    packet_bytes: usize,
}

impl std::fmt::Display for Shape {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}+{} x {}", self.source_count, self.repair_count, self.packet_bytes)
    }
}

const fn shape(source_count: usize, repair_count: usize, packet_bytes: usize) -> Shape {
    Shape { source_count, repair_count, packet_bytes }
}

/// A slice's block with 1200 bytes per packet, then the shapes of papers/1, Table II.
const SHAPES: [Shape; 10] = [
    shape(8, 6, 1200),
    shape(16, 12, 1200),
    shape(32, 8, 1200),
    shape(32, 32, 1200),
    shape(100, 1, 1296),
    shape(100, 10, 1296),
    shape(100, 20, 1296),
    shape(100, 30, 1296),
    shape(100, 40, 1296),
    shape(100, 50, 1296),
];

fn cases() -> impl Iterator<Item = Case> {
    [Scheme::Cauchy, Scheme::Fft].into_iter().flat_map(|scheme| {
        Kernel::all().flat_map(move |kernel| SHAPES.map(|shape| Case { scheme, kernel, shape }))
    })
}

#[derive(Clone, Copy)]
struct Case {
    scheme: Scheme,
    kernel: Kernel,
    shape: Shape,
}

impl std::fmt::Display for Case {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = match self.scheme {
            Scheme::Cauchy => "cauchy",
            Scheme::Fft => "fft",
        };
        write!(formatter, "{scheme} {} {}", self.kernel.name(), self.shape)
    }
}

impl Case {
    fn code(self) -> Code {
        let Shape { source_count, repair_count, .. } = self.shape;
        Code::with_scheme(self.scheme, source_count, source_count + repair_count)
            .expect("the shapes above are possible")
            .on(self.kernel)
    }

    fn source_bytes(self) -> BytesCount {
        BytesCount::new(self.shape.source_count * self.shape.packet_bytes)
    }

    /// Returns all packets of a block with arbitrary sources.
    fn block(self) -> Vec<Vec<u8>> {
        let Shape { source_count, repair_count, packet_bytes } = self.shape;
        let mut sources: Vec<Vec<u8>> = (0..source_count)
            .map(|index| {
                (0..packet_bytes).map(|at| (at * 31 + index * 97 + at / 251) as u8).collect()
            })
            .collect();
        let mut repairs = vec![vec![0; packet_bytes]; repair_count];
        let mut outputs: Vec<&mut [u8]> = repairs.iter_mut().map(Vec::as_mut_slice).collect();
        let inputs: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        self.code().encode(&inputs, &mut outputs).expect("lengths agree");
        sources.append(&mut repairs);
        sources
    }
}

#[divan::bench(args = cases())]
fn encode(bencher: Bencher<'_, '_>, case: Case) {
    let code = case.code();
    let block = case.block();
    let sources: Vec<&[u8]> = block[..code.source_count()].iter().map(Vec::as_slice).collect();
    let mut repairs = vec![vec![0; case.shape.packet_bytes]; code.repair_count()];
    let mut outputs: Vec<&mut [u8]> = repairs.iter_mut().map(Vec::as_mut_slice).collect();
    bencher.counter(case.source_bytes()).bench_local(|| {
        code.encode(black_box(&sources), black_box(&mut outputs)).expect("lengths agree");
    });
    assert!(repairs.iter().eq(&block[code.source_count()..]));
}

/// Recovers one source per repair packet, spread over the block.
#[divan::bench(args = cases())]
fn recover(bencher: Bencher<'_, '_>, case: Case) {
    let code = case.code();
    let block = case.block();
    let (k, m) = (code.source_count(), code.repair_count());
    let lost: Vec<usize> = (0..m).map(|position| position * k / m).collect();
    let received: Vec<(usize, &[u8])> = (0..k + m)
        .filter(|index| !lost.contains(index))
        .map(|index| (index, block[index].as_slice()))
        .collect();
    let mut outputs = vec![vec![0; case.shape.packet_bytes]; m];
    let mut missing: Vec<(usize, &mut [u8])> =
        lost.iter().zip(&mut outputs).map(|(&index, output)| (index, &mut output[..])).collect();
    bencher.counter(case.source_bytes()).bench_local(|| {
        code.recover(black_box(&received), black_box(&mut missing)).expect("k packets are there");
    });
    assert!(lost.iter().zip(&outputs).all(|(&index, output)| *output == block[index]));
}
