use proptest::prelude::*;

use super::*;
use crate::gf256;

/// Calls `run` on `count` outputs that start `shift` bytes into their buffers, checks that the
/// guard bytes around them are unchanged, and returns the outputs.
fn guarded(
    count: usize,
    length: usize,
    shift: usize,
    run: impl FnOnce(&mut [&mut [u8]]),
) -> Vec<Vec<u8>> {
    let mut buffers = vec![vec![GUARD; length + 2 * shift + 1]; count];
    let mut outputs: Vec<&mut [u8]> =
        buffers.iter_mut().map(|buffer| &mut buffer[shift..shift + length]).collect();
    run(&mut outputs);
    for buffer in &mut buffers {
        assert!(buffer[..shift].iter().all(|&byte| byte == GUARD), "wrote before the output");
        let after = buffer.split_off(shift + length);
        assert!(after.iter().all(|&byte| byte == GUARD), "wrote past the output");
        buffer.drain(..shift);
    }
    buffers
}

/// Runs a kernel's multiplication on packets that start `shift` bytes into their buffers.
fn product(kernel: Kernel, case: &Case) -> Vec<Vec<u8>> {
    let Case { columns, inputs, rows, length, shift } = case;
    let inputs: Vec<&[u8]> = inputs.iter().map(|input| &input[*shift..shift + length]).collect();
    guarded(*rows, *length, *shift, |outputs| kernel.multiply(columns, &inputs, outputs))
}

/// Runs a kernel's `solve` on packets that all consist of guard bytes; the inputs are the addends.
fn solution(kernel: Kernel, case: &Case) -> Vec<Vec<u8>> {
    let Case { columns, inputs, length, shift, .. } = case;
    let inputs: Vec<&[u8]> = inputs.iter().map(|input| &input[*shift..shift + length]).collect();
    guarded(inputs.len(), *length, *shift, |packets| kernel.solve(columns, &inputs, packets))
}

/// Runs a kernel's transform; every fifth source is empty, which counts as zeros.
fn transformed(kernel: Kernel, layers: usize, wanted: &[u8], case: &Case) -> Vec<Vec<u8>> {
    let Case { inputs, length, shift, .. } = case;
    let source = |(index, input)| match index % 5 {
        3 => &[][..],
        _ => &Vec::as_slice(input)[*shift..shift + length],
    };
    let sources: Vec<&[u8]> = inputs.iter().enumerate().map(source).collect();
    guarded(wanted.len(), *length, *shift, |outputs| {
        kernel.transform(layers, &sources, wanted, outputs);
    })
}

const GUARD: u8 = 0xA5;

#[derive(Debug)]
struct Case {
    columns: Vec<Column>,
    inputs: Vec<Vec<u8>>,
    rows: usize,
    length: usize,
    shift: usize,
}

impl Case {
    fn of(rows: usize, input_count: usize, length: usize, shift: usize) -> Case {
        let mut state = (rows * 7 + input_count * 31 + length) as u32;
        let mut byte = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        Case {
            columns: (0..input_count).map(|_| core::array::from_fn(|_| byte())).collect(),
            inputs: (0..input_count)
                .map(|_| (0..length + shift).map(|_| byte()).collect())
                .collect(),
            rows,
            length,
            shift,
        }
    }
}

/// Returns the lengths to test: all up to 300, or a few under an interpreter.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=if cfg!(miri) { 134 } else { 300 }).step_by(if cfg!(miri) { 67 } else { 1 })
}

#[test]
fn the_scalar_kernel_is_everywhere_and_the_best_is_among_all() {
    assert_eq!(Kernel::all().next(), Some(Kernel::Scalar(Scalar)));
    assert_eq!(Kernel::all().last(), Some(Kernel::best()));
    assert_eq!(Kernel::default(), Kernel::best());
}

#[test]
fn scalar_is_the_definition() {
    let case = Case::of(5, 7, 40, 0);
    for (row, output) in product(Kernel::Scalar(Scalar), &case).iter().enumerate() {
        for (at, &byte) in output.iter().enumerate() {
            let terms = case.columns.iter().zip(&case.inputs);
            let sum =
                terms.fold(0, |sum, (column, input)| sum ^ gf256::multiply(column[row], input[at]));
            assert_eq!(byte, sum);
        }
    }
}

#[test]
fn every_kernel_equals_scalar_for_every_coefficient_and_byte() {
    let input: Vec<u8> = (0..=255).collect();
    for kernel in Kernel::all() {
        for coefficient in (0..=255).step_by(if cfg!(miri) { 51 } else { 1 }) {
            let case = Case {
                columns: vec![[coefficient; ROWS_MAX]],
                inputs: vec![input.clone()],
                rows: 1,
                length: 256,
                shift: 0,
            };
            let expected: Vec<u8> =
                input.iter().map(|&byte| gf256::multiply(coefficient, byte)).collect();
            assert_eq!(product(kernel, &case), [expected], "{} * {coefficient}", kernel.name());
        }
    }
}

#[test]
fn every_kernel_equals_scalar_at_every_length_and_row_count() {
    for length in lengths() {
        for rows in (0..=ROWS_MAX).step_by(if cfg!(miri) { 4 } else { 1 }) {
            let case = Case::of(rows, 1 + (length + rows) % 4, length, (length + 5 * rows) % 67);
            let expected = product(Kernel::Scalar(Scalar), &case);
            for kernel in Kernel::all() {
                let name = kernel.name();
                assert_eq!(product(kernel, &case), expected, "{name}: {rows} x {length}");
            }
        }
    }
}

