//! A lap of the test track under the guard, with delayed pictures and commands.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};
use tautline_guard::act::{Act, Deed};
use tautline_guard::frame::{Absences, Command, DeadMan, Proposal, Status, Troubles};
use tautline_guard::identity::{ActNumber, Console, Session, Tick};
use tautline_guard::{Config, Controls, Guard, Input, Machine, Mode};
use tautline_testtrack::{Autopilot, CarState, Course, SimulatedCar};
use tautline_units::{Duration, Instant};

/// Parameters of a lap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// The guard's settings.
    pub(super) config: Config,
    /// Delay added to the network's round trip, half of it in each direction.
    pub(super) added: Duration,
    /// Share of the mean delay by which the driver extrapolates a picture: 0 for not at all, 1 for
    /// all of it.
    pub(super) foresight: f64,
    /// Seed of the course and of the network.
    pub(super) seed: u64,
}

/// Results of a lap.
#[derive(Clone, Debug)]
pub(super) struct Lap {
    pub(super) cones_hit: u32,
    /// Number of cones on the course.
    pub(super) cones: usize,
    /// Metres driven along the course.
    pub(super) metres: f64,
    /// True if the lap was completed.
    pub(super) is_whole: bool,
    /// Simulated duration, from the start of the simulation to the end of the lap.
    pub(super) seconds: f64,
    /// Part of the duration with a wheel off the road.
    pub(super) seconds_off_road: f64,
    /// Number of times that the guard changed from a driving mode to another one.
    pub(super) stops: u32,
    /// Loop age while driving, as reported by the guard.
    pub(super) loop_age: Mean,
    /// Delay from capture to screen.
    pub(super) picture_delay: Mean,
    /// Delay from the console to the vehicle.
    pub(super) command_delay: Mean,
}

/// Mean of durations.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Mean {
    sum_ms: f64,
    count: u32,
}

/// A car, its guard, a remote driver, and the pictures and commands in transit.
struct Drive {
    car: SimulatedCar,
    guard: Guard,
    status: Option<Status>,
    /// Input for the guard's next step: the machine's newest state and the newest proposal; empty
    /// after each step.
    input: Input,
    person: Person,
    network: Network,
    /// Pictures with their display times.
    pictures: Vec<(Instant, Picture)>,
    /// Commands with their arrival times at the vehicle.
    commands: Vec<(Instant, Sent)>,
    /// Newest received command.
    newest: Option<Sent>,
    clock: Clock,
    lap: Lap,
    /// Last position of the car along the centre line, in m from the start line.
    distance: f64,
    /// The lap's metres and the time when it last got more than a metre further.
    came_on: (f64, Instant),
}

/// Content of a picture, with the mode displayed next to it.
#[derive(Clone, Copy, Debug)]
struct Picture {
    stamp: Tick,
    captured_at: Instant,
    car: CarState,
    mode: Mode,
}

/// One command in transit.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    command: Command,
    arm: Option<ActNumber>,
}

/// The driver, who uses only the newest displayed picture.
struct Person {
    pilot: Autopilot,
    /// Duration of the extrapolation.
    foresees: Duration,
    seen: Option<Picture>,
    sequence: u64,
    /// Newest request to arm, with the time of the request; `None` before the first.
    arm: Option<(ActNumber, Instant)>,
}

/// Delays in both directions.
struct Network {
    added_each_way: Duration,
    random: ChaCha8Rng,
}

/// Current time, and the due times of periodic events.
struct Clock {
    now: Instant,
    car: Instant,
    picture: Instant,
    command: Instant,
    guard: Instant,
}

impl Setting {
    /// Drives until the lap is complete, the car has not moved on for 20 s, or ten minutes have
    /// passed.
    pub(super) fn drive(&self) -> Lap {
        let mut drive = Drive::new(self);
        while !drive.is_over() {
            drive.step();
        }
        let Drive { lap, car, clock, .. } = drive;
        let seconds = clock.now.since(Instant::ZERO).as_secs_f64();
        Lap { cones_hit: car.world().cones_hit(), seconds, ..lap }
    }
}

impl Lap {
    fn of(course: &Course) -> Self {
        Self {
            cones_hit: 0,
            cones: course.cones().len(),
            metres: 0.0,
            is_whole: false,
            seconds: 0.0,
            seconds_off_road: 0.0,
            stops: 0,
            loop_age: Mean::default(),
            picture_delay: Mean::default(),
            command_delay: Mean::default(),
        }
    }
}

impl Mean {
    pub(super) fn add(&mut self, time: Duration) {
        self.sum_ms += time.as_secs_f64() * 1e3;
        self.count += 1;
    }

