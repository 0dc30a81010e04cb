//! Retries: a machine that does not schedule its processes for a moment makes a test's result
//! meaningless.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{self, CpuSet};
use nix::unistd::Pid;

/// Runs a test of real processes in real time. It repeats the test if it failed during a stall of
/// the machine. A repetition runs without other tests of this kind, after one second without a
/// stall, at most seven times.
///
/// # Panics
///
/// If the test fails without a stall, or for the eighth time.
pub(crate) fn tried(test: impl Fn()) {
    let beside = BESIDE.read().unwrap_or_else(PoisonError::into_inner);
    let mut found = judged(&test);
    drop(beside);
    for _ in 1..TRIES {
        let Err(stall) = found else { return };
        eprintln!("not judged: the machine stood still for {stall:?}; it is tried again, alone");
        let _alone = BESIDE.write().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..CALM_SECONDS_MOST {
            if watched(|| thread::sleep(Duration::from_secs(1))).1 < STALL {
                break;
            }
        }
        found = judged(&test);
    }
    if let Err(stall) = found {
        panic!("not judged in {TRIES} tries: the machine stood still each time, now for {stall:?}");
    }
}

/// Runs a test; returns the length of the stall if it failed during one.
///
/// # Panics
///
/// If the test fails without a stall.
fn judged(test: impl Fn()) -> Result<(), Duration> {
    match watched(test) {
        (Ok(()), _) => Ok(()),
        (Err(_), stall) if stall >= STALL => Err(stall),
        (Err(panic), _) => panic::resume_unwind(panic),
    }
}

/// Runs a test; returns its result, and the longest time for which a processor did not run a ready
/// thread of this process.
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

/// Returns the processors that this process may use, each as a set of its own.
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

/// Returns the greatest time by which a short sleep on `processor` took too long, out of many until
/// `is_over`.
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

/// Lock that keeps a repeated test alone: it holds the write lock, tests that run for the first
/// time hold read locks.
static BESIDE: RwLock<()> = RwLock::new(());
const TRIES: usize = 8;
const CALM_SECONDS_MOST: usize = 15;
const LOOK: Duration = Duration::from_millis(5);
/// Delay of a ready thread that counts as a stall of the machine: half of the shortest silence
/// after which a component counts another as dead and stops the machine.
const STALL: Duration = Duration::from_millis(50);
