//! A single thread of a process, held by ptrace while the others continue.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

/// A thread that is held until this is dropped.
pub(crate) struct Held {
    release: Option<Sender<()>>,
    holder: Option<JoinHandle<()>>,
}

impl Held {
    /// Holds the thread, and returns once it is stopped.
    ///
    /// # Panics
    /// If the system forbids it: then these tests have no result.
    pub(crate) fn hold(thread: u32) -> Self {
        let id = Pid::from_raw(i32::try_from(thread).expect("a thread's number"));
        let ((release, released), (tell, stands)) = (channel(), channel());
        // Only the thread that attached may detach.
        let holder = std::thread::spawn(move || {
            let attached = ptrace::seize(id, ptrace::Options::empty())
                .and_then(|()| ptrace::interrupt(id))
                .and_then(|()| waitpid(id, Some(WaitPidFlag::__WALL)));
            let is_attached = attached.is_ok();
            tell.send(attached).expect("the test waits for it");
            // Dropping the sender releases it as well.
            let _ = released.recv();
            if is_attached {
                // A process that was killed meanwhile needs no release.
                let _ = ptrace::detach(id, None);
            }
        });
        let attached = stands.recv().expect("it says so");
        attached.expect("ptrace of a child's thread: see /proc/sys/kernel/yama/ptrace_scope");
        Self { release: Some(release), holder: Some(holder) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.release.take());
        let _ = self.holder.take().map(JoinHandle::join);
    }
}

/// Returns the threads of a process with this name, in the order of their start.
pub(crate) fn named(process: u32, name: &str) -> Vec<u32> {
    let named = threads(process).into_iter().filter(|(_, of)| of == name);
    named.map(|(thread, _)| thread).collect()
}

/// Returns the threads of a process with their names, in the order of their start.
pub(crate) fn threads(process: u32) -> Vec<(u32, String)> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let mut threads: Vec<(u32, String)> = tasks
        .filter_map(|task| {
            let task = task.ok()?;
            // A thread that has ended meanwhile has no name.
            let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
            Some((task.file_name().to_str()?.parse().ok()?, name.trim_end().to_owned()))
        })
        .collect();
    threads.sort_unstable();
    threads
}
