//! Formatting of numbers and names in tables, plots, reports and on the terminal.

use std::path::Path;

/// Formats a number for readers: four significant digits, but every digit before the point, and no
/// trailing zeros after it. A magnitude from 1e9 on or below 1e-4, other than 0, is in scientific
/// notation, with three digits after the point.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor();
    if !(-4.0..9.0).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    let decimals = (3.0 - magnitude).max(0.0) as usize;
    let digits = format!("{value:.decimals$}");
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        digits
    }
}

/// Returns whether `name` is a valid file name on all systems: one or more lower-case ASCII
/// letters, digits and hyphens, and nothing else.
pub(crate) fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(plain)
}

/// Returns a name valid by [`is_name`] for data from a file: the file's name without its extension,
/// in lower case, with a hyphen in place of every other character.
pub(crate) fn name_of(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy().to_lowercase();
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    stem.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_names_what_is_read_from_it() {
        for file in ["clips/Rain_at night.mp4", "TMobile-LTE.short.up", "é.pps", ".."] {
            assert!(is_name(&name_of(Path::new(file))), "{file}");
        }
        assert_eq!(name_of(Path::new("clips/Rain_at night.mp4")), "rain-at-night");
    }

    #[test]
    fn numbers_are_short() {
        for (value, words) in [
            (0.0, "0"),
            (5.8, "5.8"),
            (23314.0, "23314"),
            (0.142361111, "0.1424"),
            (331.4536, "331.5"),
            (1e-9, "1.000e-9"),
            (-2.5, "-2.5"),
            (100.0, "100"),
        ] {
            assert_eq!(number(value), words);
        }
    }

    #[test]
    fn names_stay_in_their_folder() {
        assert!(is_name("lte-table-2"));
        for name in ["", "../up", "a/b", "Upper", "two words", "dot.ted"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
