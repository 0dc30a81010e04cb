//! A machine that does not run its processes for a moment says nothing about them: then a test is tried again.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{self, CpuSet};
use nix::unistd::Pid;

/// Runs a test of real processes in real time; once more where it failed while the machine stood still, at most
/// three times.
///
/// # Panics
///
/// If it fails while the machine runs, or for the fourth time.
pub(crate) fn tried(test: impl Fn()) {
    for _ in 1..TRIES {
        let (found, stall) = watched(&test);
        match found {
            Ok(()) => return,
            Err(panic) if stall < STALL => panic::resume_unwind(panic),
            Err(_) => {
                eprintln!("not judged: the machine stood still for {stall:?}; it is tried again")
            }
        }
    }
    test();
}

/// Runs a test; returns how it ended, and the longest time for which a processor ran nothing of this process
/// meanwhile that wanted to.
fn watched(test: impl Fn()) -> (thread::Result<()>, Duration) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watches: Vec<_> = processors()
            .into_iter()
            .map(|one| {
                let is_over = &is_over;
                scope.spawn(move || watch(one, is_over))
            })
            .collect();
        let found = panic::catch_unwind(AssertUnwindSafe(test));
        is_over.store(true, Ordering::Relaxed);
        let stalls = watches.into_iter().map(|watch| watch.join().expect("it only sleeps"));
        (found, stalls.max().unwrap_or_default())
    })
}

/// Returns the processors that this process may run on, one in each set.
fn processors() -> Vec<CpuSet> {
    let all = sched::sched_getaffinity(Pid::from_raw(0)).expect("a process may ask for its own");
    let ours = (0..CpuSet::count()).filter(|at| all.is_set(*at) == Ok(true));
    ours.map(|at| {
        let mut one = CpuSet::new();
        one.set(at).expect("it was in a set");
        one
    })
    .collect()
}

/// Returns by how much the longest of many short sleeps on `processor` was too long.
#[expect(clippy::disallowed_methods, reason = "how the machine runs is seen by its clock")]
fn watch(processor: CpuSet, is_over: &AtomicBool) -> Duration {
    sched::sched_setaffinity(Pid::from_raw(0), &processor).expect("this process may run there");
    let (mut longest, mut last) = (Duration::ZERO, Instant::now());
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
        longest = longest.max(last.elapsed().saturating_sub(LOOK));
        last = Instant::now();
    }
    longest
}

const TRIES: usize = 4;
const LOOK: Duration = Duration::from_millis(5);
/// Half of the shortest silence after which a part takes another for dead, and stops the machine.
const STALL: Duration = Duration::from_millis(50);
