//! A console in a program: it joins a running `tautline operator` as a page does, under the same
//! rules (decision 90).

mod address;
mod chain;
mod clock;
#[allow(dead_code, reason = "a program does not use them all")]
mod kinds;
mod link;
mod pictures;
mod shared;
pub(crate) mod status;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyConnectionError, PyPermissionError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict};
use tautline_guard::act::Outcome;
use tautline_guard::frame::DeadMan;
use tautline_guard::{Gear, Twist};
use tautline_message::{Command, Deed};
use tautline_net::clock::Clock;
use tautline_net::random;
use tautline_units::Instant;

use self::address::{Address, Failure};
use self::kinds::to_operator;
use self::link::Link;
use self::pictures::{Slices, Whole};
use self::shared::{Shared, State};
use crate::describe::Names;
use crate::names::name_of;

/// A console, connected to the operator's process.
#[pyclass(module = "tautline._tautline", frozen)]
#[derive(Debug)]
pub(crate) struct Console(Arc<Shared>);

/// A picture from the vehicle.
#[pyclass(module = "tautline._tautline", frozen)]
#[derive(Debug)]
pub(crate) struct Shown {
    whole: Arc<Whole>,
    clock: Clock,
    /// Unix time of the capture by this program's clock; `None` if unknown.
    captured: Option<Instant>,
}

/// Fields of Python's `Operator.drive`.
#[derive(FromPyObject)]
pub(crate) struct Wanted {
    steering: f32,
    throttle: f32,
    brake: f32,
    is_reverse: bool,
    forward: f32,
    sideways: f32,
    yaw_rate: f32,
    axes: Vec<(String, f32)>,
    actions: Vec<String>,
    dead_man: bool,
}

#[pymethods]
impl Console {
    /// Opens a console at a printed address, within `timeout` seconds.
    #[staticmethod]
    fn open(py: Python<'_>, address: &str, picture_interval: u8, timeout: f64) -> PyResult<Self> {
        let address: Address = address.parse().map_err(PyValueError::new_err)?;
        let wait = seconds(timeout)?;
        let seed = random::seed().map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let console = u64::from_be_bytes(*seed.first_chunk().expect("a seed is longer")) | 1;
        let shared = Arc::new(Shared::new(console, Clock::start())?);
        py.detach(|| open(&address, &shared, picture_interval, wait))?;
        Ok(Self(shared))
    }

    /// Ends the connection; the operator's process then counts this console as gone.
    fn close(&self) {
        self.0.want(|state| state.is_closing = true);
    }

    /// Returns why the connection has ended; `None` while it is open.
    fn ended(&self) -> Option<String> {
        self.0.lock().ended.clone()
    }

    /// Returns the next whole picture that was not taken; `None` if none came within `wait`
    /// seconds.
    fn picture(&self, py: Python<'_>, wait: f64) -> PyResult<Option<Shown>> {
        let shared = &self.0;
        let taken = self.wait(py, wait, |state| {
            let whole = state.picture.take()?;
            let captured = whole.captured.zip(state.offset.nanos());
            let captured = captured.map(|(at, nanos)| at.offset_by_nanos(-nanos));
            Some(Shown { whole, clock: shared.clock, captured })
        })?;
        Ok(taken)
    }

    /// Waits until something has changed since `version`, at most `wait` seconds; returns the
    /// newest version.
    fn changed(&self, py: Python<'_>, version: u64, wait: f64) -> PyResult<u64> {
        let look = |state: &mut State| (state.version != version).then_some(state.version);
        Ok(self.wait(py, wait, look)?.unwrap_or(version))
    }

    /// Sends a driving command that cites a picture.
    fn drive(&self, picture: &Shown, wanted: Wanted) -> PyResult<()> {
        let command = self.command(picture, &wanted)?;
        self.open_only()?;
        let drives = self.0.want(|state| {
            let wants = &mut state.wants;
            (wants.cited, wants.dead_man) = (command.cited, command.dead_man);
            if wants.stop.is_none() {
                (wants.drive, wants.is_unsent) = (Some((command, self.0.clock.now())), true);
            }
            state.drives()
        });
        match drives {
            true => Ok(()),
            false => Err(PyPermissionError::new_err("this console does not drive")),
        }
    }

