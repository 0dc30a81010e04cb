use std::fmt;

/// A mistake in a DBC file or a map, and how to correct it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mistake {
    /// Line in the map, from 1; `None` for a mistake outside of it, such as one of the DBC.
    pub line: Option<usize>,
    /// The mistake, and what to do.
    pub text: String,
}

impl Mistake {
    /// Creates a mistake in the map.
    pub(crate) fn at(line: usize, text: impl Into<String>) -> Self {
        Self { line: Some(line), text: text.into() }
    }

    /// Creates a mistake in the DBC.
    pub(crate) fn of_dbc(text: impl Into<String>) -> Self {
        Self { line: None, text: text.into() }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// Returns advice on a name that does not exist: up to [`NEAREST_MAX`] similar ones of those that
/// do, or else a list of up to [`LISTED_MAX`].
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let lower = name.to_lowercase();
    let similarity = |known: &str| strsim::jaro_winkler(&lower, &known.to_lowercase());
    let mut known: Vec<(f64, &str)> =
        known.into_iter().map(|known| (similarity(known), known)).collect();
    known.sort_by(|a, b| b.0.total_cmp(&a.0));
    let list = |names: &[(f64, &str)]| {
        let names: Vec<&str> = names.iter().map(|(_, name)| *name).collect();
        names.join(", ")
    };
    let near = known.iter().take(NEAREST_MAX).filter(|(similarity, _)| *similarity >= NEAR).count();
    match near {
        0 if known.is_empty() => "there are none".into(),
        0 => format!("there are {}", list(&known[..known.len().min(LISTED_MAX)])),
        near => format!("did you mean {}?", list(&known[..near])),
    }
}

/// Maximum names that are suggested.
const NEAREST_MAX: usize = 3;
/// Maximum names that are listed if none is similar.
const LISTED_MAX: usize = 12;
/// Similarity, 0 to 1, from which on a name is a likely misspelling of another.
const NEAR: f64 = 0.75;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        let known = ["STEER_ANGLE", "STEER_FRACTION", "STEER_RATE", "CHECKSUM"];
        assert_eq!(
            nearest("steer_angel", known),
            "did you mean STEER_ANGLE, STEER_RATE, STEER_FRACTION?"
        );
        assert!(nearest("xyz", known).starts_with("there are "), "{}", nearest("xyz", known));
        assert_eq!(nearest("xyz", []), "there are none");
    }
}
