//! The only source of randomness: all other code takes a seed at construction.

use anyhow::Context;

/// Returns thirty-two random bytes from the system.
///
/// # Errors
/// When the system provides none.
pub fn seed() -> anyhow::Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).context("the system provides no random numbers")?;
    Ok(seed)
}
