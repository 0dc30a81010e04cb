//! Arithmetic in GF(2^8), the 256-element field of all codes in this crate.
//!
//! An element is a byte: bit `i` is the coefficient of `x^i` of a polynomial over GF(2), modulo
//! [`POLYNOMIAL`]. Addition and subtraction are both XOR. The element 2 (that is, `x`) generates
//! the multiplicative group. All tables are built at compile time.

/// The field's modulus x^8 + x^4 + x^3 + x^2 + 1, a primitive polynomial: 0x11D.
///
/// Source: [RFC5510] 8.1. It is not the AES polynomial (0x11B).
///
/// [RFC5510]: https://www.rfc-editor.org/rfc/rfc5510
pub const POLYNOMIAL: u16 = 0x11D;

/// Returns the product of two elements. O(1), by logarithm tables.
pub const fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    EXP[LOG[a as usize] as usize + LOG[b as usize] as usize]
}

/// Returns the multiplicative inverse of `a`, or `None` for zero. O(1).
pub const fn invert(a: u8) -> Option<u8> {
    match a {
        0 => None,
        _ => Some(INVERSE[a as usize]),
    }
}

/// `2^i` at index `i`. The sum of three logarithms is a valid index: it is < 1024.
pub(crate) static EXP: [u8; 1024] = exp_table();

/// Base-2 logarithm of each element, 0..=254; index 0 holds 0 as a neutral term.
pub(crate) static LOG: [u8; 256] = log_table();

/// `-LOG` modulo 255, 0..=254; index 0 holds 0, which adds nothing.
pub(crate) static LOG_OF_INVERSE: [u8; 256] = log_of_inverse_table();

/// Multiplicative inverse of each element; the 0 at index 0 has no meaning.
pub(crate) static INVERSE: [u8; 256] = inverse_table();

/// Products of each coefficient with 0x00..0x0F, then with 0x00, 0x10, .. 0xF0.
///
/// `c * x` is `NIBBLES[c].0[x & 15] ^ NIBBLES[c].0[16 + (x >> 4)]`.
pub(crate) static NIBBLES: [Nibbles; 256] = nibble_tables();

/// 8 x 8 bit matrix of the multiplication by each coefficient, in GFNI's layout.
///
/// Byte `7 - i` of the value is the row that produces bit `i` of the product.
#[cfg(target_arch = "x86_64")]
pub(crate) static BIT_MATRICES: [u64; 256] = bit_matrices();

/// One coefficient's pair of 16-byte look-up tables, never straddling a cache line.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(crate) struct Nibbles(pub(crate) [u8; 32]);

/// Returns the product of `a` and `b` in the field, by shift and add: slow, used only to build the
/// tables.
const fn multiply_bitwise(a: u8, b: u8) -> u8 {
    let mut product = 0;
    let mut shifted = a as u16;
    let mut bit = 0;
    while bit < 8 {
        if b >> bit & 1 == 1 {
            product ^= shifted;
        }
        shifted <<= 1;
        if shifted & 0x100 != 0 {
            shifted ^= POLYNOMIAL;
        }
        bit += 1;
    }
    product as u8
}

const fn exp_table() -> [u8; 1024] {
    let mut table = [0; 1024];
    let mut power = 1;
    let mut exponent = 0;
    while exponent < table.len() {
        table[exponent] = power;
        power = multiply_bitwise(power, 2);
        exponent += 1;
    }
    table
}

pub(crate) const fn log_table() -> [u8; 256] {
    let exp = exp_table();
    let mut table = [0; 256];
    let mut exponent = 0;
    while exponent < 255 {
        table[exp[exponent] as usize] = exponent as u8;
        exponent += 1;
    }
    table
}

const fn log_of_inverse_table() -> [u8; 256] {
    let log = log_table();
    let mut table = [0; 256];
    let mut element = 1;
    while element < 256 {
        table[element] = ((255 - log[element] as u16) % 255) as u8;
        element += 1;
    }
    table
}

