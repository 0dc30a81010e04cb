//! Bytes that are no valid frames, from the address of an accepted peer.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tautline_guard::frame::BYTES_MAX;
use tautline_net::clock::Clock;
use tautline_net::datagram::{Address, Client, Server};
use tautline_net::realtime;
use tautline_units::Instant;

/// Datagrams sent for each valid frame.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Garbage {
    /// Only the frame.
    #[default]
    None,
    /// The frame, with garbage before and after it.
    Beside,
    /// Only garbage.
    Instead,
}

impl Garbage {
    /// Sends the datagrams for the valid frame `sound`, which is the `turn`-th.
    pub(crate) fn mix(self, sound: &[u8], turn: u64, mut send: impl FnMut(&[u8])) {
        // Three datagrams at most: a socket's queue holds ten.
        if self != Self::None {
            send(&spoiled(sound, turn));
        }
        if self != Self::Instead {
            send(sound);
        }
        if self == Self::Beside {
            send(&spoiled(sound, turn + 1));
        }
    }
}

/// Returns a corrupted frame: one bit flipped, truncated, extended, or noise of its length.
fn spoiled(sound: &[u8], turn: u64) -> Vec<u8> {
    let mut state = turn;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    match turn % 4 {
        0 => {
            let mut flipped = sound.to_vec();
            flipped[next() % sound.len()] ^= 1 << (next() % 8);
            flipped
        }
        1 => sound[..next() % sound.len()].to_vec(),
        2 => [sound, &[next() as u8]].concat(),
        _ => (0..sound.len()).map(|_| next() as u8).collect(),
    }
}

/// A proxy between the machine and the guard's port that corrupts frames in both directions, or
/// delays the controls.
pub(crate) struct Between {
    garbage: Arc<Mutex<Garbage>>,
    /// Additional delay of each control over that of the previous one, in microseconds.
    longer_us: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Between {
    /// Listens for the machine at `own`, in place of the guard at `guard`.
    pub(crate) fn start(own: PathBuf, guard: PathBuf) -> Self {
        let (garbage, stop) = (Arc::<Mutex<Garbage>>::default(), Arc::<AtomicBool>::default());
        let longer_us = Arc::<AtomicU64>::default();
        let server = Server::open(&Address::Path(own)).expect("a folder of ours");
        let thread = {
            let (garbage, stop, longer_us) = (garbage.clone(), stop.clone(), longer_us.clone());
            std::thread::spawn(move || {
                carry(&server, &Address::Path(guard), &garbage, &longer_us, &stop)
            })
        };
        Self { garbage, longer_us, stop, thread: Some(thread) }
    }

    /// Delays each further control by `longer` more than the one before.
    pub(crate) fn hold_back(&self, longer: Duration) {
        self.longer_us.store(longer.as_micros() as u64, Ordering::Relaxed);
    }

    pub(crate) fn garble(&self, garbage: Garbage) {
        *self.garbage.lock().expect("nobody panics with it") = garbage;
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn carry(
    server: &Server,
    guard: &Address,
    garbage: &Mutex<Garbage>,
    longer_us: &AtomicU64,
    stop: &AtomicBool,
) {
    realtime::raise_thread("the way between", realtime::Urgency::Safety);
    let (clock, mut client, mut machine) = (Clock::start(), Client::new(guard), None);
    let (mut buffer, mut turn) = ([0; BYTES_MAX + 1], 0);
    let (mut controls, mut wait) = (VecDeque::new(), Duration::ZERO);
    while !stop.load(Ordering::Relaxed) {
        turn += 1;
        let garbage = *garbage.lock().expect("nobody panics with it");
        while let Some((length, sender)) = server.receive(&mut buffer) {
            garbage.mix(&buffer[..length], turn, |bytes| {
                let _ = client.send(bytes);
            });
            machine = Some(sender);
        }
        while let Some(length) = client.receive(&mut buffer) {
            wait += Duration::from_micros(longer_us.load(Ordering::Relaxed));
            controls.push_back((clock.now() + wait, buffer[..length].to_vec()));
        }
        while controls.front().is_some_and(|(due, _)| *due <= clock.now()) {
            let (_, control) = controls.pop_front().expect("one is there");
            if let Some(machine) = &machine {
                garbage.mix(&control, turn, |bytes| {
                    let _ = server.send(bytes, machine);
                });
            }
        }
        let next: Instant = clock.now() + Duration::from_millis(1);
        clock.sleep_until(next);
    }
}
