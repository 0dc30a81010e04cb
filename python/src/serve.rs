//! A machine of Python's behind the guard: frames on a thread of their own, which never waits for
//! Python.

use std::io::Read;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

use pyo3::exceptions::{PyException, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use tautline_guard::Mode;
use tautline_net::clock::Clock;
use tautline_net::datagram::Address;
use tautline_port::detached::{Done, Next, Turn, Worker, detached};
use tautline_port::serve::Settings;
use tautline_port::watchdog::{self, Watchdog};

use crate::describe::{Description, Names};
use crate::file;
use crate::log::{Line, Lines};
use crate::safe::Safe;
use crate::state::State;
use crate::stop::Stop;

/// Serves a machine to the guard until `stop` is set and it stands. Calls on this thread: `request`
/// with the name of an action, for whether the machine does it; `turn` with the fields of a
/// control, for a state; `failed` with an exception of them, and `log` with level and text.
#[pyfunction]
#[pyo3(signature = (description, request, turn, failed, log, guard, safe, watchdog, settings, stop, signals))]
#[expect(clippy::too_many_arguments, reason = "only the package itself calls it")]
pub(crate) fn serve(
    py: Python<'_>,
    description: Description,
    request: Bound<'_, PyAny>,
    turn: Bound<'_, PyAny>,
    failed: Bound<'_, PyAny>,
    log: Bound<'_, PyAny>,
    guard: &str,
    safe: Vec<PyRef<'_, Safe>>,
    watchdog: Option<Vec<String>>,
    settings: (f64, f32, f32, f32),
    stop: &Stop,
    signals: Option<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let items = description.items()?;
    let names = Names::of(&items);
    let guard: Address = guard.parse().map_err(|it| PyValueError::new_err(format!("{it}")))?;
    let (control_timeout, brake, deceleration, yaw_deceleration) = settings;
    let control_timeout = Duration::try_from_secs_f64(control_timeout)
        .map_err(|_| PyValueError::new_err("control_timeout: seconds"))?;
    let settings = Settings { control_timeout, brake, deceleration, yaw_deceleration };
    let opened = safe.iter().map(|safe| {
        let opened = safe.open();
        opened.map_err(|error| PyOSError::new_err(format!("{}: {error}", **safe)))
    });
    let opened = opened.collect::<PyResult<Vec<_>>>()?;
    let (lines, read) = Lines::new();
    let dispatch = tracing::Dispatch::new(lines);
    let watchdog = watchdog.filter(|_| !opened.is_empty()).map(|command| {
        let started = py.detach(|| Watchdog::start(self::command(&command), &opened));
        started.map_err(|error| PyOSError::new_err(format!("the watchdog's process: {error}")))
    });
    let (machine, worker) = detached(items, opened, watchdog.transpose()?);
    let heard = signals.map(|set_wakeup| Signals::hear(&set_wakeup, stop)).transpose()?;
    let frames = std::thread::Builder::new().name("tautline frames".to_owned()).spawn({
        let stop = stop.clone();
        move || {
            tracing::dispatcher::with_default(&dispatch, || {
                tautline_port::serve(machine, &guard, settings, Clock::start(), stop.flag());
            });
        }
    })?;
    let calls = Calls { names, request, turn, failed, log, read, stop: stop.clone() };
    let ended = calls.run(py, worker);
    let has_panicked = py.detach(|| frames.join()).is_err();
    if let Some(heard) = heard {
        heard.end(py)?;
    }
    ended?;
    match has_panicked {
        true => Err(PyRuntimeError::new_err("the thread of the frames has failed")),
        false => Ok(()),
    }
}

/// Runs the watchdog's process: its end of the socket is standard input.
#[pyfunction]
pub(crate) fn keep_watch(py: Python<'_>) -> PyResult<()> {
    let channel = file::duplicate(0)?;
    py.detach(|| watchdog::run(channel));
    Ok(())
}

fn command(words: &[String]) -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(words.first().map_or("", String::as_str));
    command.args(words.iter().skip(1));
    // Ctrl-C in a terminal must not end it.
    command.process_group(0);
    command
}

/// Python's functions, and what their thread needs.
struct Calls<'py> {
    names: Names,
    request: Bound<'py, PyAny>,
    turn: Bound<'py, PyAny>,
    failed: Bound<'py, PyAny>,
    log: Bound<'py, PyAny>,
    read: Receiver<Line>,
    stop: Stop,
}

