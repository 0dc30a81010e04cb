use proptest::prelude::*;

use super::*;
use crate::avc::border4::{Border4, MODES4, Near};
use crate::avc::cavlc::Levels;
use crate::avc::plane::Halves;
use crate::avc::quantize::QUANTIZERS;

/// Returns bytes of several kinds that take every branch: noise, steps, nearly flat, gradients.
fn bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut noise = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as u8
    };
    let kinds = |at: usize, noise: u8| match seed % 5 {
        0 => noise,
        1 => (noise >> 7) * 255,
        2 => 100 + (noise >> 5),
        3 => (at % 64) as u8 * 2 + (noise >> 6),
        _ => 60 + (at / 4 % 2) as u8 * 9 + (noise >> 5),
    };
    (0..count).map(|at| kinds(at, noise())).collect()
}

/// Returns the results of every function of a kernel on two planes of 64 bytes per row.
fn outcome(kernel: impl Kernel, a: &[u8], b: &[u8], qp: usize, vary: u8) -> Vec<i64> {
    let (left, right) = (
        Block { samples: &a[3..], stride: 64 },
        Block { samples: &b[65 + usize::from(vary % 7)..], stride: 64 },
    );
    let mut out = Vec::new();
    for (width, height) in [(16, 16), (16, 8), (8, 16), (8, 8)] {
        out.push(i64::from(kernel.sad(width, height, left, right)));
        out.push(i64::from(kernel.satd(width, height, left, right)));
        out.push(i64::from(kernel.sad_mean([width, height], right, [left, right])));
        let others = [0, 1, 2, 64].map(|at| Block { samples: &b[at..], stride: 64 });
        let seconds = [3, 66, 1, 0].map(|at| Block { samples: &b[at..], stride: 64 });
        let size = [width, height];
        out.extend(kernel.sad_four(size, left, others).map(i64::from));
        out.extend(kernel.sad_mean_four(size, left, others, seconds).map(i64::from));
        let mut mean = [0; 256];
        kernel.average(width, height, left, right, &mut mean);
        out.extend(mean.map(i64::from));
        let mut chroma = [0; 128];
        let eighths = [u16::from(vary % 8), u16::from(vary / 8 % 8)];
        kernel.chroma([width / 2, height / 2], right, eighths, &mut chroma);
        out.extend(chroma.map(i64::from));
    }
    out.push(i64::from(kernel.satd(4, 4, left, right)));
    let mut plane = Plane::new(64, 32, crate::avc::plane::MARGIN);
    for x in [0, 16, 32, 48] {
        let block = Block { samples: &b[x..], stride: 64 };
        plane.place(kernel, [x as i32, 0], [16, 32], block);
    }
    for (width, height) in [(4, 4), (8, 8), (16, 16)] {
        let mut copied = [0; 256];
        kernel.copy([width, height], right, &mut copied, 16);
        out.extend(copied.map(i64::from));
    }
    let near = Near {
        left: vary & 1 == 1,
        above: vary & 2 == 2,
        corner: vary & 4 == 4,
        beyond: vary & 8 == 8,
    };
    let border = Border4::of(kernel, &plane, [4 * i32::from(vary % 15), 4], near);
    out.extend(kernel.satd_modes(left, &border).map(i64::from));
    for mode in 0..MODES4 as u8 {
        out.extend(border.predict(kernel, mode).map(i64::from));
    }
    for intra in [false, true] {
        let mut coefficients = [0; 16];
        let levels = kernel.code(left, right, (&QUANTIZERS[qp], intra), &mut coefficients);
        out.push(levels.mask.into());
        out.extend(levels.values.map(i64::from));
        out.extend(coefficients.map(i64::from));
        let mut row = Row::ZERO;
        kernel.forward_row(left, right, &mut row);
        out.extend(row.0.map(i64::from));
        let mut levels = [Levels::default(); 4];
        kernel.quantize_row(&mut row, &QUANTIZERS[qp], intra, &mut levels);
        out.extend(row.0.map(i64::from));
        for levels in levels {
            out.push(levels.mask.into());
            if levels.mask != 0 {
                out.extend(levels.values.map(i64::from));
            }
        }
        let mut samples: [u8; 64] = b[usize::from(vary)..][..64].try_into().unwrap();
        kernel.add_inverse_row(&row, &mut samples);
        out.extend(samples.map(i64::from));
        let mut samples = b.to_vec();
        kernel.add_inverse(&coefficients, &mut samples[65 + usize::from(vary % 7)..], 64);
        out.extend(samples.into_iter().map(i64::from));
    }
    out.extend(deblocked(kernel, a, vary));
    out
}

