//! Several threads that share one list of jobs, with the results in the order of the list.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use anyhow::Result;

/// Returns the number of threads that this machine runs in parallel.
pub fn count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs each job on one of `threads` threads, at least one, and returns all results, in order.
///
/// `told` receives, on this thread, the number of finished jobs and the result of the last of them.
/// Results do not depend on the threads as long as the jobs are independent.
///
/// # Errors
/// The error of the first job to fail; no further job is started then, and those that run are
/// finished.
pub fn each<Job: Sync, Done: Send>(
    threads: usize,
    jobs: &[Job],
    work: impl Fn(&Job) -> Result<Done> + Sync,
    mut told: impl FnMut(usize, &Done),
) -> Result<Vec<Done>> {
    let next = AtomicUsize::new(0);
    let (tell, results) = mpsc::channel();
    let mut all: Vec<Option<Done>> = Vec::new();
    all.resize_with(jobs.len(), || None);
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            let (next, work, tell) = (&next, &work, tell.clone());
            scope.spawn(move || {
                while let Some((at, job)) = take(jobs, next) {
                    // After a first error the receiver is gone: end as well.
                    if tell.send((at, work(job))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(tell);
        for (done, (at, result)) in results.into_iter().enumerate() {
            let result = result?;
            told(done + 1, &result);
            all[at] = Some(result);
        }
        Ok(all.into_iter().flatten().collect())
    })
}

fn take<'a, Job>(jobs: &'a [Job], next: &AtomicUsize) -> Option<(usize, &'a Job)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    Some((at, jobs.get(at)?))
}

#[cfg(test)]
mod tests {
    use anyhow::ensure;

    use super::*;

    #[test]
    fn results_are_in_the_order_of_jobs_on_any_thread_count() {
        let jobs: Vec<u32> = (0..100).collect();
        for threads in [0, 1, 3] {
            let mut heard = Vec::new();
            let squares = each(threads, &jobs, |job| Ok(job * job), |done, _| heard.push(done));
            assert_eq!(squares.unwrap(), jobs.iter().map(|job| job * job).collect::<Vec<_>>());
            assert_eq!(heard, (1..=100).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_job_that_fails_ends_it() {
        let fails = |job: &u32| {
            ensure!(*job != 7, "seven");
            Ok(*job)
        };
        let jobs: Vec<u32> = (0..1000).collect();
        assert_eq!(each(2, &jobs, fails, |_, _| {}).unwrap_err().to_string(), "seven");
    }
}
