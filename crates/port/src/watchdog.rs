//! A process that sends the bytes declared as safe once the machine's own process is gone or
//! stopped.
//!
//! Both ends share a socket that keeps messages apart. The machine's end first gives each place
//! with its bytes, then a *beat* each turn, at last the *end*; the watchdog says when it is ready,
//! and when it has begun to send.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, send, sendmsg, socketpair,
};
use tautline_guard::{PERIOD, Pauses};
use tautline_net::clock::Clock;
use tautline_net::realtime;
use tautline_units::Instant;

use crate::safe::Safe;

/// The machine's end of a watchdog process. Dropped, it ends the process, which sends nothing.
#[derive(Debug)]
pub struct Watchdog {
    channel: OwnedFd,
    child: Option<Child>,
    is_gone: bool,
}

impl Watchdog {
    /// Starts `command`, which must call [`run`] with its standard input, and gives it the places;
    /// waits up to 5 s until it is ready.
    ///
    /// # Errors
    /// When the command cannot be started or does not become ready.
    pub fn start(mut command: Command, safe: &[Safe]) -> io::Result<Self> {
        let (channel, theirs) = channel()?;
        command.stdin(Stdio::from(theirs));
        let child = command.spawn()?;
        // The command owns the other end, whose closing must be seen.
        drop(command);
        let watchdog = Self { channel, child: Some(child), is_gone: false };
        watchdog.give(safe)?;
        Ok(watchdog)
    }

    fn give(&self, safe: &[Safe]) -> io::Result<()> {
        for safe in safe {
            let files = [safe.output().as_fd()];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut files_sent = SendAncillaryBuffer::new(&mut space);
            files_sent.push(SendAncillaryMessage::ScmRights(&files));
            let parts = [IoSlice::new(&[PLACE]), IoSlice::new(safe.bytes())];
            sendmsg(&self.channel, &parts, &mut files_sent, SendFlags::NOSIGNAL)?;
        }
        self.say(BEAT)?;
        let answer = waited(&self.channel, READY_MAX).then(|| received(&self.channel));
        match answer {
            Some(Received::Message { kind: READY, .. }) => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::TimedOut, "it did not become ready")),
        }
    }

    /// Tells the process that the machine's thread runs; called every turn. Returns whether the
    /// process has sent the safe bytes since the last call, because the turns stopped.
    pub fn beat(&mut self) -> bool {
        if self.is_gone {
            return false;
        }
        let mut has_sent = false;
        loop {
            match received(&self.channel) {
                Received::Message { kind: SENT, .. } => has_sent = true,
                Received::Message { .. } => {}
                Received::Nothing => break,
                Received::End => {
                    self.is_gone = true;
                    tracing::warn!(
                        "the watchdog's process has ended: nothing sends the safe bytes if this \
                         process is killed"
                    );
                    break;
                }
            }
        }
        // A full queue holds enough beats.
        let _ = self.say(BEAT);
        has_sent
    }

    fn say(&self, kind: u8) -> rustix::io::Result<usize> {
        send(&self.channel, &[kind], SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let _ = self.say(END);
        let Some(mut child) = self.child.take() else { return };
        // It reads the message within a turn; one that does not is stopped itself.
        let clock = Clock::start();
        while matches!(child.try_wait(), Ok(None)) {
            if clock.now() >= Instant::ZERO + END_MAX {
                let _ = child.kill();
                let _ = child.wait();
                return;
            }
            clock.sleep_until(clock.now() + Duration::from_millis(2));
        }
    }
}

