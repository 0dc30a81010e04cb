//! Files of settings: which command reads them, and which types have their settings.

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// Settings of one command in a file.
pub(super) struct File {
    /// Name of the command.
    pub(super) command: &'static str,
    /// Check of a file's text; it returns all settings with their values.
    pub(super) check: fn(&str) -> anyhow::Result<Table>,
    /// Valid files, short ones; a setting of a kind of machine is in the file of that kind.
    pub(super) bases: fn() -> Vec<String>,
    /// Types that hold the settings of the file.
    pub(super) parts: &'static [Part],
}

/// Settings of one type.
pub(super) struct Part {
    /// Table of the file that holds them; empty for the file itself.
    pub(super) at: &'static str,
    /// Source file below `crates`.
    pub(super) source: &'static str,
    /// Name of the type in the file `source`.
    pub(super) name: &'static str,
    /// Text that a file needs besides the base for these settings.
    pub(super) with: &'static str,
}

/// Reads a file, checks it and returns all of its settings with their values.
fn check<T: DeserializeOwned + Serialize>(
    text: &str,
    validate: fn(&T) -> anyhow::Result<()>,
) -> anyhow::Result<Table> {
    let config: T = toml::from_str(text)?;
    validate(&config)?;
    Ok(Table::try_from(&config)?)
}

const fn part(
    at: &'static str,
    source: &'static str,
    name: &'static str,
    with: &'static str,
) -> Part {
    Part { at, source, name, with }
}

/// Returns a guard's file with these settings.
fn guard(config: tautline_guard::Config) -> String {
    let guard = Table::from_iter([("guard".to_owned(), Value::try_from(config).unwrap())]);
    format!("key = 'guard.key'\n{guard}")
}

/// Returns a file with a link that has this part.
macro_rules! up {
    ($part:literal) => {
        concat!("[[links]]\nname = 'a'\npreset = 'lan'\n[links.down]\nrate_mbps = 8.0\n[links.up]\nrate_mbps = 8.0\n", $part)
    };
}

/// Files of all commands that read one.
pub(super) const FILES: &[File] = &[
    File {
        command: "vehicle",
        check: |text| check(text, tautline_vehicle::Config::validate),
        bases: || vec![VEHICLE.into()],
        parts: VEHICLE_PARTS,
    },
    File {
        command: "operator",
        check: |text| check(text, tautline_operator::Config::validate),
        bases: || vec![OPERATOR.into()],
        parts: &[part("", "operator/src/config.rs", "Config", ""), TOPICS],
    },
    File {
        command: "guard",
        check: |text| check(text, |it: &crate::guard::Config| it.faults().finish()),
        bases: || [tautline_guard::Config::car(), tautline_guard::Config::cart()].map(guard).into(),
        parts: GUARD_PARTS,
    },
    File {
        command: "machine",
        check: |text| check(text, crate::machine::Config::validate),
        bases: || vec![String::new()],
        parts: &[part("", "cli/src/machine.rs", "Config", "")],
    },
    File {
        command: "switchboard",
        check: |text| check(text, tautline_switchboard::Config::validate),
        bases: || vec![String::new()],
        parts: SWITCHBOARD_PARTS,
    },
    File {
        command: "relay",
        check: |text| check(text, tautline_relay::Config::validate),
        bases: || vec![RELAY.into()],
        parts: &[part("", "relay/src/config.rs", "Config", "")],
    },
    File {
        command: "emulate",
        check: |text| check(text, tautline_net::emulate::Config::validate),
        bases: || vec![String::new()],
        parts: EMULATE_PARTS,
    },
    File {
        command: "end",
        check: |text| check(text, |it: &crate::end::Config| it.switchboard_public_key().map(drop)),
        bases: || vec![OPERATOR.into()],
        parts: &[part("", "cli/src/end.rs", "Config", "")],
    },
];

const VEHICLE: &str = r#"
operators = ["1398f62c6d1a457c51ba6a4b5f3dbd2f69fca93216218dc8997e416bd17d93ca"]
switchboard_key = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c"
"#;
const OPERATOR: &str =
    "switchboard_key = 'ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c'";
const RELAY: &str = OPERATOR;