    /// Returns the overall mean of all samples in ms; NaN without any.
    pub(super) fn of(means: impl Iterator<Item = Self>) -> f64 {
        let sums = means.fold((0.0, 0), |(ms, count), mean| (ms + mean.sum_ms, count + mean.count));
        sums.0 / f64::from(sums.1)
    }
}

impl Drive {
    fn new(setting: &Setting) -> Self {
        let car = SimulatedCar::new(setting.seed);
        let (course, start) = (car.world().course(), car.world().car());
        let delay = PICTURE_DELAY + COMMAND_DELAY + setting.added;
        Self {
            guard: Guard::new(setting.config, Tick::new(1).expect("not 0")),
            status: None,
            input: Input::default(),
            person: Person {
                pilot: Autopilot::default(),
                foresees: delay.mul_f64(setting.foresight),
                seen: None,
                sequence: 0,
                arm: None,
            },
            network: Network {
                added_each_way: setting.added / 2,
                random: ChaCha8Rng::seed_from_u64(setting.seed),
            },
            pictures: Vec::new(),
            commands: Vec::new(),
            newest: None,
            clock: Clock::new(),
            lap: Lap::of(course),
            distance: course.nearest(start.x, start.y).distance,
            came_on: (0.0, Instant::ZERO),
            car,
        }
    }

    fn is_over(&self) -> bool {
        let is_stuck = self.clock.now.since(self.came_on.1) > STUCK;
        self.lap.is_whole || is_stuck || self.clock.now > LONGEST
    }

    /// Advances by one millisecond, and handles all that is due then: the car's state, a picture,
    /// the screen, a command and the guard.
    fn step(&mut self) {
        self.clock.now += MILLISECOND;
        let now = self.clock.now;
        if due(&mut self.clock.car, self.car.period(), now) {
            self.input.machine = Some(self.car.state(now));
        }
        if due(&mut self.clock.picture, PICTURE_INTERVAL, now) {
            self.follow();
            self.capture();
        }
        self.show();
        if due(&mut self.clock.command, COMMAND_INTERVAL, now) {
            let sent = self.person.command(self.car.world().course(), now);
            let delay = self.network.delay(COMMAND_DELAY);
            self.lap.command_delay.add(delay);
            self.commands.push((now + delay, sent));
        }
        if due(&mut self.clock.guard, GUARD_INTERVAL, now) {
            self.propose();
            self.run_guard();
        }
    }

    /// Adds the car's progress along the course since the last picture to the lap's metres, and
    /// updates the lap's completion, its time off the road, and the time of the last progress by
    /// more than a metre.
    fn follow(&mut self) {
        let (course, car) = (self.car.world().course(), self.car.world().car());
        let distance = course.nearest(car.x, car.y).distance;
        let step = distance - self.distance;
        // Use the shorter way around, so that the start line is not a jump.
        self.lap.metres += step - (step / course.length()).round() * course.length();
        self.distance = distance;
        self.lap.is_whole = self.lap.metres >= course.length();
        if car.on_grass {
            self.lap.seconds_off_road += PICTURE_INTERVAL.as_secs_f64();
        }
        if self.lap.metres > self.came_on.0 + 1.0 {
            self.came_on = (self.lap.metres, self.clock.now);
        }
    }

    fn capture(&mut self) {
        let Some(status) = &self.status else { return };
        let picture = Picture {
            stamp: status.tick,
            captured_at: self.clock.now,
            car: *self.car.world().car(),
            mode: status.mode,
        };
        let delay = self.network.delay(PICTURE_DELAY);
        if !self.network.random.random_bool(LOST) {
            self.lap.picture_delay.add(delay);
            self.pictures.push((self.clock.now + delay, picture));
        }
    }

    fn show(&mut self) {
        let now = self.clock.now;
        for (_, picture) in self.pictures.extract_if(.., |(shown_at, _)| *shown_at <= now) {
            // A picture overtaken by another is not displayed.
            if self.person.seen.is_none_or(|seen| seen.captured_at < picture.captured_at) {
                self.person.seen = Some(picture);
            }
        }
    }

    /// Receives the commands that have arrived, and puts the newest received one into the guard's
    /// next input: with its age, and with its request to arm until the guard has answered that.
    fn propose(&mut self) {
        let now = self.clock.now;
        for (_, sent) in self.commands.extract_if(.., |(comes_at, _)| *comes_at <= now) {
            if self.newest.is_none_or(|newest| newest.command.sequence < sent.command.sequence) {
                self.newest = Some(sent);
            }
        }
        let age = self.newest.map(|sent| now.since(sent.at));
        let answered = self.status.and_then(|status| status.answer).map(|answer| answer.number);
        let arm = self.newest.and_then(|sent| sent.arm).filter(|arm| answered < Some(*arm));
        self.input.proposal = Some(Proposal {
            source: now,
            session: Session::new(1),
            troubles: Troubles::NONE,
            command: self.newest.map(|sent| Command { age, ..sent.command }),
            emergency_stop: None,
            act: arm.map(|number| Act { console: CONSOLE, number, deed: Deed::Arm, age }),
        });
    }