/// Runs the watchdog's process: its end of the socket is `channel`. Returns once the machine's end
/// says that it ends, or a second after its process was killed.
pub fn run(channel: OwnedFd) {
    realtime::raise_thread("the watchdog", realtime::Urgency::Safety);
    let clock = Clock::start();
    let mut watch = Watch { heard_at: clock.now(), ..Watch::default() };
    let mut safe = Vec::new();
    loop {
        waited(&channel, PERIOD);
        let now = clock.now();
        watch.turn(now);
        loop {
            match received(&channel) {
                Received::Message { kind: PLACE, bytes, file: Some(file) } => {
                    safe.extend(Safe::received(file, bytes));
                }
                Received::Message { kind: BEAT, .. } => {
                    if watch.beats == 0 {
                        let _ = send(&channel, &[READY], SendFlags::NOSIGNAL);
                    }
                    watch.hear(now);
                }
                Received::Message { kind: END, .. } => return,
                Received::Message { .. } => {}
                Received::Nothing => break,
                Received::End => {
                    watch.end(now);
                    break;
                }
            }
        }
        match watch.verdict(now) {
            Verdict::Watch => {}
            Verdict::Send { is_first } => {
                if is_first {
                    let _ = send(&channel, &[SENT], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
                }
                for safe in &safe {
                    safe.send();
                }
                // A closed socket no longer waits.
                clock.sleep_until(now + PERIOD);
            }
            Verdict::End => return,
        }
    }
}

/// State machine of the watchdog.
#[derive(Debug, Default)]
struct Watch {
    heard_at: Instant,
    turned_at: Option<Instant>,
    pauses: Pauses,
    beats: u64,
    /// Time at which the machine's process ended without a word; `None` before.
    ended_at: Option<Instant>,
    is_sending: bool,
}

/// Duty of the watchdog in one turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Watch,
    Send { is_first: bool },
    End,
}

impl Watch {
    fn turn(&mut self, now: Instant) {
        let gap = self.turned_at.replace(now).map_or(Duration::ZERO, |at| now.since(at));
        self.pauses.turn(gap);
    }

    fn hear(&mut self, now: Instant) {
        self.beats += 1;
        self.heard_at = now;
        self.pauses.hear();
    }

    fn end(&mut self, now: Instant) {
        self.ended_at.get_or_insert(now);
    }

    fn verdict(&mut self, now: Instant) -> Verdict {
        if self.ended_at.is_some_and(|at| now.since(at) >= SENDS_FOR) {
            return Verdict::End;
        }
        let silence = self.pauses.count(now.since(self.heard_at));
        let is_silent = self.beats > 0 && silence > SILENCE_MAX;
        let was_sending = std::mem::replace(
            &mut self.is_sending,
            is_silent || self.ended_at.is_some() && self.beats > 0,
        );
        match self.is_sending {
            true => Verdict::Send { is_first: !was_sending },
            false if self.ended_at.is_some() => Verdict::End,
            false => Verdict::Watch,
        }
    }
}

/// Result of one attempt to receive.
#[derive(Debug)]
enum Received {
    Message { kind: u8, bytes: Vec<u8>, file: Option<OwnedFd> },
    Nothing,
    End,
}

fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Waits until something can be received, or the other end has closed; returns whether it has.
fn waited(channel: &OwnedFd, longest: Duration) -> bool {
    let mut fds = [PollFd::new(channel, PollFlags::IN)];
    let limit = Timespec::try_from(longest).ok();
    poll(&mut fds, limit.as_ref()).is_ok_and(|count| count > 0)
}

