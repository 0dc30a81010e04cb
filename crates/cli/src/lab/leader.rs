//! `tautline lab leader`: three real processes, of which one acts, under injected faults.

use std::collections::{BTreeMap, VecDeque};
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use tautline_lab::quorum::{Config, Kept, Member};
use tautline_net::clock::Clock;
use tautline_net::file;
use tautline_units::Instant;

/// Run three redundant steering processes, and kill, stop and cut off the leader
#[derive(Debug, Args)]
pub(crate) struct Leader {
    /// Interval of the heartbeats in milliseconds
    #[arg(long, default_value_t = 10)]
    heartbeat_ms: u64,
    /// Number of times that each fault is injected
    #[arg(long, default_value_t = 10)]
    rounds: u32,
}

/// Member process, started three times by `tautline lab leader`
#[derive(Debug, Args)]
pub(crate) struct LeaderMember {
    id: u8,
    stand: SocketAddr,
    heartbeat_ms: u64,
    kept: PathBuf,
}

/// Hub that receives the members' acts, forwards their messages to each other, and can cut members
/// off.
struct Hub {
    socket: UdpSocket,
    clock: Clock,
    heartbeat_ms: u64,
    folder: tempfile::TempDir,
    members: Vec<Running>,
    /// Term and member of the latest act that was not refused; `None` before the first.
    acted: Option<(u64, usize)>,
    /// Time of each member's latest act that was not refused; `None` before the first.
    acts: [Option<Instant>; 3],
    /// Earliest and latest decision time of the acts of each term, by the machine's monotonic
    /// clock.
    terms: BTreeMap<u64, (Duration, Duration)>,
    /// Number of acts that were decided while another term's leader acted: there must be none.
    stale: u64,
    /// Number of acts that arrived after one of a later term; the hub refuses them.
    late: u64,
}

struct Running {
    process: Child,
    address: Option<SocketAddr>,
    cut: bool,
}

impl Leader {
    pub(crate) fn run(self) -> Result<()> {
        let mut stand = Hub::new(self.heartbeat_ms)?;
        tell!(
            "three processes, heartbeat {} ms, timeout {TIMEOUT_HEARTBEATS} of them",
            self.heartbeat_ms
        );
        tell!(
            "{:8} {:>8} {:>8} {:>8}   ms until another acts",
            "leader",
            "least",
            "median",
            "most"
        );
        for fault in ["killed", "stopped", "cut off"] {
            let mut times = Vec::new();
            for _ in 0..self.rounds.max(1) {
                times.push(stand.fail_over(fault)?.as_secs_f64() * 1e3);
            }
            times.sort_by(f64::total_cmp);
            let (least, most) = (times[0], times[times.len() - 1]);
            tell!("{fault:8} {least:>8.1} {:>8.1} {most:>8.1}", times[times.len() / 2]);
        }
        tell!("acts of a leader after one of a later leader: {}", stand.stale);
        tell!("acts that came after one of a later term, and are refused by it: {}", stand.late);
        ensure!(stand.stale == 0, "two leaders acted at once");
        Ok(())
    }
}

