//! Invariants 1 and 2 of ARCHITECTURE.md: the places of sockets, clocks, threads, async and unsafe
//! code.

use crate::source::{Language, Source};

/// A restriction of certain code to certain places.
struct Rule {
    /// Tokens permitted only at `places`: each is a word, words joined by `::`, or a word with a
    /// leading `.`.
    tokens: &'static [&'static str],
    /// Prefixes of the permitted paths, from the repository's root.
    places: &'static [&'static str],
    /// Explanation in the message of a fault.
    what: &'static str,
}

/// Lists every line of Rust with a token outside of its permitted places.
pub(crate) fn faults(source: &Source) -> Vec<String> {
    if source.language != Language::Rust {
        return Vec::new();
    }
    let rules: Vec<&Rule> = RULES.iter().filter(|rule| !rule.allows(&source.path)).collect();
    let mut faults = Vec::new();
    for (index, line) in source.code().iter().enumerate() {
        for rule in &rules {
            if let Some(token) = rule.tokens.iter().find(|token| has(line, token)) {
                faults.push(source.fault(index + 1, &format!("`{token}`: {}", rule.what)));
            }
        }
    }
    faults
}

impl Rule {
    fn allows(&self, path: &str) -> bool {
        self.places.iter().any(|place| path.starts_with(place))
    }
}

/// Returns whether a line of code has `token` as a whole word.
fn has(line: &str, token: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(token).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + token.len()..].chars().next();
        let joins = |c: Option<char>| c.is_some_and(is_name);
        !(joins(after) || joins(before) && token.starts_with(is_name))
    })
}

const RULES: [Rule; 4] = [
    Rule {
        tokens: &[
            "UdpSocket",
            "UdpSocketExt",
            "TcpStream",
            "TcpListener",
            "TcpSocket",
            "UnixStream",
            "UnixListener",
            "UnixDatagram",
            "socket2",
            "mio",
            "axum",
            "tokio",
            "async",
            ".await",
        ],
        places: OUTSIDE_WORLD,
        what: "sockets and async are for net, vehicle, operator, switchboard, relay and cli",
    },
    Rule {
        tokens: &["Instant::now", "SystemTime", "Instant::elapsed"],
        places: OUTSIDE_WORLD,
        what: "only net::clock reads a clock; time is an argument",
    },
    Rule {
        tokens: &[
            "thread::spawn",
            "thread::scope",
            "thread::Builder",
            "thread::sleep",
            "thread::park",
        ],
        places: THREADS,
        what: "threads are for net, vehicle, operator, switchboard, relay, cli and the lab's workers",
    },
    Rule {
        tokens: &["unsafe"],
        places: UNSAFE,
        what: "unsafe code stands only in kernels, in the module of one foreign library, and in \
               what flatc writes",
    },
];

/// Path prefixes of the rooms with access to the outside world, and of all code outside `crates/`:
/// comparative benches, fuzz targets, and this tool.
const OUTSIDE_WORLD: &[&str] = &[
    "crates/net/",
    "crates/port/",
    "crates/vehicle/",
    "crates/operator/",
    "crates/switchboard/",
    "crates/relay/",
    "crates/cli/",
    "bench/",
    "fuzz/",
    "python/",
    "xtask/",
];

/// Path prefixes of code that may start threads: those of [`OUTSIDE_WORLD`], single files of other
/// rooms, and tests with many seeds in parallel.
const THREADS: &[&str] = &[
    "crates/net/",
    "crates/port/",
    "crates/vehicle/",
    "crates/operator/",
    "crates/switchboard/",
    "crates/relay/",
    "crates/cli/",
    "bench/",
    "fuzz/",
    "python/",
    "xtask/",
    "crates/lab/src/workers.rs",
    // A stalling disk must block only the recorder's thread, not the guard's.
    "crates/blackbox/src/recorder.rs",
    // ffmpeg renders a clip's pictures while they are read.
    "crates/lab/src/pictures/footage.rs",
    // Camera, encoders and decoder run as the vehicle's threads.
    "crates/lab/src/papers/lte/rig.rs",
    // Emulated links between the network namespaces of processes.
    "crates/lab/src/papers/ugv/stand.rs",
    "crates/transport/tests/",
];

const UNSAFE: &[&str] = &[
    "crates/fec/src/kernel/",
    "crates/video/src/avc/kernel/",
    "crates/video/src/openh264/native.rs",
    "crates/lab/src/pictures/x264/native.rs",
    "crates/video/src/libavcodec.rs",
    "crates/video/src/v4l2/native.rs",
    // Comparative measurements: ISA-L, the CPU's limit, codecs of other languages.
    "bench/peers/src/isal.rs",
    "bench/peers/src/limit.rs",
    "bench/codecs/src/",
    // Socket options, and powering off the guest.
    "bench/testbed/src/native.rs",
    // Open files, which Python knows by number.
    "python/src/file.rs",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_reserved_for_some_rooms_are_named_elsewhere() {
        let bad = "use std::net::UdpSocket;\nlet now = Instant::now();\nstd::thread::spawn(run);\n\
                   unsafe { call() }\nlet reply = ask().await;\n";
        let in_fec = faults(&Source::new("crates/fec/src/block.rs", bad));
        let lines: Vec<&str> = in_fec.iter().filter_map(|fault| fault.split(':').nth(1)).collect();
        assert_eq!(lines, ["1", "2", "3", "4", "5"], "{in_fec:?}");
        let in_net = faults(&Source::new("crates/net/src/driver.rs", bad));
        assert_eq!(in_net.len(), 1, "{in_net:?}");
        assert!(in_net[0].starts_with("crates/net/src/driver.rs:4: `unsafe`"), "{in_net:?}");
        let kernel = Source::new("crates/fec/src/kernel/avx2.rs", "unsafe { call() }");
        assert_eq!(faults(&kernel), [""; 0]);
    }

    #[test]
    fn comments_strings_and_parts_of_names_are_no_code() {
        let right = "#![forbid(unsafe_code)]\n// unsafe { tokio }\nlet mio_count = \"tokio\";\n\
                     let is_async_like = message.awaited();\nuse std::net::SocketAddr;\n";
        assert_eq!(faults(&Source::new("crates/fec/src/block.rs", right)), [""; 0]);
    }
}
