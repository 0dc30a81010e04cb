//! `tautline car`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use tautline_guard::{Controls, Fault, Machine, MachineState};
use tautline_net::clock::Clock;
use tautline_net::datagram::Address;
use tautline_net::metrics::{self, Page, Unit};
use tautline_net::realtime;
use tautline_net::settings::Faults;
use tautline_port::serve;
use tautline_testtrack::{Conditions, SimulatedCar};
use tautline_units::{Bounded, Instant};

use crate::folders::Folders;
use crate::settings::{load, right, set};
use crate::stop;
use crate::thread::Thread;

/// Run the test track's simulated car behind the guard's port, like any other machine.
///
/// The car continues with the last control until the guard has been silent for too long, and then
/// brakes by itself. Every flag can also be set in the TOML file under the same name, with _ for -.
#[derive(Debug, Args)]
pub(crate) struct Car {
    /// TOML file with any of these settings; flags and environment variables override it
    #[arg(long, env = "TAUTLINE_CONFIG")]
    config: Option<PathBuf>,
    /// Address at which the guard listens for the machine: a path, or address:port for UDP
    /// [default: /run/tautline/machine.sock]
    #[arg(long, value_name = "ADDRESS")]
    guard: Option<Address>,
    /// Time in milliseconds without a control after which the car brakes by itself, 20 to 500
    /// [default: 30]
    #[arg(long, value_name = "MS")]
    control_timeout_ms: Option<u64>,
    /// Seed of the course [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Slope of the ground: metres of rise per metre east, -0.3 to 0.3 [default: 0]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    slope: Option<f64>,
    /// Effective share of the service brake, 0 to 1; below 1 it simulates a fault, for tests
    /// [default: 1]
    #[arg(long, value_name = "SHARE")]
    brake_share: Option<f64>,
    /// Address that serves /metrics for Prometheus [default: none]
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
}

/// Settings of a car's process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Address at which the guard listens for the machine.
    guard: Address,
    /// Time without a control after which the car brakes by itself.
    control_timeout_ms: u64,
    /// Seed of the course.
    seed: u64,
    /// Slope of the ground: metres of rise per metre east.
    slope: f64,
    /// Effective share of the service brake; below 1 it simulates a fault, for tests.
    brake_share: f64,
    /// Address that serves `/metrics`.
    metrics: Option<SocketAddr>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            guard: Address::Path("/run/tautline/machine.sock".into()),
            control_timeout_ms: 30,
            seed: 1,
            slope: 0.0,
            brake_share: 1.0,
            metrics: None,
        }
    }
}

/// Values for the car's metrics: of its state and of its controls. Those in an `AtomicU64` are the
/// bits of an `f64`.
#[derive(Debug, Default)]
struct Shown {
    speed: AtomicU64,
    odometer: AtomicU64,
    brake: AtomicU64,
    parking_brake: AtomicBool,
    hazard: AtomicBool,
}

/// Simulated car that also stores its state and controls for metrics.
struct ShownCar {
    car: SimulatedCar,
    shown: Arc<Shown>,
}

impl Car {
    /// Runs the car until the process is asked to end; without its process, the car stands.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut config: Config = load(self.config.as_deref())?;
        Folders::of(self.config.as_deref()).connect(config.guard.path_mut());
        set(&mut config.guard, self.guard);
        set(&mut config.control_timeout_ms, self.control_timeout_ms);
        set(&mut config.seed, self.seed);
        set(&mut config.slope, self.slope);
        set(&mut config.brake_share, self.brake_share);
        set(&mut config.metrics, self.metrics.map(Some));
        right(config.validate())?;
        let conditions = Conditions { slope: config.slope, brake_share: config.brake_share };
        let shown = Arc::new(Shown::default());
        let car = SimulatedCar::under(config.seed, conditions);
        let machine = ShownCar { car, shown: shown.clone() };
        let control_timeout = Duration::from_millis(config.control_timeout_ms);
        let settings = serve::Settings { control_timeout, ..serve::Settings::default() };
        let stop = Arc::new(AtomicBool::new(false));
        let mut driving = Thread::start("car", {
            let (guard, stop) = (config.guard.clone(), stop.clone());
            move || serve(machine, &guard, settings, Clock::start(), &stop)
        })?;
        realtime::lock_memory("the car");
        tracing::info!(guard = %config.guard, "the car stands at the start");
        let page = move || shown.page();
        let ended = tokio::select! {
            () = stop::asked() => Ok(()),
            failed = show(config.metrics, page) => failed,
            failed = driving.ended() => failed,
        };
        stop.store(true, Ordering::Relaxed);
        driving.join();
        ended
    }
}

impl Config {
    /// Checks every field.
    ///
    /// # Errors
    /// A line for each fault, with the name of its field and the bounds.
    pub(crate) fn validate(&self) -> anyhow::Result<()> {
        let mut faults = Faults::default();
        faults.of(control_timeout(self.control_timeout_ms).check());
        faults.of(Bounded::new("slope", self.slope, -0.3..=0.3).check());
        faults.of(Bounded::new("brake_share", self.brake_share, 0.0..=1.0).check());
        faults.finish()
    }
}

/// Returns the control timeout of a machine, with its bounds.
pub(crate) fn control_timeout(ms: u64) -> Bounded {
    Bounded::new("control_timeout_ms", ms as f64, 20.0..=500.0)
}

async fn show(
    address: Option<SocketAddr>,
    page: impl Fn() -> String + Clone + Send + Sync + 'static,
) -> anyhow::Result<()> {
    let Some(address) = address else { return std::future::pending().await };
    metrics::serve(address, metrics::routes("car", page.clone(), page)).await
}

impl Shown {
    fn page(&self) -> String {
        let number = |bits: &AtomicU64| f64::from_bits(bits.load(Ordering::Relaxed));
        let flag = |flag: &AtomicBool| f64::from(flag.load(Ordering::Relaxed));
        let other = |unit: &str| Some(Unit::Other(unit.to_owned()));
        let mut page = Page::new("tautline_car");
        page.gauge("speed", other("metres_per_second"), "Speed over ground", number(&self.speed));
        page.gauge("odometer", other("metres"), "Metres driven", number(&self.odometer));
        page.gauge("brake", other("ratio"), "Service brake as applied", number(&self.brake));
        let parking = flag(&self.parking_brake);
        page.gauge("parking_brake", None, "1 while the parking brake holds", parking);
        let hazard = flag(&self.hazard);
        page.gauge("hazard", None, "1 while the hazard lights blink", hazard);
        page.finish()
    }
}

impl Machine for ShownCar {
    fn period(&self) -> Duration {
        self.car.period()
    }

    fn state(&mut self, now: Instant) -> MachineState {
        let state = self.car.state(now);
        let show =
            |shown: &AtomicU64, number: f64| shown.store(number.to_bits(), Ordering::Relaxed);
        show(&self.shown.speed, state.speed.into());
        show(&self.shown.odometer, self.car.odometer());
        state
    }

    fn apply(&mut self, controls: &Controls, now: Instant) -> Result<(), Fault> {
        let shown = &self.shown;
        shown.brake.store(f64::from(controls.brake).to_bits(), Ordering::Relaxed);
        shown.parking_brake.store(controls.parking_brake, Ordering::Relaxed);
        let hazard = controls.signals.contains(tautline_guard::Signal::Hazard);
        shown.hazard.store(hazard, Ordering::Relaxed);
        self.car.apply(controls, now)
    }
}
