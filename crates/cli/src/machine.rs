//! `tautline machine`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use tautline_guard::description::{Action, Item, Reading};
use tautline_guard::{Controls, Fault, Machine, MachineState};
use tautline_net::clock::Clock;
use tautline_net::datagram::Address;
use tautline_net::metrics::{self, Page, Unit};
use tautline_net::realtime;
use tautline_net::settings::Faults;
use tautline_port::serve;
use tautline_testtrack::{Conditions, Kind, SimulatedCar, SimulatedRobot};
use tautline_units::{Bounded, Instant};
use tautline_vehicle::SimulatedMachine;

use crate::folders::Folders;
use crate::settings::{load, right, set};
use crate::stop;
use crate::thread::Thread;

/// Run a simulated machine of the test track behind the guard's port, like any other machine.
///
/// The machine continues with the last control until the guard has been silent for too long, and
/// then brakes by itself. Every flag can also be set in the TOML file under the same name, with _
/// for -.
#[derive(Debug, Args)]
pub(crate) struct Simulated {
    /// TOML file with any of these settings; flags and environment variables override it
    #[arg(long, env = "TAUTLINE_CONFIG")]
    config: Option<PathBuf>,
    /// Kind of the machine: car, robot on two wheels, rover on tracks, or cart on mecanum wheels
    /// [default: car]
    #[arg(long, value_name = "KIND")]
    kind: Option<SimulatedMachine>,
    /// Address at which the guard listens for the machine: a path, or address:port for UDP
    /// [default: /run/tautline/machine.sock]
    #[arg(long, value_name = "ADDRESS")]
    guard: Option<Address>,
    /// Time in milliseconds without a control after which the machine brakes by itself, 20 to 500
    /// [default: 30]
    #[arg(long, value_name = "MS")]
    control_timeout_ms: Option<u64>,
    /// Seed of the course [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Slope of the ground: metres of rise per metre east, -0.3 to 0.3 [default: 0]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    slope: Option<f64>,
    /// Effective share of the service brake, or of the deceleration of a robot's drive, 0 to 1;
    /// below 1 it simulates a fault, for tests [default: 1]
    #[arg(long, value_name = "SHARE")]
    brake_share: Option<f64>,
    /// Share of a turn that a robot's wheels or tracks lose by slip, 0 to 0.6 [default: 0, 0.3 of a
    /// rover, 0.05 of a cart]
    #[arg(long, value_name = "SHARE")]
    slip: Option<f64>,
    /// Largest noise of the speeds that a robot reports, in m/s and rad/s, 0 to 0.1 [default: 0]
    #[arg(long, value_name = "M_PER_S")]
    noise: Option<f64>,
    /// Address that serves /metrics for Prometheus [default: none]
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
}

/// Settings of a simulated machine's process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Kind of the machine.
    kind: SimulatedMachine,
    /// Address at which the guard listens for the machine.
    guard: Address,
    /// Time without a control after which the machine brakes by itself.
    control_timeout_ms: u64,
    /// Seed of the course.
    seed: u64,
    /// Slope of the ground: metres of rise per metre east.
    slope: f64,
    /// Effective share of the service brake, or of the deceleration of a robot's drive; below 1 it
    /// simulates a fault, for tests.
    brake_share: f64,
    /// Share of a turn that a robot's wheels or tracks lose by slip.
    slip: Option<f64>,
    /// Largest noise of the speeds that a robot reports, in m/s and rad/s.
    noise: f64,
    /// Address that serves `/metrics`.
    metrics: Option<SocketAddr>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            kind: SimulatedMachine::default(),
            guard: Address::Path("/run/tautline/machine.sock".into()),
            control_timeout_ms: 30,
            seed: 1,
            slope: 0.0,
            brake_share: 1.0,
            slip: None,
            noise: 0.0,
            metrics: None,
        }
    }
}

/// Values for the machine's metrics: of its state and of its controls. Those in an `AtomicU64` are
/// the bits of an `f64`.
#[derive(Debug, Default)]
struct Shown {
    speed: AtomicU64,
    sideways_speed: AtomicU64,
    yaw_rate: AtomicU64,
    turned: AtomicU64,
    odometer: AtomicU64,
    brake: AtomicU64,
    parking_brake: AtomicBool,
    hazard: AtomicBool,
}

/// Simulated machine that also stores its state and controls for metrics.
struct Watched {
    machine: SomeMachine,
    shown: Arc<Shown>,
    /// Radians turned, to either side.
    turned: f64,
    /// Time of the newest state; `None` before the first.
    seen_at: Option<Instant>,
}

/// A simulated machine of any kind.
enum SomeMachine {
    Car(Box<SimulatedCar>),
    Robot(Box<SimulatedRobot>),
}

impl Simulated {
    /// Runs the machine until the process is asked to end; without its process, it stands.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut config: Config = load(self.config.as_deref())?;
        Folders::of(self.config.as_deref()).connect(config.guard.path_mut());
        set(&mut config.kind, self.kind);
        set(&mut config.guard, self.guard);
        set(&mut config.control_timeout_ms, self.control_timeout_ms);
        set(&mut config.seed, self.seed);
        set(&mut config.slope, self.slope);
        set(&mut config.brake_share, self.brake_share);
        set(&mut config.slip, self.slip.map(Some));
        set(&mut config.noise, self.noise);
        set(&mut config.metrics, self.metrics.map(Some));
        right(config.validate())?;
        let shown = Arc::new(Shown::default());
        let machine = Watched::new(config.machine(), shown.clone());
        let control_timeout = Duration::from_millis(config.control_timeout_ms);
        let settings = serve::Settings { control_timeout, ..serve::Settings::default() };
        let stop = Arc::new(AtomicBool::new(false));
        let mut driving = Thread::start("machine", {
            let (guard, stop) = (config.guard.clone(), stop.clone());
            move || serve(machine, &guard, settings, Clock::start(), &stop)
        })?;
        realtime::lock_memory("the machine");
        tracing::info!(guard = %config.guard, kind = %config.kind, "the machine stands at the start");
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
    /// Returns the machine at rest at the start of the course.
    fn machine(&self) -> SomeMachine {
        let conditions = Conditions {
            slope: self.slope,
            brake_share: self.brake_share,
            slip: self.slip,
            noise: self.noise,
        };
        match kind(self.kind) {
            Kind::Car => SomeMachine::Car(SimulatedCar::under(self.seed, conditions).into()),
            twisted @ (Kind::Robot | Kind::Rover | Kind::Cart) => {
                SomeMachine::Robot(SimulatedRobot::new(twisted, self.seed, conditions).into())
            }
        }
    }

