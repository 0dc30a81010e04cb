//! `tautline can`.

mod bus;
mod health;
mod machine;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use tautline_can::{Adapter, Database, Mapping, Mistake, Settings};
use tautline_net::clock::Clock;
use tautline_net::datagram::Address;
use tautline_net::metrics;
use tautline_net::{can_bus, file, realtime};
use tautline_port::serve;

use self::bus::exchange;
use self::machine::{BusMachine, Shown};
use crate::folders::Folders;
use crate::machine::control_timeout;
use crate::settings::right;
use crate::stop;
use crate::thread::Thread;

/// Connect a machine on a CAN bus to the guard, by a DBC file and a map of its signals.
///
/// Frames follow the guard's controls. While the guard is silent or the machine has a fault, the
/// map's values of a stop are sent; at the end of the process, its last frames. A bus that is down,
/// gone or full is a fault of the machine, logged and tried again. Every flag except --check can
/// also be set in the map under the same name, with _ for -.
#[derive(Debug, Args)]
pub(crate) struct Can {
    /// Map of the machine's signals: a TOML file, which has these settings too; flags override them
    #[arg(long, value_name = "FILE", visible_alias = "config", env = "TAUTLINE_CONFIG")]
    map: PathBuf,
    /// DBC file with the messages of the bus
    #[arg(long, value_name = "FILE")]
    dbc: Option<PathBuf>,
    /// CAN interface such as can0, or udp:ADDRESS:PORT of a simulator: a frame in each datagram
    #[arg(long)]
    bus: Option<can_bus::Address>,
    /// Address at which the guard listens for the machine: a path, or address:port for UDP
    /// [default: /run/tautline/machine.sock]
    #[arg(long, value_name = "ADDRESS")]
    guard: Option<Address>,
    /// Time in milliseconds without a control after which the machine is braked, 20 to 500
    /// [default: 30]
    #[arg(long, value_name = "MS")]
    control_timeout_ms: Option<u64>,
    /// Address that serves /metrics for Prometheus [default: none]
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Print what the map connects, or all its mistakes, and end
    #[arg(long)]
    check: bool,
}

/// Checked settings of `tautline can`, from its flags and the map.
#[derive(Debug)]
struct Config {
    /// Address of the bus; `None` if not given, which suffices for `--check`.
    bus: Option<can_bus::Address>,
    guard: Address,
    control_timeout: Duration,
    metrics: Option<SocketAddr>,
}

impl Can {
    /// Checks the map, or runs the machine until the process is asked to end.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let (adapter, config) = right(self.load())?;
        if self.check {
            answer!("{}", tautline_can::table(&adapter).trim_end());
            return Ok(());
        }
        let bus = config.bus.context("bus is missing: --bus can0, or bus = \"can0\" in the map");
        let bus = right(bus)?;
        let (link, exchange) = exchange(bus.clone(), adapter.ids())?;
        let machine = BusMachine::new(adapter, link);
        let shown = machine.shown();
        let (clock, stop) = (Clock::start(), Arc::new(AtomicBool::new(false)));
        let mut bus_thread = Thread::start("bus", move || exchange.run(clock))?;
        let mut driving = Thread::start("can", {
            let (guard, stop) = (config.guard.clone(), stop.clone());
            let control_timeout = config.control_timeout;
            let settings = serve::Settings { control_timeout, ..serve::Settings::default() };
            move || serve(machine, &guard, settings, clock, &stop)
        })?;
        realtime::lock_memory("the machine");
        tracing::info!(%bus, guard = %config.guard, "the machine waits for the guard");
        let ended = tokio::select! {
            () = stop::asked() => Ok(()),
            failed = show(config.metrics, shown) => failed,
            failed = driving.ended() => failed,
            failed = bus_thread.ended() => failed,
        };
        stop.store(true, Ordering::Relaxed);
        // The bus's thread ends after the machine's, once the last frames are sent.
        [driving, bus_thread].into_iter().for_each(Thread::join);
        ended
    }

    /// Reads map and DBC.
    ///
    /// # Errors
    /// All mistakes of both, each with its file and line.
    fn load(&self) -> anyhow::Result<(Adapter, Config)> {
        let name = self.map.display();
        let text = file::read_text(&self.map).with_context(|| format!("cannot read {name}"))?;
        let mapping = Mapping::parse(&text);
        let settings = mapping.settings().clone();
        let dbc = self.dbc.clone().or_else(|| {
            let folder = self.map.parent().unwrap_or(Path::new(""));
            settings.dbc.as_ref().map(|dbc| folder.join(dbc))
        });
        let database = match &dbc {
            Some(dbc) => read(dbc),
            None => Err(mistake("dbc is missing: --dbc FILE, or dbc = \"FILE\" in the map")),
        };
        let (adapter, mut mistakes) = match mapping.resolve(database.as_ref().map_err(Clone::clone))
        {
            Ok(adapter) => (Some(adapter), Vec::new()),
            Err(mistakes) => (None, mistakes),
        };
        let config = self.config(settings, &mut mistakes);
        match adapter {
            Some(adapter) if mistakes.is_empty() => Ok((adapter, config)),
            Some(_) | None => {
                let lines = mistakes.iter().map(|Mistake { line, text }| match line {
                    Some(line) => format!("\n  {name}:{line}: {text}"),
                    None => format!("\n  {text}"),
                });
                let lines: String = lines.collect();
                match mistakes.len() {
                    1 => bail!("a mistake in the map:{lines}"),
                    count => bail!("{count} mistakes in the map:{lines}"),
                }
            }
        }
    }

    /// Joins flags and the map's settings; adds what is wrong with them to `mistakes`.
    fn config(&self, settings: Settings, mistakes: &mut Vec<Mistake>) -> Config {
        let bus = settings.bus.filter(|_| self.bus.is_none()).map(|bus| bus.parse());
        let bus = bus.transpose().unwrap_or_else(|error: anyhow::Error| {
            mistakes.push(mistake(format!("bus: {error}")));
            None
        });
        let mut guard = settings.guard.unwrap_or(Address::Path(GUARD.into()));
        Folders::of(Some(&self.map)).connect(guard.path_mut());
        let timeout = self.control_timeout_ms.or(settings.control_timeout_ms).unwrap_or(30);
        if let Err(error) = control_timeout(timeout).check() {
            mistakes.push(mistake(error.to_string()));
        }
        Config {
            bus: self.bus.clone().or(bus),
            guard: self.guard.clone().unwrap_or(guard),
            control_timeout: Duration::from_millis(timeout),
            metrics: self.metrics.or(settings.metrics),
        }
    }
}