fn received(channel: &OwnedFd) -> Received {
    let mut buffer = vec![0; 1 + Safe::BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut files = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let length = match recvmsg(channel, &mut [IoSliceMut::new(&mut buffer)], &mut files, flags) {
        Ok(message) => message.bytes,
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Received::Nothing,
        Err(_) => return Received::End,
    };
    let Some((&kind, bytes)) = buffer[..length].split_first() else { return Received::End };
    let mut file = None;
    for message in files.drain() {
        if let RecvAncillaryMessage::ScmRights(mut files) = message {
            file = files.next().or(file);
        }
    }
    Received::Message { kind, bytes: bytes.to_vec(), file }
}

/// Kinds of messages: a place with its bytes, a beat, the end; ready, bytes sent.
const PLACE: u8 = b'P';
const BEAT: u8 = b'B';
const END: u8 = b'E';
const READY: u8 = b'R';
const SENT: u8 = b'S';
/// Silence above which the safe bytes are sent: at the turn that misses the third beat.
const SILENCE_MAX: Duration = Duration::from_millis(25);
/// Time for which the safe bytes are repeated after the machine's process was killed: a serial line
/// or a bus that was busy then gets them too.
const SENDS_FOR: Duration = Duration::from_secs(1);
/// Time in which the watchdog's process must be ready, or its start fails: Python needs a twentieth
/// of it on an idle computer.
const READY_MAX: Duration = Duration::from_secs(5);
const END_MAX: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::safe::To;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn silence_of_three_beats_sends_until_the_next_beat() {
        let mut watch = Watch::default();
        let mut turn = |millis, is_heard: bool| {
            watch.turn(at(millis));
            if is_heard {
                watch.hear(at(millis));
            }
            watch.verdict(at(millis))
        };
        assert_eq!(turn(500, false), Verdict::Watch, "no beat yet");
        for millis in (510..1_000).step_by(10) {
            assert_eq!(turn(millis, true), Verdict::Watch);
        }
        let after: Vec<_> = (1_000..1_060).step_by(10).map(|millis| turn(millis, false)).collect();
        let (first, more) = (Verdict::Send { is_first: true }, Verdict::Send { is_first: false });
        assert_eq!(after, [Verdict::Watch, Verdict::Watch, first, more, more, more]);
        assert_eq!(turn(1_060, true), Verdict::Watch);
        assert_eq!(turn(1_130, false), Verdict::Watch, "its own pause of 70 ms");
    }

    #[test]
    fn a_killed_process_is_answered_for_a_second() {
        let mut watch = Watch::default();
        watch.turn(at(0));
        watch.hear(at(0));
        watch.end(at(4));
        assert_eq!(watch.verdict(at(4)), Verdict::Send { is_first: true });
        watch.end(at(990));
        assert_eq!(watch.verdict(at(990)), Verdict::Send { is_first: false });
        assert_eq!(watch.verdict(at(1_004)), Verdict::End);
        let mut never = Watch::default();
        never.end(at(4));
        assert_eq!(never.verdict(at(4)), Verdict::End, "nothing was served");
    }

    /// Returns the machine's end of a watchdog that runs as a thread, that thread, and the socket
    /// at which the safe bytes arrive.
    fn watched() -> (Watchdog, std::thread::JoinHandle<()>, UdpSocket) {
        let actuator = UdpSocket::bind("127.0.0.1:0").unwrap();
        actuator.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let to = To::Udp(actuator.local_addr().unwrap());
        let safe = Safe::open(to, b"stop".to_vec()).unwrap();
        let (channel, theirs) = channel().unwrap();
        let running = std::thread::spawn(move || run(theirs));
        let watchdog = Watchdog { channel, child: None, is_gone: false };
        watchdog.give(&[safe]).unwrap();
        (watchdog, running, actuator)
    }

    #[test]
    fn a_machine_that_ends_in_order_causes_no_bytes() {
        let (mut watchdog, running, actuator) = watched();
        let mut has_paused = false;
        for _ in 0..5 {
            has_paused |= watchdog.beat();
            Clock::start().sleep_until(at(10));
        }
        drop(watchdog);
        running.join().unwrap();
        assert!(has_paused || actuator.recv(&mut [0; 8]).is_err());
    }

    #[test]
    fn a_stopped_machine_and_a_killed_one_cause_the_bytes() {
        let (mut watchdog, running, actuator) = watched();
        let mut buffer = [0; 8];
        assert_eq!(actuator.recv(&mut buffer).unwrap(), 4, "no beat follows");
        assert_eq!(&buffer[..4], b"stop");
        assert!(watchdog.beat(), "the machine's thread learns of it");
        let Watchdog { channel, .. } = &watchdog;
        rustix::net::shutdown(channel, rustix::net::Shutdown::Both).unwrap();
        running.join().unwrap();
        actuator.set_nonblocking(true).unwrap();
        let count = std::iter::from_fn(|| actuator.recv(&mut buffer).ok()).count();
        assert!((10..=130).contains(&count), "{count} in a second");
    }
}
