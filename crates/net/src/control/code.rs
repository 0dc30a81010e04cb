use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use tautline_transport::crypto::PublicKey;

/// A one-time code that enrols a machine. A person types it; it identifies the switchboard to the
/// machine, and the invited machine to the switchboard.
///
/// ```text
/// byte 0                10        12              16
/// +---------------------+---------+---------------+
/// | fingerprint         | number  | secret        |  and 12 bits that check these
/// +---------------------+---------+---------------+
/// ```
///
/// Text form: 28 letters and digits in groups of four, in Crockford's alphabet. `I` and `L` are
/// read as 1, `O` as 0, and lower case as upper case. The fingerprint is the beginning of the
/// SHA-256 of the switchboard's key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code {
    fingerprint: [u8; FINGERPRINT_BYTES],
    /// Number of the invitation, which is not secret.
    pub number: u16,
    /// Secret known only to the invited machine.
    pub secret: [u8; 4],
}

/// A reason why a text is no code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// The number of letters is wrong.
    #[error("a code has {LETTERS} letters and digits, not {count}")]
    Length {
        /// Number of letters in the text.
        count: usize,
    },
    /// A letter is not in the alphabet.
    #[error("{letter:?} does not occur in codes")]
    Letter {
        /// The invalid letter.
        letter: char,
    },
    /// The check bits do not match.
    #[error("the code was mistyped: compare it letter by letter")]
    Mistyped,
}

impl Code {
    /// Creates the code of an invitation by the switchboard that holds `key`.
    pub fn new(key: PublicKey, number: u16, secret: [u8; 4]) -> Self {
        Self { fingerprint: fingerprint(key), number, secret }
    }

    /// Returns whether this code belongs to the switchboard that holds `key`.
    pub fn is_of(&self, key: PublicKey) -> bool {
        fingerprint(key) == self.fingerprint
    }

    fn bits(&self) -> u128 {
        let mut bytes = [0; 16];
        bytes[..FINGERPRINT_BYTES].copy_from_slice(&self.fingerprint);
        bytes[FINGERPRINT_BYTES..12].copy_from_slice(&self.number.to_be_bytes());
        bytes[12..].copy_from_slice(&self.secret);
        u128::from_be_bytes(bytes)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bits, check) = (self.bits(), check(self.bits()));
        for place in 0..LETTERS {
            if place > 0 && place % GROUP == 0 {
                f.write_str("-")?;
            }
            // 128 bits, then the check's 12: the 26th letter contains bits of both.
            let value = match place {
                0..25 => bits >> (123 - 5 * place),
                25 => (bits & 0b111) << 2 | u128::from(check >> 10),
                _ => u128::from(check >> (5 * (LETTERS - 1 - place))),
            };
            write!(f, "{}", char::from(ALPHABET[(value & 31) as usize]))?;
        }
        Ok(())
    }
}

impl FromStr for Code {
    type Err = CodeError;

    fn from_str(text: &str) -> Result<Self, CodeError> {
        let letters = text.chars().filter(|letter| !letter.is_whitespace() && *letter != '-');
        let (mut bits, mut told, mut count) = (0_u128, 0_u16, 0);
        for letter in letters {
            let value = value(letter).ok_or(CodeError::Letter { letter })?;
            match count {
                0..25 => bits = bits << 5 | u128::from(value),
                25 => {
                    bits = bits << 3 | u128::from(value >> 2);
                    told = u16::from(value & 0b11);
                }
                _ => told = told << 5 | u16::from(value),
            }
            count += 1;
            if count > LETTERS {
                return Err(CodeError::Length { count: LETTERS + 1 });
            }
        }
        if count < LETTERS {
            return Err(CodeError::Length { count });
        }
        if told != check(bits) {
            return Err(CodeError::Mistyped);
        }
        let [fingerprint @ .., n0, n1, s0, s1, s2, s3] = bits.to_be_bytes();
        let (number, secret) = (u16::from_be_bytes([n0, n1]), [s0, s1, s2, s3]);
        Ok(Self { fingerprint, number, secret })
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").field("number", &self.number).finish_non_exhaustive()
    }
}

fn fingerprint(key: PublicKey) -> [u8; FINGERPRINT_BYTES] {
    let digest = Sha256::new().chain_update(b"tautline switchboard").chain_update(key.as_bytes());
    let digest: [u8; 32] = digest.finalize().into();
    *digest.first_chunk().expect("a digest is longer")
}