#[test]
fn every_kernel_equals_scalar_at_every_length_and_alignment() {
    for length in lengths() {
        for shift in (0..64).step_by(if cfg!(miri) { 21 } else { 1 }) {
            let case = Case::of(3, 5, length, shift);
            let expected = product(Kernel::Scalar(Scalar), &case);
            for kernel in Kernel::all() {
                let name = kernel.name();
                assert_eq!(product(kernel, &case), expected, "{name}: {length} at {shift}");
            }
        }
    }
}

#[test]
fn every_kernel_solves_as_scalar_at_every_length() {
    for length in lengths() {
        for count in [1, 5, 13, 2, 12, 25].into_iter().take(if cfg!(miri) { 2 } else { 6 }) {
            let mut case = Case::of(0, count, length, (length + 3 * count) % 67);
            case.columns = Case::of(0, count * count.div_ceil(ROWS_MAX), 0, 0).columns;
            let expected = solution(Kernel::Scalar(Scalar), &case);
            for kernel in Kernel::all() {
                assert_eq!(solution(kernel, &case), expected, "{}: {count}", kernel.name());
            }
        }
    }
}

#[test]
fn every_kernel_transforms_as_scalar_at_every_length() {
    for length in lengths() {
        let most = if cfg!(miri) { 2 } else { [5, 7][usize::from(length % 60 == 7)] };
        for layers in 0..=most {
            let sources = (3 << layers >> 1).min(256 - (1 << layers));
            let case = Case::of(0, sources, length, (length + 5 * layers) % 67);
            let wanted: Vec<u8> = (0..1 << layers).rev().step_by(1 + length % 3).collect();
            let expected = transformed(Kernel::Scalar(Scalar), layers, &wanted, &case);
            for kernel in Kernel::all() {
                let values = transformed(kernel, layers, &wanted, &case);
                assert_eq!(values, expected, "{}: {layers} layers", kernel.name());
            }
        }
    }
}

#[test]
#[should_panic(expected = "too many sources")]
fn more_sources_than_the_field_has_points_for_panic() {
    Kernel::best().transform(7, &[&[0; 4][..]; 129], &[0], &mut [&mut [0; 4]]);
}

#[test]
#[should_panic(expected = "wants too much")]
fn a_value_that_the_transform_does_not_have_panics() {
    Kernel::best().transform(2, &[&[0; 4][..]; 3], &[4], &mut [&mut [0; 4]]);
}

#[test]
#[should_panic(expected = "sources differ in length")]
fn transformed_sources_of_different_lengths_panic() {
    Kernel::best().transform(1, &[&[0; 4], &[0; 5]], &[0], &mut [&mut [0; 4]]);
}

#[test]
#[should_panic(expected = "addends differ in length")]
fn addends_of_different_lengths_panic() {
    Kernel::best().solve(&[[1; ROWS_MAX]], &[&[0; 5]], &mut [&mut [0; 4]]);
}

#[test]
#[should_panic(expected = "as many columns as needed")]
fn a_system_that_is_not_square_panics() {
    Kernel::best().solve(&[[1; ROWS_MAX]; 2], &[&[0; 4]], &mut [&mut [0; 4]]);
}

#[test]
fn no_inputs_give_zeros() {
    for kernel in Kernel::all() {
        assert_eq!(product(kernel, &Case::of(3, 0, 70, 1)), vec![vec![0; 70]; 3]);
    }
}

#[test]
#[should_panic(expected = "inputs differ in length")]
fn inputs_of_different_lengths_panic() {
    let mut output = [0; 64];
    Kernel::best().multiply(&[[1; ROWS_MAX]; 2], &[&[0; 64], &[0; 63]], &mut [&mut output]);
}

#[test]
#[should_panic(expected = "outputs differ in length")]
fn outputs_of_different_lengths_panic() {
    let (mut long, mut short) = ([0; 64], [0; 63]);
    Kernel::best().multiply(&[[1; ROWS_MAX]], &[&[0; 64]], &mut [&mut long, &mut short]);
}

#[test]
#[should_panic(expected = "as many columns as inputs")]
fn a_missing_column_panics() {
    let mut output = [0; 64];
    Kernel::best().multiply(&[], &[&[0; 64]], &mut [&mut output]);
}

#[test]
#[should_panic(expected = "13 outputs, at most 12")]
fn too_many_outputs_panic() {
    let mut buffers = [[0; 4]; ROWS_MAX + 1];
    let mut outputs: Vec<&mut [u8]> = buffers.iter_mut().map(|buffer| &mut buffer[..]).collect();
    Kernel::best().multiply(&[], &[], &mut outputs);
}

proptest! {
    #[test]
    #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
    fn every_kernel_equals_scalar(
        rows in 1..=ROWS_MAX,
        input_count in 1..40_usize,
        length in 0..1500_usize,
        shift in 0..64_usize,
    ) {
        let case = Case::of(rows, input_count, length, shift);
        let expected = product(Kernel::Scalar(Scalar), &case);
        for kernel in Kernel::all() {
            prop_assert_eq!(&product(kernel, &case), &expected, "{}", kernel.name());
        }
    }
}