fn read(dbc: &Path) -> Result<Database, Mistake> {
    let name = dbc.display();
    let bytes = file::read(dbc, DBC_BYTES_MAX);
    let bytes = bytes.map_err(|error| mistake(format!("cannot read {name}: {error}")))?;
    Database::read(&bytes).map_err(|error| mistake(format!("{name}: {error}")))
}

/// Returns a mistake that belongs to no line of the map.
fn mistake(text: impl Into<String>) -> Mistake {
    Mistake { line: None, text: text.into() }
}

async fn show(address: Option<SocketAddr>, shown: Arc<Shown>) -> anyhow::Result<()> {
    let Some(address) = address else { return std::future::pending().await };
    let page = move || shown.page();
    metrics::serve(address, metrics::routes("can", page.clone(), page)).await
}

/// Default address of the guard.
const GUARD: &str = "/run/tautline/machine.sock";
/// Maximum length of a DBC file in bytes, beyond which it is refused: several times that of the
/// largest ones of a car's buses.
const DBC_BYTES_MAX: u64 = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn can(folder: &Path, map: &str) -> Can {
        let file = folder.join("car.toml");
        std::fs::write(&file, map).unwrap();
        Can {
            map: file,
            dbc: None,
            bus: None,
            guard: None,
            control_timeout_ms: None,
            metrics: None,
            check: true,
        }
    }

    const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../adapters/can");

    #[test]
    fn flags_override_the_settings_of_a_map() {
        let mut can = can(&std::env::temp_dir(), "");
        can.map = Path::new(EXAMPLE).join("car.toml");
        let (_, config) = can.load().unwrap();
        assert_eq!(config.bus.unwrap(), "can0".parse().unwrap());
        can.bus = Some("udp:127.0.0.1:1".parse().unwrap());
        can.control_timeout_ms = Some(50);
        let (_, config) = can.load().unwrap();
        assert_eq!(config.bus, can.bus);
        assert_eq!(config.control_timeout, Duration::from_millis(50));
    }

    #[test]
    fn all_mistakes_of_map_and_settings_are_told_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let text = std::fs::read_to_string(Path::new(EXAMPLE).join("car.toml")).unwrap();
        let dbc = Path::new(EXAMPLE).join("car.dbc");
        let text = text
            .replace("\"car.dbc\"", &format!("{dbc:?}"))
            .replace("bus = \"can0\"", "bus = \"127.0.0.1:1\"\ncontrol_timeout_ms = 5")
            .replace("ANGLE = { from", "ANGEL = { from")
            .replace("TORQUE_MAX = 8 ", "TORQUE_MAX = 80 ");
        let told = can(folder.path(), &text).load().unwrap_err().to_string();
        assert!(told.starts_with("4 mistakes in the map:"), "{told}");
        for part in ["car.toml:12: ", "ANGLE", "car.toml:13: TORQUE_MAX: 80", "bus: ", " = 5: "] {
            assert!(told.contains(part), "{part}: {told}");
        }
        let told = can(folder.path(), "dbc = \"none.dbc\"").load().unwrap_err().to_string();
        assert!(told.contains("none.dbc: No such file"), "{told}");
    }
}
