//! Where randomness comes from: everything else takes a seed at construction.

use anyhow::Context;

/// Returns thirty-two random bytes of the system's.
///
/// # Errors
/// When the system has none to give.
pub fn seed() -> anyhow::Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).context("the system gives no randomness")?;
    Ok(seed)
}