// protocol 12
/// Computes 12 check bits, which miss a mistyped letter in one of 4096 cases.
fn check(bits: u128) -> u16 {
    let digest = Sha256::new().chain_update(b"tautline code").chain_update(bits.to_be_bytes());
    let digest: [u8; 32] = digest.finalize().into();
    u16::from_be_bytes([digest[0], digest[1]]) >> 4
}

/// Returns the five bits of a letter, read as [`Code`] specifies; `None` outside the alphabet.
fn value(letter: char) -> Option<u8> {
    let letter = match letter.to_ascii_uppercase() {
        'O' => '0',
        'I' | 'L' => '1',
        other => other,
    };
    let place = ALPHABET.iter().position(|known| char::from(*known) == letter)?;
    u8::try_from(place).ok()
}

/// Length of the fingerprint in a code: with 80 bits, a second key with the same fingerprint is
/// infeasible to find, though the key is public.
const FINGERPRINT_BYTES: usize = 10;
const LETTERS: usize = 28;
const GROUP: usize = 4;
/// Characters of a written code, by their values 0 to 31: Crockford's, without I, L, O and U.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tautline_transport::crypto::Identity;

    use super::*;

    fn key(seed: u8) -> PublicKey {
        Identity::from_seed(&[seed; 32]).public()
    }

    proptest! {
        #[test]
        fn a_code_is_read_as_it_was_printed_however_it_is_typed(
            seed: u8, number: u16, secret: [u8; 4]
        ) {
            let code = Code::new(key(seed), number, secret);
            let text = code.to_string();
            prop_assert_eq!(text.len(), 34);
            prop_assert_eq!(text.parse(), Ok(code));
            prop_assert_eq!(text.to_lowercase().replace('-', " ").parse(), Ok(code));
            let misread = text.replace('0', "o").replace('1', "l").replace('-', "");
            prop_assert_eq!(misread.parse(), Ok(code));
            prop_assert!(code.is_of(key(seed)) && !code.is_of(key(seed.wrapping_add(1))));
        }

        #[test]
        fn one_wrong_letter_never_gives_another_code_unseen(
            number: u16, secret: [u8; 4], place in 0..28_usize, further in 1..32_usize
        ) {
            let code = Code::new(key(1), number, secret);
            let mut text = code.to_string().into_bytes();
            // Four letters, a dash.
            let place = place + place / 4;
            let letter = ALPHABET.iter().position(|letter| *letter == text[place]).unwrap();
            text[place] = ALPHABET[(letter + further) % ALPHABET.len()];
            let read = String::from_utf8(text).unwrap().parse::<Code>();
            // In one of 4096 cases the 12 bits match; then it is another code, which admits nobody.
            prop_assert_ne!(read, Ok(code));
        }

        #[test]
        fn no_text_panics_the_reader(text in any::<String>(), bytes in any::<Vec<u8>>()) {
            let _ = text.parse::<Code>();
            let _ = String::from_utf8_lossy(&bytes).parse::<Code>();
        }

        #[test]
        fn no_letters_panic_the_reader(text in "[0-9A-Za-z-]{0,40}") {
            let _ = text.parse::<Code>();
        }
    }

    #[test]
    fn a_code_is_written_as_the_specification_says() {
        let text = Code::new(key(1), 7, [1, 2, 3, 4]).to_string();
        let specification = include_str!("../../../../docs/protocol.md");
        assert!(
            specification.contains(&format!("\n    {text}\n")),
            "docs/protocol.md lacks {text}"
        );
    }

    #[test]
    fn malformed_codes_are_refused_with_a_reason() {
        let text = Code::new(key(1), 7, [1, 2, 3, 4]).to_string();
        assert_eq!(text[..30].parse::<Code>(), Err(CodeError::Length { count: 24 }));
        assert_eq!(format!("{text}0").parse::<Code>(), Err(CodeError::Length { count: 29 }));
        assert_eq!(
            text.replacen(|_| true, "U", 1).parse::<Code>(),
            Err(CodeError::Letter { letter: 'U' })
        );
        assert!(!format!("{:?}", text.parse::<Code>().unwrap()).contains("secret"));
    }
}