fn deblocked(kernel: impl Kernel, samples: &[u8], vary: u8) -> Vec<i64> {
    let mut samples = samples.to_vec();
    let limit = (vary % 9) as i8;
    let limits = [None, Some([limit, -1, 0, limit / 2]), Some([-1; 4]), Some([limit; 4])];
    for (index, limits) in limits.into_iter().enumerate() {
        let edge = Edge { alpha: vary | 4, beta: vary % 18 + 1, limits };
        let at = 64 * (6 + index) + 8 + index * 4;
        kernel.deblock_luma(&mut samples, at, 1, 64, &edge);
        kernel.deblock_luma(&mut samples, at, 64, 1, &edge);
        kernel.deblock_chroma(&mut samples, at, 1, 64, &edge);
        kernel.deblock_chroma(&mut samples, at, 64, 1, &edge);
    }
    samples.into_iter().map(i64::from).collect()
}

proptest! {
    #[test]
    fn every_kernel_gives_what_the_scalar_one_does(
        seed_a: u64,
        seed_b: u64,
        qp in 0usize..52,
        vary: u8,
    ) {
        let (a, b) = (bytes(seed_a, 64 * 32), bytes(seed_b, 64 * 32));
        let expected = outcome(Scalar, &a, &b, qp, vary);
        #[cfg(target_arch = "x86_64")]
        if let Some(kernel) = Avx2::detect() {
            prop_assert_eq!(outcome(kernel, &a, &b, qp, vary), expected);
        }
    }

    #[test]
    fn every_kernel_interpolates_as_the_scalar_one_does(
        seed: u64,
        columns in 1usize..60,
        rows in 1usize..3,
    ) {
        let (width, height) = (columns * 16, rows * 16);
        let mut plane = Plane::new(width, height, crate::avc::plane::MARGIN);
        let samples = bytes(seed, width * height);
        for x in (0..width).step_by(16) {
            let block = Block { samples: &samples[x..], stride: width };
            plane.place(Scalar, [x as i32, 0], [16, height], block);
        }
        plane.extend();
        let mut expected = Halves::new(width, height);
        Scalar.halves(&plane, &mut expected);
        #[cfg(target_arch = "x86_64")]
        if let Some(kernel) = Avx2::detect() {
            let mut found = Halves::new(width, height);
            kernel.halves(&plane, &mut found);
            prop_assert_eq!(found.b.samples(), expected.b.samples());
            prop_assert_eq!(found.h.samples(), expected.h.samples());
            prop_assert_eq!(found.j.samples(), expected.j.samples());
        }
    }
}

/// Extreme differences and coefficients neither overflow nor wrap.
#[test]
fn the_greatest_differences_come_back() {
    let (black, white) = ([0; 256], [255; 256]);
    let block = |samples| Block { samples, stride: 16 };
    let mut row = Row::ZERO;
    Scalar.forward_row(block(&white), block(&black), &mut row);
    assert_eq!(row.0[Row::at(0, 0, 0)], 255 * 16);
    for (qp, quantizer) in QUANTIZERS.iter().enumerate() {
        let mut values = [0; 16];
        Scalar.code(block(&white), block(&black), (quantizer, true), &mut values);
        let mut samples = black;
        Scalar.add_inverse(&values, &mut samples, 16);
        let worst = 255 - u32::from(samples[0]);
        assert!(worst <= 1 << (qp / 6), "{qp}: {worst}");
    }
}
