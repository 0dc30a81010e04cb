//! Tautline's two block codes, on every kernel of this CPU.

use tautline_fec::block::{self, Scheme};
use tautline_fec::kernel::Kernel;

use super::encoding::Encoding;
use super::{Case, Code, Family, Shape};
use crate::measure::Work;
use crate::memory::frozen;

/// Returns both codes on every kernel, starting with the kernel that they would select.
pub(super) fn codes() -> Vec<Box<dyn Code>> {
    let mut kernels: Vec<Kernel> = Kernel::all().collect();
    kernels.reverse();
    let both = |kernel| [Scheme::Cauchy, Scheme::Fft].map(|scheme| Tautline { scheme, kernel });
    kernels.into_iter().flat_map(both).map(|code| Box::new(code) as Box<dyn Code>).collect()
}

struct Tautline {
    scheme: Scheme,
    kernel: Kernel,
}

impl Tautline {
    fn code(&self, shape: Shape) -> Option<block::Code> {
        let Shape { sources, repairs, .. } = shape;
        let code = block::Code::with_scheme(self.scheme, sources, sources + repairs).ok()?;
        Some(code.on(self.kernel))
    }
}

impl Code for Tautline {
    fn name(&self) -> String {
        let scheme = match self.scheme {
            Scheme::Cauchy => "Cauchy",
            Scheme::Fft => "FFT",
        };
        format!("tautline {scheme} {}", self.kernel.name())
    }

    fn family(&self) -> Family {
        match self.kernel == Kernel::best() {
            true => Family::Tautline,
            false => Family::TautlineElsewhere,
        }
    }

    fn takes(&self, shape: Shape) -> bool {
        self.code(shape).is_some()
    }

    fn encoder<'a>(&self, case: Case<'a>) -> Option<Box<dyn Work + 'a>> {
        let code = self.code(case.shape)?;
        Some(Encoding::of(case, move |sources, repairs| {
            code.encode(sources, repairs).expect("lengths agree");
        }))
    }

    fn decoder<'a>(&self, mut case: Case<'a>) -> Box<dyn Work + 'a> {
        let shape = case.shape;
        let code = self.code(shape).expect("only shapes that it takes");
        let blocks = (0..case.block_count).map(|block| {
            let sources = frozen(case.sources(block));
            let mut repairs = case.repairs();
            code.encode(&sources, &mut repairs).expect("lengths agree");
            let missing = case.repairs().into_iter().map(|packet| (0, packet)).collect();
            Decoding { sources, repairs: frozen(repairs), received: Vec::new(), missing }
        });
        Box::new(Decoder { code, shape, blocks: blocks.collect() })
    }
}

struct Decoder<'a> {
    code: block::Code,
    shape: Shape,
    blocks: Vec<Decoding<'a>>,
}

struct Decoding<'a> {
    sources: Vec<&'a [u8]>,
    repairs: Vec<&'a [u8]>,
    received: Vec<(usize, &'a [u8])>,
    missing: Vec<(usize, &'a mut [u8])>,
}

impl Work for Decoder<'_> {
    fn prepare(&mut self, block: usize, pattern: u64) {
        let lost = self.shape.lost(pattern);
        let Decoding { sources, repairs, received, missing } = &mut self.blocks[block];
        received.clear();
        let all = sources.iter().chain(&*repairs).copied().enumerate();
        received.extend(all.filter(|(index, _)| lost.binary_search(index).is_err()));
        for ((index, packet), lost) in missing.iter_mut().zip(lost) {
            *index = lost;
            packet.fill(0);
        }
    }

    fn run(&mut self, block: usize) {
        let Decoding { received, missing, .. } = &mut self.blocks[block];
        self.code.recover(received, missing).expect("as many packets as needed are there");
    }

    fn is_right(&mut self, block: usize) -> bool {
        let Decoding { sources, missing, .. } = &self.blocks[block];
        missing.iter().all(|(index, packet)| **packet == *sources[*index])
    }
}