impl Hub {
    fn new(heartbeat_ms: u64) -> Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(Duration::from_millis(1)))?;
        let mut stand = Self {
            socket,
            clock: Clock::start(),
            heartbeat_ms,
            folder: tempfile::tempdir()?,
            members: Vec::new(),
            acted: None,
            acts: [None; 3],
            terms: BTreeMap::new(),
            stale: 0,
            late: 0,
        };
        for member in 0..3 {
            let process = stand.start(member)?;
            stand.members.push(Running { process, address: None, cut: false });
        }
        Ok(stand)
    }

    fn start(&self, member: usize) -> Result<Child> {
        let kept = self.folder.path().join(member.to_string());
        Command::new(std::env::current_exe()?)
            .args(["lab", "leader-member", &(member + 1).to_string()])
            .args([self.socket.local_addr()?.to_string(), self.heartbeat_ms.to_string()])
            .arg(kept)
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start a member")
    }

    /// Injects `fault` into the leader, waits until another member acts, and ends the fault.
    /// Returns the time in between.
    fn fail_over(&mut self, fault: &str) -> Result<Duration> {
        let leader = self.settled()?;
        let struck_at = self.clock.now();
        match fault {
            "killed" => {
                self.members[leader].process.kill()?;
                self.members[leader].process.wait()?;
            }
            "stopped" => {
                kill_process(Pid::from_child(&self.members[leader].process), Signal::STOP)?;
            }
            _ => self.members[leader].cut = true,
        }
        let next = self.until(|stand| {
            let acted = |member: &usize| stand.acts[*member].is_some_and(|at| at > struck_at);
            (0..3).filter(|member| *member != leader).find(acted)
        })?;
        let acted_at = self.acts[next].context("it acted")?;
        match fault {
            "killed" => self.members[leader].process = self.start(leader)?,
            "stopped" => {
                kill_process(Pid::from_child(&self.members[leader].process), Signal::CONT)?;
            }
            _ => self.members[leader].cut = false,
        }
        Ok(acted_at.since(struck_at))
    }

    /// Handles messages for ten timeouts, then waits until the latest act is younger than a
    /// heartbeat; returns the member that acted.
    fn settled(&mut self) -> Result<usize> {
        let calm = Duration::from_millis(self.heartbeat_ms) * u32::from(TIMEOUT_HEARTBEATS) * 10;
        let until = self.clock.now() + calm;
        while self.clock.now() < until {
            self.pass_on()?;
        }
        let fresh = Duration::from_millis(self.heartbeat_ms);
        self.until(|stand| {
            let (_, member) = stand.acted?;
            let age = stand.clock.now().since(stand.acts[member]?);
            (age < fresh).then_some(member)
        })
    }

    fn until<T>(&mut self, found: impl Fn(&Self) -> Option<T>) -> Result<T> {
        let deadline = self.clock.now() + DEADLINE;
        loop {
            if let Some(found) = found(self) {
                return Ok(found);
            }
            ensure!(self.clock.now() < deadline, "nobody leads for {DEADLINE:?}");
            self.pass_on()?;
        }
    }

    /// Receives one datagram of a member, if one comes within 1 ms: records an act, or forwards a
    /// message unless sender or receiver is cut off.
    fn pass_on(&mut self) -> Result<()> {
        let mut buffer = [0; 2048];
        let Ok((length, from)) = self.socket.recv_from(&mut buffer) else { return Ok(()) };
        let [who, to, rest @ ..] = &buffer[..length] else { return Ok(()) };
        let who = usize::from(*who);
        let Some(sender) = self.members.get_mut(who) else { return Ok(()) };
        sender.address = Some(from);
        if *to == ACT {
            if let Some((term, rest)) = rest.split_first_chunk()
                && let Some(decided) = rest.first_chunk()
            {
                let decided = Duration::from_nanos(u64::from_le_bytes(*decided));
                self.note_act(who, u64::from_le_bytes(*term), decided);
            }
            return Ok(());
        }
        let cut = sender.cut;
        let Some(receiver) = self.members.get(usize::from(*to)) else { return Ok(()) };
        if let Some(address) = receiver.address.filter(|_| !cut && !receiver.cut) {
            // A member that was just killed receives nothing.
            let _ = self.socket.send_to(rest, address);
        }
        Ok(())
    }

    /// Records an act. The scheduler may delay a process between decision and act for any time. So
    /// two leaders at once are detected by their decision times, and a late act by its term, as an
    /// actuator must do.
    fn note_act(&mut self, member: usize, term: u64, decided: Duration) {
        let (first, last) = self.terms.entry(term).or_insert((decided, decided));
        (*first, *last) = ((*first).min(decided), (*last).max(decided));
        let mut later = self.terms.range(term + 1..).map(|(_, (first, _))| *first);
        let mut earlier = self.terms.range(..term).map(|(_, (_, last))| *last);
        if later.any(|first| first <= decided) || earlier.any(|last| last >= decided) {
            self.stale += 1;
        }
        if self.acted.is_some_and(|(latest, _)| latest > term) {
            self.late += 1;
            return;
        }
        self.acted = Some((term, member));
        self.acts[member] = Some(self.clock.now());
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        for member in &mut self.members {
            // A process that has ended cannot be killed.
            let _ = member.process.kill();
            let _ = member.process.wait();
        }
    }
}

impl LeaderMember {
    pub(crate) fn run(self) -> Result<()> {
        let clock = Clock::start();
        let config = Config {
            id: self.id,
            members: 3,
            heartbeat: Duration::from_millis(self.heartbeat_ms),
            timeout_heartbeats: TIMEOUT_HEARTBEATS,
            seed: self.id.into(),
        };
        let kept = match std::fs::read(&self.kept) {
            Ok(bytes) => Kept::from_bytes(&bytes)?,
            Err(_) => Kept::default(),
        };
        let mut member = Member::new(config, kept, clock.now())?;
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(self.stand)?;
        let who = self.id - 1;
        socket.send(&[who, HELLO])?;
        let mut act_due = clock.now();
        let mut outbox = VecDeque::new();
        loop {
            let due = member.poll_timeout().min(act_due.max(clock.now()));
            let wait = due.since(clock.now()).max(Duration::from_micros(100));
            socket.set_read_timeout(Some(wait))?;
            let mut buffer = [0; 2048];
            if let Ok(length) = socket.recv(&mut buffer) {
                member.handle_datagram(&buffer[..length], clock.now());
            }
            if member.poll_timeout() <= clock.now() {
                member.handle_timeout(clock.now());
            }
            if let Some(kept) = member.poll_keep() {
                file::replace(&self.kept, &kept.to_bytes())?;
            }
            while let Some((to, datagram)) = member.poll_transmit() {
                outbox.push_back([&[who, to - 1][..], &datagram].concat());
            }
            for datagram in outbox.drain(..) {
                socket.send(&datagram)?;
            }
            if clock.now() >= act_due {
                act_due = clock.now() + ACT_EVERY;
                let decided = Clock::monotonic();
                if member.may_act(clock.now()) {
                    let decided = u64::try_from(decided.as_nanos())?.to_le_bytes();
                    let term = member.term().to_le_bytes();
                    socket.send(&[&[who, ACT][..], &term, &decided].concat())?;
                }
            }
        }
    }
}

const TIMEOUT_HEARTBEATS: u8 = 5;
const ACT_EVERY: Duration = Duration::from_millis(2);
const DEADLINE: Duration = Duration::from_secs(30);
/// Number in place of a receiver's for an act; [`HELLO`] is that of a member's first datagram.
const ACT: u8 = 255;
const HELLO: u8 = 254;