    /// Asks the guard for an act that cites a picture, if there is one, and waits for its answer at
    /// most `wait` seconds: "done" or what prevents it; `None` without an answer.
    #[pyo3(signature = (deed, argument, picture, dead_man, wait))]
    fn act(
        &self,
        py: Python<'_>,
        deed: &str,
        argument: u32,
        picture: Option<&Shown>,
        dead_man: Option<bool>,
        wait: f64,
    ) -> PyResult<Option<String>> {
        let all = [Deed::Arm, Deed::Reset, Deed::Park, Deed::TakeOver, Deed::Request];
        let deed = crate::names::named(&all, deed, "act")?;
        self.open_only()?;
        let number = self.0.want(|state| {
            let wants = &mut state.wants;
            if wants.act.is_some() {
                return Err("another act has no answer yet");
            }
            if wants.stop.is_some() {
                return Err("an emergency stop has no answer yet");
            }
            if let Some(picture) = picture {
                wants.cited = picture.whole.tick;
            }
            if let Some(is_held) = dead_man {
                wants.dead_man = self::dead_man(is_held);
            }
            wants.is_unsent = true;
            Ok(wants.begin(deed, argument))
        });
        let number = number.map_err(PyRuntimeError::new_err)?;
        let answered = self.wait(py, wait, |state| {
            let is_ours = state.wants.act_count == number;
            let is_over = state.wants.act.is_none() || !is_ours;
            is_over.then(|| state.wants.outcome.filter(|_| is_ours))
        });
        self.0.want(|state| state.wants.act.take_if(|act| act.number == number));
        Ok(answered?.flatten().map(|outcome| match outcome {
            Outcome::Done => "done".to_owned(),
            Outcome::Refused(blocker) => name_of(&blocker),
        }))
    }

    /// Requests an emergency stop, until the guard has acknowledged it; returns whether it has
    /// within `wait` seconds.
    fn emergency_stop(&self, py: Python<'_>, wait: f64) -> PyResult<bool> {
        self.open_only()?;
        self.0.want(|state| {
            state.wants.stop();
            state.wants.is_unsent = true;
        });
        let is_done = self.wait(py, wait, |state| state.wants.stop.is_none().then_some(()))?;
        Ok(is_done.is_some())
    }

    /// Asks to drive, or withdraws that.
    fn ask(&self, asks: bool) -> PyResult<()> {
        self.say(to_operator::ASK, &[asks.into()])
    }

    /// Answers another console's request to drive.
    fn answer(&self, request: u32, agrees: bool) -> PyResult<()> {
        let [a, b, c, d] = request.to_be_bytes();
        self.say(to_operator::ANSWER, &[a, b, c, d, agrees.into()])
    }

    /// Picks a vehicle by its name.
    fn pick(&self, vehicle: &str) -> PyResult<()> {
        self.say(to_operator::PICK, vehicle.as_bytes())
    }

    /// Releases the vehicle.
    fn leave(&self) -> PyResult<()> {
        self.say(to_operator::LEAVE, &[])
    }

    /// Returns the role of this console, and vehicle, standing and fleet (JSON); empty before they
    /// are known.
    fn standing(&self) -> (String, String, String, String) {
        let State { role, vehicle, standing, fleet, .. } = &*self.0.lock();
        (role.clone(), vehicle.clone(), standing.clone(), fleet.clone())
    }

    /// Returns how often the driving console has refused this one.
    fn refusals(&self) -> u64 {
        self.0.lock().refusals
    }

    /// Returns the newest telemetry as keyword arguments of Python's `Status`; `None` before the
    /// first, and while the guard is silent.
    fn status<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let state = self.0.lock();
        let told = state.telemetry.clone();
        let (description, values) = (state.description.clone(), state.values.clone());
        drop(state);
        let Some((telemetry, at)) = told else { return Ok(None) };
        let unix = self.0.clock.unix_nanos(at);
        status::status(py, &telemetry, unix, description.as_ref(), values.as_ref(), self.0.console)
    }

    /// Returns the machine's description as keyword arguments of its items; `None` if it declares
    /// nothing, or before that is known.
    fn description<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let description = self.0.lock().description.clone();
        description.map(|description| status::description(py, &description)).transpose()
    }

    /// Returns the counts of what was taken and left out.
    fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = self.0.lock().counts;
        let taken = [("picture", counts.pictures), ("command sent", counts.commands)];
        taken.into_iter().chain(self.0.drops()).collect()
    }

    /// Returns this program's Unix time in nanoseconds, which never steps back.
    fn now(&self) -> u64 {
        self.0.clock.unix_nanos(self.0.clock.now())
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.close();
    }
}

impl Console {
    /// Waits until `look` returns a value, at most `wait` seconds; `None` then, and at the end of
    /// the connection.
    fn wait<T: Send>(
        &self,
        py: Python<'_>,
        wait: f64,
        mut look: impl FnMut(&mut State) -> Option<T> + Send,
    ) -> PyResult<Option<T>> {
        let shared = &self.0;
        let deadline = shared.clock.now() + seconds(wait)?;
        loop {
            let left = deadline.since(shared.clock.now());
            let waited = py.detach(|| {
                shared.wait(left.min(SIGNALS_EVERY), |state| {
                    let found = look(state).map(Some);
                    found.or_else(|| state.ended.is_some().then_some(None))
                })
            });
            py.check_signals()?;
            match waited {
                Some(found) => return Ok(found),
                None if left <= SIGNALS_EVERY => return Ok(None),
                None => {}
            }
        }
    }

    fn open_only(&self) -> PyResult<()> {
        match &self.0.lock().ended {
            Some(why) => Err(PyConnectionError::new_err(why.clone())),
            None => Ok(()),
        }
    }