const TOPICS: Part = part(
    "topics",
    "net/src/topics.rs",
    "Topic",
    "[[topics]]\ntopic = '/scan'\nlisten = '/run/scan'\nrate_cap_kbps = 200",
);
const TRANSPORT: &str = "[transport]\n[transport.protect]\n[transport.rate]\n";
const VEHICLE_PARTS: &[Part] = &[
    part("", "vehicle/src/config.rs", "Config", ""),
    part(
        "camera_geometry",
        "vehicle/src/geometry.rs",
        "CameraGeometry",
        "[camera_geometry]\nheight_m = 1.4\npitch_degrees = 3.0\nfield_of_view_degrees = 70.0\n\
         to_front_m = 2.1\nto_rear_axle_m = 1.35\nwidth_m = 1.8\nwheelbase_m = 2.6",
    ),
    TOPICS,
    part("transport", "transport/src/config.rs", "Config", TRANSPORT),
    part("transport.protect", "transport/src/protect.rs", "Config", TRANSPORT),
    part("transport.rate", "transport/src/rate/config.rs", "Config", TRANSPORT),
];

const GUARD_PARTS: &[Part] = &[
    part("", "cli/src/guard.rs", "Config", ""),
    part("blackbox", "blackbox/src/config.rs", "Config", "[blackbox]"),
    part("guard", "guard/src/config.rs", "Config", ""),
    part("guard.latency", "guard/src/config.rs", "Latency", ""),
    part("guard.machine", "guard/src/config.rs", "Characteristics", ""),
    part("guard.envelope", "guard/src/config.rs", "Envelope", ""),
    part("guard.manoeuvre", "guard/src/config.rs", "Manoeuvre", ""),
    part("guard.presence", "guard/src/config.rs", "Presence", ""),
];

const SWITCHBOARD_PARTS: &[Part] = &[
    part("", "switchboard/src/config.rs", "Config", ""),
    part(
        "relays",
        "switchboard/src/relays.rs",
        "Relay",
        "[[relays]]\naddresses = ['192.0.2.1:7444']\n\
         key = 'ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c'",
    ),
];

const LINK: &str = up!("");
const EMULATE_PARTS: &[Part] = &[
    part("", "net/src/emulate/config.rs", "Config", LINK),
    part("links", "net/src/emulate/config.rs", "LinkConfig", LINK),
    part(
        "links.wireless",
        "net/src/emulate/config.rs",
        "WirelessConfig",
        "[[links]]\nname = 'a'\n[links.wireless]\npower_dbm = -35",
    ),
    part("links.up", MODEL, "Config", LINK),
    part("links.up.swing", MODEL, "Swing", up!("swing = { sigma = 0.25, tau_ms = 80.0 }")),
    part("links.up.steps", MODEL, "Step", up!("steps = [{ at_s = 1.0, rate_mbps = 1.0 }]")),
    part(
        "links.up.trace",
        MODEL,
        "TraceRate",
        "[[links]]\nname = 'a'\npreset = 'lan'\n[links.up.trace]\nfile = 'a'",
    ),
    part("links.up.jitter", MODEL, "Jitter", up!("jitter = { sigma_ms = 2.0, tau_ms = 9.0 }")),
    part(
        "links.up.retransmission",
        MODEL,
        "Retransmission",
        up!("retransmission = { probability = 0.1, delay_ms = 8.0 }"),
    ),
    part(
        "links.up.handover",
        "sim/src/link/interval.rs",
        "Handover",
        up!("handover = { step_ms = 9.0, every_s = [9.0, 9.0] }"),
    ),
    part(
        "links.up.outage_losing",
        "sim/src/link/interval.rs",
        "Outage",
        up!("outage_losing = { every_s = 60.0, mean_ms = 60.0 }"),
    ),
    part(
        "links.up.policer",
        MODEL,
        "Policer",
        up!("policer = { rate_mbps = 4.0, burst_bytes = 32000 }"),
    ),
    part("links.up.cubic", MODEL, "Cubic", up!("cubic = { rtt_ms = 30.0 }")),
    part("links.up.bbr", MODEL, "Bbr", up!("bbr = [{ rtt_ms = 30.0 }]")),
    part("links.up.l4s", MODEL, "L4s", up!("l4s = { threshold_ms = 1.0 }")),
    part(
        "links.up.burst_loss",
        MODEL,
        "BurstLoss",
        up!("burst_loss = { enter = 0.1, leave = 0.2 }"),
    ),
    part(
        "links.up.recording",
        "sim/src/link/replay.rs",
        "Replay",
        up!("recording = { file = 'a' }"),
    ),
    part("links.up.common", "sim/src/link/common.rs", "Common", up!("common = [{ name = 'a' }]")),
    part(
        "links.up.common.dip",
        "sim/src/link/common.rs",
        "Dip",
        up!("common = [{ name = 'a', dip = { every_s = 9.0, mean_ms = 9.0, factor = 0.5 } }]"),
    ),
];
const MODEL: &str = "sim/src/link/config.rs";
