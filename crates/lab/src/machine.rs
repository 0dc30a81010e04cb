//! The machine that measured.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Properties of a machine that affect timings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name, as reported by the system.
    pub processor: String,
    /// The kernel's release, if known.
    pub kernel: Option<String>,
}

impl Machine {
    /// Returns the properties of the machine on which this process runs.
    pub fn here() -> Self {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok();
        Self { processor: processor(), kernel: kernel.map(|release| release.trim().to_owned()) }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kernel {
            Some(kernel) => write!(f, "{}, kernel {kernel}", self.processor),
            None => write!(f, "{}, kernel not recorded", self.processor),
        }
    }
}

/// Returns the processor's name as reported by the system, or else the name of its architecture.
pub fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "model name").then(|| value.trim().to_owned())
    };
    text.lines().find_map(named).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Returns Tautline's version, followed by ` (development build)` if debug assertions, which affect
/// timings, are on.
pub fn version() -> String {
    let build = if cfg!(debug_assertions) { " (development build)" } else { "" };
    format!("{}{build}", env!("CARGO_PKG_VERSION"))
}