    fn say(&self, kind: u8, body: &[u8]) -> PyResult<()> {
        self.open_only()?;
        let has_room = self.0.want(|state| state.wants.say(wire::tagged(kind, body)));
        let full = || PyConnectionError::new_err("too many messages wait to be sent");
        has_room.then_some(()).ok_or_else(full)
    }

    /// Returns the command, refused as the operator's process would.
    fn command(&self, picture: &Shown, wanted: &Wanted) -> PyResult<Command> {
        let state = self.0.lock();
        let items = state.description.as_ref().map(status::items).unwrap_or_default();
        drop(state);
        let names = Names::of(&items);
        let Wanted { steering, throttle, brake, forward, sideways, yaw_rate, .. } = *wanted;
        let command = Command {
            steering,
            throttle,
            brake,
            gear: if wanted.is_reverse { Gear::Reverse } else { Gear::Drive },
            twist: Twist { forward, sideways, yaw_rate },
            axes: names.axes(&wanted.axes)?,
            actions: names.actions(&wanted.actions)?,
            cited: picture.whole.tick,
            dead_man: dead_man(wanted.dead_man),
            ..Command::default()
        };
        let checked = Command::decode(&command.encode());
        checked.map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

#[pymethods]
impl Shown {
    /// Returns width and height in pixels.
    #[getter]
    fn size(&self) -> (usize, usize) {
        (self.whole.format.width, self.whole.format.height)
    }

    /// Returns the picture's number, as counted by the vehicle's camera.
    #[getter]
    fn number(&self) -> u32 {
        self.whole.number
    }

    /// Returns the guard's tick of the oldest content in the picture; 0 if it has none.
    #[getter]
    fn tick(&self) -> u32 {
        self.whole.tick
    }

    /// Returns whether every strip is as its encoder has it.
    #[getter]
    fn is_clean(&self) -> bool {
        self.whole.is_clean
    }

    /// Returns the Unix time of the capture of its oldest content, in nanoseconds by this
    /// computer's clock; `None` if unknown.
    #[getter]
    fn captured_ns(&self) -> Option<u64> {
        self.captured.map(Instant::as_nanos)
    }

    /// Returns the time since that capture in seconds; `None` if unknown.
    #[getter]
    fn age(&self) -> Option<f64> {
        let now = Instant::from_nanos(self.clock.unix_nanos(self.clock.now()));
        self.captured.map(|captured| now.since(captured).as_secs_f64())
    }

    /// Returns the pixels: rows of red, green and blue, a byte each.
    fn rgb<'py>(&self, py: Python<'py>) -> Bound<'py, PyByteArray> {
        let rgb = py.detach(|| {
            let mut rgb = vec![0; self.whole.format.width * self.whole.format.height * 3];
            self.whole.write_rgb(&mut rgb);
            rgb
        });
        PyByteArray::new(py, &rgb)
    }
}

/// Opens the connection, starts its threads, and waits for the operator's clock and this console's
/// role.
fn open(
    address: &Address,
    shared: &Arc<Shared>,
    picture_interval: u8,
    wait: Duration,
) -> PyResult<()> {
    let deadline = shared.clock.now() + wait;
    let opened = address.open(shared.console, &shared.clock, deadline);
    let socket = opened.map_err(|failure| match failure {
        Failure::Refused(why) => PyPermissionError::new_err(why),
        Failure::Lost(why) => PyConnectionError::new_err(why),
    })?;
    let slices = Slices::start(shared.losses.clone(), shared.clock, {
        let shared = Arc::downgrade(shared);
        move |whole| {
            let Some(shared) = shared.upgrade() else { return };
            shared.change(|state| {
                state.counts.pictures += 1;
                if state.picture.replace(Arc::new(whole)).is_some() {
                    state.counts.superseded += 1;
                }
            });
        }
    })?;
    let link = Link::new(socket, shared.clone(), slices, picture_interval)?;
    let thread = std::thread::Builder::new().name("tautline console".to_owned());
    thread.spawn(move || link.run())?;
    let left = deadline.since(shared.clock.now());
    let known = shared.wait(left, |state| {
        let is_known = !state.role.is_empty() && state.offset.nanos().is_some();
        (is_known || state.ended.is_some()).then(|| state.ended.clone())
    });
    match known {
        Some(None) => Ok(()),
        Some(Some(why)) => Err(PyConnectionError::new_err(why)),
        None => {
            shared.want(|state| state.is_closing = true);
            Err(PyConnectionError::new_err("the operator's process does not answer in time"))
        }
    }
}

fn seconds(wait: f64) -> PyResult<Duration> {
    let wait = Duration::try_from_secs_f64(wait);
    let wait = wait.map_err(|_| PyValueError::new_err("a timeout is a number of seconds"))?;
    Ok(wait.min(WAIT_MAX))
}

fn dead_man(is_held: bool) -> DeadMan {
    if is_held { DeadMan::Held } else { DeadMan::Absent }
}

/// Longest time without a look at Python's signals.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);
/// Longest wait; a longer one could overflow the clock.
const WAIT_MAX: Duration = Duration::from_secs(1_000_000);