const fn inverse_table() -> [u8; 256] {
    let exp = exp_table();
    let log_of_inverse = log_of_inverse_table();
    let mut table = [0; 256];
    let mut element = 1;
    while element < 256 {
        table[element] = exp[log_of_inverse[element] as usize];
        element += 1;
    }
    table
}

const fn nibble_tables() -> [Nibbles; 256] {
    let mut tables = [Nibbles([0; 32]); 256];
    let mut coefficient = 0;
    while coefficient < 256 {
        let mut nibble = 0;
        while nibble < 16 {
            let table = &mut tables[coefficient].0;
            table[nibble] = multiply_bitwise(coefficient as u8, nibble as u8);
            table[16 + nibble] = multiply_bitwise(coefficient as u8, (nibble << 4) as u8);
            nibble += 1;
        }
        coefficient += 1;
    }
    tables
}

#[cfg(target_arch = "x86_64")]
const fn bit_matrices() -> [u64; 256] {
    let mut matrices = [0; 256];
    let mut coefficient = 0;
    while coefficient < 256 {
        let mut input_bit = 0;
        while input_bit < 8 {
            let image = multiply_bitwise(coefficient as u8, 1 << input_bit);
            let mut output_bit = 0;
            while output_bit < 8 {
                if image >> output_bit & 1 == 1 {
                    matrices[coefficient] |= 1 << (8 * (7 - output_bit) + input_bit);
                }
                output_bit += 1;
            }
            input_bit += 1;
        }
        coefficient += 1;
    }
    matrices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
    fn products_agree_with_shift_and_add() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(multiply(a, b), multiply_bitwise(a, b), "{a} * {b}");
            }
        }
    }

    #[test]
    fn published_products_hold() {
        // x^7 * x = x^8 = x^4 + x^3 + x^2 + 1; the logarithms of 3 and 5 to base 2 are 25 and 50.
        assert_eq!(multiply(0x80, 2), 0x1D);
        assert_eq!((LOG[3], LOG[5]), (25, 50));
        assert_eq!(multiply(3, 3), 5);
    }

    #[test]
    fn two_generates_every_nonzero_element() {
        let mut seen = [false; 256];
        EXP[..255].iter().for_each(|&element| seen[element as usize] = true);
        assert!(!seen[0] && seen[1..].iter().all(|&seen| seen));
        assert!((255..EXP.len()).all(|exponent| EXP[exponent] == EXP[exponent - 255]));
    }

    #[test]
    fn every_nonzero_element_has_one_inverse() {
        assert_eq!(invert(0), None);
        for a in 1..=255 {
            let inverse = invert(a).expect("nonzero");
            assert_eq!(multiply(a, inverse), 1);
            assert_eq!((1..=255).filter(|&b| multiply(a, b) == 1).count(), 1);
            assert_eq!((LOG[a as usize] as u16 + LOG_OF_INVERSE[a as usize] as u16) % 255, 0);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
    fn multiplication_is_a_commutative_group_with_distribution() {
        // All pairs, and every fifth element as the third operand.
        for a in 0..=255u8 {
            assert_eq!((multiply(a, 1), multiply(a, 0)), (a, 0));
            for b in 0..=255u8 {
                assert_eq!(multiply(a, b), multiply(b, a));
                for c in (0..=255u8).step_by(5) {
                    assert_eq!(multiply(multiply(a, b), c), multiply(a, multiply(b, c)));
                    assert_eq!(multiply(a, b ^ c), multiply(a, b) ^ multiply(a, c));
                }
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
    fn nibble_tables_multiply() {
        for c in 0..=255u8 {
            for x in 0..=255u8 {
                let table = &NIBBLES[c as usize].0;
                let product = table[(x & 15) as usize] ^ table[16 + (x >> 4) as usize];
                assert_eq!(product, multiply(c, x));
            }
        }
    }
}
