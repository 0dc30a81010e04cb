//! Bytes as hexadecimal digits.

/// Encodes each byte as two digits.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Decodes pairs of lower-case digits; `None` if a character is no such digit, or one is left over.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let nibble = |digit: u8| DIGITS.iter().position(|known| *known == digit).map(|at| at as u8);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(nibble(*high)? << 4 | nibble(*low)?),
            _ => None,
        })
        .collect()
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_survive_their_digits(bytes: Vec<u8>) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = decode(&text);
        }
    }
}
