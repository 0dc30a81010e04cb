//! On what a measurement ran.

/// Returns the processor's name, as far as the system tells it.
pub fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "model name").then(|| value.trim().to_owned())
    };
    text.lines().find_map(named).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Returns Tautline's version and how it was built, because that decides what a timing is worth.
pub fn version() -> String {
    let build = if cfg!(debug_assertions) { " (development build)" } else { "" };
    format!("{}{build}", env!("CARGO_PKG_VERSION"))
}
