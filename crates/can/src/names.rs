//! Names that a map uses for members of sets, axes, actions and values.

use tautline_guard::Member;
use tautline_guard::description::Name;

use crate::mistake::nearest;

/// Returns the member of a set by its name in a map: `local_stop` for `LocalStop`.
///
/// # Errors
/// A text that suggests similar names, if there is none.
pub(crate) fn member<E: Member>(what: &str, name: &str) -> Result<E, String> {
    let known: Vec<(String, E)> = E::ALL.iter().map(|it| (snake(*it), *it)).collect();
    let found = known.iter().find(|(its, _)| its == name).map(|(_, member)| *member);
    let names = known.iter().map(|(name, _)| &**name);
    found.ok_or_else(|| format!("there is no {what} {name:?}: {}", nearest(name, names)))
}

/// Returns the name that an axis, action or value has in a map: `high_beam` for "high beam".
pub(crate) fn key(name: &Name) -> String {
    name.as_str().to_lowercase().replace(' ', "_")
}

/// Returns the name that a variant has in a map: `local_stop` for `LocalStop`.
pub(crate) fn snake(member: impl std::fmt::Debug) -> String {
    let mut snake = String::new();
    for (index, letter) in format!("{member:?}").chars().enumerate() {
        if letter.is_uppercase() && index > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}