    /// Checks every field.
    ///
    /// # Errors
    /// A line for each fault, with the name of its field and the bounds.
    pub(crate) fn validate(&self) -> anyhow::Result<()> {
        let mut faults = Faults::default();
        faults.of(control_timeout(self.control_timeout_ms).check());
        faults.of(Bounded::new("slope", self.slope, -0.3..=0.3).check());
        faults.of(Bounded::new("brake_share", self.brake_share, 0.0..=1.0).check());
        faults.of(Bounded::new("slip", self.slip.unwrap_or_default(), 0.0..=0.6).check());
        faults.of(Bounded::new("noise", self.noise, 0.0..=0.1).check());
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
    metrics::serve(address, metrics::routes("machine", page.clone(), page)).await
}

impl Shown {
    fn page(&self) -> String {
        let number = |bits: &AtomicU64| f64::from_bits(bits.load(Ordering::Relaxed));
        let flag = |flag: &AtomicBool| f64::from(flag.load(Ordering::Relaxed));
        let other = |unit: &str| Some(Unit::Other(unit.to_owned()));
        let mut page = Page::new("tautline_machine");
        page.gauge("speed", other("metres_per_second"), "Speed over ground", number(&self.speed));
        let sideways = number(&self.sideways_speed);
        page.gauge("sideways_speed", other("metres_per_second"), "Speed to the left", sideways);
        let yaw_rate = number(&self.yaw_rate);
        page.gauge("yaw_rate", other("radians_per_second"), "Turn to the left", yaw_rate);
        let turned = number(&self.turned);
        page.gauge("turned", other("radians"), "Radians turned, to either side", turned);
        page.gauge("odometer", other("metres"), "Metres driven", number(&self.odometer));
        page.gauge("brake", other("ratio"), "Service brake as applied", number(&self.brake));
        let parking = flag(&self.parking_brake);
        page.gauge("parking_brake", None, "1 while the parking brake holds", parking);
        let hazard = flag(&self.hazard);
        page.gauge("hazard", None, "1 while the hazard lights blink", hazard);
        page.finish()
    }
}

impl SomeMachine {
    fn odometer(&self) -> f64 {
        match self {
            Self::Car(car) => car.odometer(),
            Self::Robot(robot) => robot.odometer(),
        }
    }

    fn as_machine(&mut self) -> &mut dyn Machine {
        match self {
            Self::Car(car) => &mut **car,
            Self::Robot(robot) => &mut **robot,
        }
    }
}

impl Watched {
    fn new(machine: SomeMachine, shown: Arc<Shown>) -> Self {
        Self { machine, shown, turned: 0.0, seen_at: None }
    }
}

impl Machine for Watched {
    fn period(&self) -> Duration {
        match &self.machine {
            SomeMachine::Car(car) => car.period(),
            SomeMachine::Robot(robot) => robot.period(),
        }
    }

    fn state(&mut self, now: Instant) -> MachineState {
        let state = self.machine.as_machine().state(now);
        let passed = self.seen_at.replace(now).map_or(Duration::ZERO, |seen_at| now.since(seen_at));
        self.turned += f64::from(state.yaw_rate.abs()) * passed.as_secs_f64();
        let show =
            |shown: &AtomicU64, number: f64| shown.store(number.to_bits(), Ordering::Relaxed);
        show(&self.shown.speed, state.speed.into());
        show(&self.shown.sideways_speed, state.sideways_speed.into());
        show(&self.shown.yaw_rate, state.yaw_rate.into());
        show(&self.shown.turned, self.turned);
        show(&self.shown.odometer, self.machine.odometer());
        state
    }

    fn description(&self) -> &[Item] {
        match &self.machine {
            SomeMachine::Car(car) => car.description(),
            SomeMachine::Robot(robot) => robot.description(),
        }
    }

    fn request(&mut self, action: u8, now: Instant) -> Option<bool> {
        self.machine.as_machine().request(action, now)
    }

    fn reading(&mut self, now: Instant) -> Option<(u8, Reading)> {
        self.machine.as_machine().reading(now)
    }

    fn apply(&mut self, controls: &Controls, now: Instant) -> Result<(), Fault> {
        let shown = &self.shown;
        shown.brake.store(f64::from(controls.brake).to_bits(), Ordering::Relaxed);
        shown.parking_brake.store(controls.parking_brake, Ordering::Relaxed);
        let hazard = controls.actions.contains(Action::HAZARD);
        shown.hazard.store(hazard, Ordering::Relaxed);
        self.machine.as_machine().apply(controls, now)
    }
}

/// Returns the test track's machine for a setting.
pub(crate) fn kind(machine: SimulatedMachine) -> Kind {
    match machine {
        SimulatedMachine::Car => Kind::Car,
        SimulatedMachine::Robot => Kind::Robot,
        SimulatedMachine::Rover => Kind::Rover,
        SimulatedMachine::Cart => Kind::Cart,
    }
}
