//! Benchmarks of coding a strip of 1280x128 at several budgets.

#[path = "../tests/strips/scene.rs"]
mod scene;

use divan::Bencher;
use divan::counter::BytesCount;
use scene::Scene;
use tautline_units::ByteCount;
use tautline_video::openh264::{StripDecoder, StripEncoder};
use tautline_video::{Backend, Concealer, Decoder, Encoder, Picture, Refresh, avc};

const WIDTH: usize = 1280;
const HEIGHT: usize = 128;
const BUDGETS: [u64; 3] = [1_000, 3_000, 9_000];

fn main() {
    divan::main();
}

fn pictures() -> Vec<Picture> {
    let scene = Scene::new(WIDTH, HEIGHT, 1);
    (0..64).map(|number| scene.picture(number)).collect()
}

fn coded(budget: u64) -> Vec<Vec<u8>> {
    let mut encoder = StripEncoder::new(WIDTH, HEIGHT, 60).expect("a valid size");
    let encode = |picture: &Picture| {
        let coded = encoder.encode(picture, ByteCount::new(budget), Refresh::No);
        coded.expect("encodes").bytes.to_vec()
    };
    pictures().iter().map(encode).collect()
}

#[divan::bench(args = BUDGETS, sample_count = 400, sample_size = 1)]
fn encode_predicted(bencher: Bencher<'_, '_>, budget: u64) {
    let pictures = pictures();
    let mut encoder = StripEncoder::new(WIDTH, HEIGHT, 60).expect("a valid size");
    let mut next = (0..pictures.len()).cycle();
    bencher.counter(BytesCount::new(WIDTH * HEIGHT * 3 / 2)).bench_local(|| {
        let picture = &pictures[next.next().expect("endless")];
        encoder.encode(picture, ByteCount::new(budget), Refresh::No)
    });
}

#[divan::bench(args = BUDGETS, sample_count = 400, sample_size = 1)]
fn encode_predicted_own(bencher: Bencher<'_, '_>, budget: u64) {
    let pictures = pictures();
    let backend = Backend::Avc(avc::LossRecovery::Idr);
    let mut encoder = backend.open(WIDTH, HEIGHT, 60).expect("a valid size");
    let mut next = (0..pictures.len()).cycle();
    bencher.counter(BytesCount::new(WIDTH * HEIGHT * 3 / 2)).bench_local(|| {
        let picture = &pictures[next.next().expect("endless")];
        encoder.encode(picture, ByteCount::new(budget), Refresh::No)
    });
}

#[divan::bench(args = BUDGETS, sample_count = 100, sample_size = 1)]
fn encode_idr(bencher: Bencher<'_, '_>, budget: u64) {
    let pictures = pictures();
    let mut encoder = StripEncoder::new(WIDTH, HEIGHT, 60).expect("a valid size");
    let mut next = (0..pictures.len()).cycle();
    bencher.counter(BytesCount::new(WIDTH * HEIGHT * 3 / 2)).bench_local(|| {
        let picture = &pictures[next.next().expect("endless")];
        encoder.encode(picture, ByteCount::new(budget), Refresh::Idr)
    });
}

#[divan::bench(args = BUDGETS, sample_count = 400, sample_size = 1)]
fn decode(bencher: Bencher<'_, '_>, budget: u64) {
    let coded = coded(budget);
    let mut decoder = StripDecoder::new().expect("memory");
    let mut next = coded.iter().cycle();
    bencher
        .counter(BytesCount::new(WIDTH * HEIGHT * 3 / 2))
        .bench_local(|| decoder.decode(next.next().expect("endless")));
}

#[divan::bench(args = BUDGETS)]
fn conceal_pass(bencher: Bencher<'_, '_>, budget: u64) {
    let coded = coded(budget);
    let mut concealer = Concealer::new();
    let mut next = coded.iter().cycle();
    bencher
        .counter(BytesCount::new(budget))
        .bench_local(|| concealer.pass(next.next().expect("endless")).map(|bytes| bytes.is_some()));
}
