//! Parsing and validation of settings, with a complete list of faults.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{SeqAccessDeserializer, StrDeserializer};
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

/// Deserializes a list that may be written as a single value: `link = "wwan0"` is
/// `links = ["wwan0"]`.
///
/// # Errors
/// The deserializer's error for the first invalid value.
pub fn one_or_several<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    from.deserialize_any(OneOrSeveral(PhantomData))
}

struct OneOrSeveral<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrSeveral<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<T>, E> {
        Ok(vec![T::deserialize(StrDeserializer::new(text))?])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<Vec<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(values))
    }
}

/// A collection of the faults of some settings, so that a person sees all of them at once.
///
/// ```
/// # use tautline_net::settings::Faults;
/// let mut faults = Faults::default();
/// faults.unless(2 > 1, || "never".to_owned());
/// faults.unless(1 > 2, || "a = 1: must be 2".to_owned());
/// faults.unless(2 > 3, || "b = 2: must be 3".to_owned());
/// let words = faults.finish().unwrap_err().to_string();
/// assert_eq!(words, "2 settings are wrong:\n  a = 1: must be 2\n  b = 2: must be 3");
/// ```
#[derive(Debug, Default)]
pub struct Faults(Vec<String>);

impl Faults {
    /// Adds a fault, unless the condition holds.
    pub fn unless(&mut self, holds: bool, fault: impl FnOnce() -> String) {
        if !holds {
            self.add(fault());
        }
    }

    /// Returns the value of a part; if it is an error, adds its fault or faults and returns `None`.
    pub fn of<T, E: Into<anyhow::Error>>(&mut self, part: Result<T, E>) -> Option<T> {
        match part.map_err(Into::into) {
            Ok(value) => Some(value),
            Err(error) => {
                match error.downcast_ref::<Wrong>() {
                    Some(Wrong(faults)) if error.chain().count() == 1 => {
                        faults.iter().for_each(|fault| self.add(fault.clone()));
                    }
                    Some(_) | None => self.add(format!("{error:#}")),
                }
                None
            }
        }
    }

    /// Adds these faults.
    pub fn all<E: fmt::Display>(&mut self, faults: impl IntoIterator<Item = E>) {
        faults.into_iter().for_each(|fault| self.add(fault.to_string()));
    }

    /// Adds a fault, unless the same text is already there.
    pub fn add(&mut self, fault: String) {
        // Two settings with the same rule produce the same text.
        if !self.0.contains(&fault) {
            self.0.push(fault);
        }
    }

    /// Ends the collection: succeeds if it has no faults.
    ///
    /// # Errors
    /// The fault, or all of them, each on a line of its own.
    pub fn finish(self) -> anyhow::Result<()> {
        let Self(faults) = self;
        if faults.is_empty() { Ok(()) } else { Err(Wrong(faults).into()) }
    }
}

/// All faults of some settings, at least one.
#[derive(Debug, thiserror::Error)]
struct Wrong(Vec<String>);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [fault] => f.write_str(fault),
            faults => {
                write!(f, "{} settings are wrong:\n  {}", faults.len(), faults.join("\n  "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_stands_for_a_list_of_one_and_a_wrong_one_is_named() {
        #[derive(Debug, serde::Deserialize)]
        struct Settings {
            #[serde(default, alias = "link", deserialize_with = "one_or_several")]
            links: Vec<crate::Local>,
        }
        let read = |json: &str| serde_json::from_str::<Settings>(json).map(|it| it.links.len());
        assert_eq!(read(r#"{"link": "wwan0"}"#).unwrap(), 1);
        assert_eq!(read(r#"{"links": ["wwan0", "127.0.0.1:0"]}"#).unwrap(), 2);
        assert_eq!(read(r#"{"links": []}"#).unwrap(), 0);
        assert_eq!(read("{}").unwrap(), 0);
        let words = read(r#"{"link": "no such thing"}"#).unwrap_err().to_string();
        assert!(words.contains("neither an address"), "{words}");
        assert!(read(r#"{"link": 3}"#).unwrap_err().to_string().contains("a text or a list"));
    }

    #[test]
    fn a_single_fault_is_reported_unchanged() {
        let mut faults = Faults::default();
        assert_eq!(faults.of::<u8, anyhow::Error>(Err(anyhow::anyhow!("a").context("b"))), None);
        assert_eq!(faults.of::<u8, anyhow::Error>(Err(anyhow::anyhow!("b: a"))), None);
        assert_eq!(faults.finish().unwrap_err().to_string(), "b: a");
        assert!(Faults::default().finish().is_ok());
    }

    #[test]
    fn the_faults_of_a_part_join_those_of_the_whole() {
        let part = || {
            let mut faults = Faults::default();
            faults.all(["a", "b"]);
            faults.finish()
        };
        let mut faults = Faults::default();
        assert!(faults.of(part()).is_none());
        faults.add("c".to_owned());
        let words = faults.finish().unwrap_err().to_string();
        assert_eq!(words, "3 settings are wrong:\n  a\n  b\n  c");
    }
}