    fn run_guard(&mut self) {
        let now = self.clock.now;
        let output = self.guard.step(&std::mem::take(&mut self.input), now);
        self.car.apply(&output.control.controls, now).expect("a simulated car takes all");
        let is_stop = output
            .transition
            .is_some_and(|transition| transition.from.is_driving() && !transition.to.is_driving());
        self.lap.stops += u32::from(is_stop);
        if let Some(age) = output.status.loop_age.filter(|_| output.status.mode.is_driving()) {
            self.lap.loop_age.add(age);
        }
        self.status = Some(output.status);
    }
}

impl Person {
    /// Returns the driver's current command, with the newest request to arm; a new one is made once
    /// the newest picture shows that the guard holds the car. Controls are neutral without a
    /// picture and in that mode; the throttle is 0 during a manoeuvre.
    fn command(&mut self, course: &Course, now: Instant) -> Sent {
        self.sequence += 1;
        let controls = match self.seen {
            None | Some(Picture { mode: Mode::Held, .. }) => Controls::default(),
            Some(Picture { mode, car, .. }) => {
                let asked = self.pilot.controls(course, &car.carried_on(self.foresees));
                let throttle = if mode == Mode::Manoeuvre { 0.0 } else { asked.throttle };
                Controls { throttle, ..asked }
            }
        };
        self.arm_if_held(now);
        let command = Command {
            sequence: self.sequence,
            console: CONSOLE,
            successor: None,
            controls,
            dead_man: DeadMan::Held,
            absences: Absences::NONE,
            cited: self.seen.map(|seen| seen.stamp),
            age: None,
        };
        Sent { at: now, command, arm: self.arm.map(|(number, _)| number) }
    }

    fn arm_if_held(&mut self, now: Instant) {
        let is_held = self.seen.is_some_and(|seen| seen.mode == Mode::Held);
        let is_waiting = self.arm.is_some_and(|(_, at)| now.since(at) < ARM_TIMEOUT);
        if is_held && !is_waiting {
            let last = self.arm.map_or(0, |(number, _)| number.get());
            self.arm = ActNumber::new(last + 1).map(|number| (number, now));
        }
    }
}

impl Network {
    /// Returns a random delay with mean `mean` plus the added delay.
    fn delay(&mut self, mean: Duration) -> Duration {
        let jitter: f64 = Exp1.sample(&mut self.random);
        self.added_each_way + (mean - JITTER) + JITTER.mul_f64(jitter)
    }
}

impl Clock {
    /// Creates a clock with different phases, so that not everything is due at once.
    fn new() -> Self {
        Self {
            now: Instant::ZERO,
            car: Instant::ZERO,
            picture: Instant::from_millis(4),
            command: Instant::from_millis(7),
            guard: Instant::from_millis(3),
        }
    }
}

/// Returns whether an event with period `interval` is due, and if so, advances its due time.
fn due(at: &mut Instant, interval: Duration, now: Instant) -> bool {
    let is_due = now >= *at;
    if is_due {
        *at += interval;
    }
    is_due
}

/// Mean delay from an event to its picture on the screen, from the paper.
pub(super) const PICTURE_DELAY: Duration = Duration::from_millis(90);
/// Mean delay of a command: half of the paper's round trip.
pub(super) const COMMAND_DELAY: Duration = Duration::from_millis(23);
/// Mean of the random part of each delay, which is exponentially distributed.
pub(super) const JITTER: Duration = Duration::from_millis(8);
/// Share of the pictures that arrive too late to be displayed: the paper's share of slices.
pub(super) const LOST: f64 = 0.05;
/// Time between two pictures of the paper's camera, which takes 60 per second.
const PICTURE_INTERVAL: Duration = Duration::from_nanos(16_666_667);
/// Command interval of the console.
const COMMAND_INTERVAL: Duration = Duration::from_millis(20);
const GUARD_INTERVAL: Duration = Duration::from_millis(10);
const MILLISECOND: Duration = Duration::from_millis(1);
/// Time until the driver tries again to arm.
const ARM_TIMEOUT: Duration = Duration::from_secs(1);
/// Time without progress by more than a metre after which the car counts as stuck, and the lap
/// ends.
const STUCK: Duration = Duration::from_secs(20);
const LONGEST: Instant = Instant::from_millis(600_000);
const CONSOLE: Console = match Console::new(0xC0) {
    Some(console) => console,
    None => panic!("not 0"),
};