impl Calls<'_> {
    /// Takes turns until the frames are no longer served. A `KeyboardInterrupt` or `SystemExit`
    /// stops the machine first, and is returned at the end.
    fn run(&self, py: Python<'_>, mut worker: Worker) -> PyResult<()> {
        let mut ended = Ok(());
        let mut end = |error: PyErr| {
            self.stop.request();
            if ended.is_ok() {
                ended = Err(error);
            }
        };
        let is_failure = |error: &PyErr| error.is_instance_of::<PyException>(py);
        loop {
            let told = match py.detach(|| worker.next(WAIT_MAX)) {
                Next::Turn(turn) => {
                    let called = self.call(&turn).or_else(|error| match is_failure(&error) {
                        true => Err(error),
                        // Ctrl-C has interrupted the call, and the machine still moves.
                        false => {
                            end(error);
                            self.call(&turn)
                        }
                    });
                    match called {
                        Ok(done) => {
                            worker.finish(Some(done));
                            Ok(())
                        }
                        Err(error) => {
                            worker.finish(None);
                            Err(error)
                        }
                    }
                }
                Next::Nothing => py.check_signals(),
                Next::Over => break,
            };
            let told = told.or_else(|error| match is_failure(&error) {
                true => self.failed.call1((error,)).map(drop),
                false => Err(error),
            });
            if let Err(error) = told.and_then(|()| self.tell()) {
                end(error);
            }
        }
        ended
    }

    fn call(&self, turn: &Turn) -> PyResult<Done> {
        let Turn { controls, mode, request, .. } = turn;
        let asked = request.and_then(|action| self.names.actions.get(usize::from(action)));
        let is_accepted = match asked {
            Some(action) => self.request.call1((action,))?.is_truthy()?,
            None => false,
        };
        let twist = controls.twist;
        let state = self.turn.call1((
            mode_name(*mode),
            (controls.steering, controls.throttle, controls.brake),
            controls.gear == tautline_guard::Gear::Reverse,
            controls.parking_brake,
            (twist.forward, twist.sideways, twist.yaw_rate),
            self.names.set_points(&controls.axes),
            self.names.of_actions(controls.actions),
        ))?;
        state.extract::<State<'_>>()?.read(&self.names, is_accepted)
    }

    fn tell(&self) -> PyResult<()> {
        self.read.try_iter().try_for_each(|line| self.log.call1(line).map(drop))
    }
}

fn mode_name(mode: Option<Mode>) -> &'static str {
    match mode {
        None => "alone",
        Some(Mode::Held) => "held",
        Some(Mode::Armed) => "armed",
        Some(Mode::Driving) => "driving",
        Some(Mode::Limited) => "limited",
        Some(Mode::Manoeuvre) => "manoeuvre",
    }
}

/// Requests the stop at a signal, even while Python is busy: its handler in C writes the signal's
/// number into a socket, which this thread reads.
struct Signals<'py> {
    set_wakeup: Bound<'py, PyAny>,
    theirs: UnixStream,
    before: RawFd,
    reading: JoinHandle<()>,
}

impl<'py> Signals<'py> {
    fn hear(set_wakeup: &Bound<'py, PyAny>, stop: &Stop) -> PyResult<Self> {
        let (mut ours, theirs) = UnixStream::pair()?;
        theirs.set_nonblocking(true)?;
        let stop = stop.clone();
        let reading =
            std::thread::Builder::new().name("tautline signals".to_owned()).spawn(move || {
                let mut number = [0];
                while ours.read_exact(&mut number).is_ok() {
                    if [SIGINT, SIGTERM].contains(&number[0]) {
                        stop.request();
                    }
                }
            })?;
        let before = set_wakeup.call1((theirs.as_raw_fd(),))?.extract()?;
        Ok(Self { set_wakeup: set_wakeup.clone(), theirs, before, reading })
    }

    fn end(self, py: Python<'_>) -> PyResult<()> {
        let Self { set_wakeup, theirs, before, reading } = self;
        set_wakeup.call1((before,))?;
        drop(theirs);
        // It cannot panic.
        let _ = py.detach(|| reading.join());
        Ok(())
    }
}

/// Maximum wait for a turn, after which Python's signals are looked at.
const WAIT_MAX: Duration = Duration::from_millis(50);
const SIGINT: u8 = 2;
const SIGTERM: u8 = 15;
