//! Names of variants in Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Returns the variant with this name.
///
/// # Errors
/// A `ValueError` if there is none.
pub(crate) fn named<T: Copy + std::fmt::Debug>(all: &[T], name: &str, what: &str) -> PyResult<T> {
    let found = all.iter().find(|it| name_of(it) == name);
    found.copied().ok_or_else(|| PyValueError::new_err(format!("there is no {what} {name:?}")))
}

/// Returns the name of a variant in Python: words in lower case.
pub(crate) fn name_of(variant: &impl std::fmt::Debug) -> String {
    let mut name = String::new();
    for character in format!("{variant:?}").chars() {
        if character.is_uppercase() && !name.is_empty() {
            name.push(' ');
        }
        name.extend(character.to_lowercase());
    }
    name
}
