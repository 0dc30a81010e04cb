//! One thread of a process, held where it is while the others go on: by ptrace.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

/// A thread that stands still until this is dropped.
pub(crate) struct Held {
    release: Option<Sender<()>>,
    holder: Option<JoinHandle<()>>,
}

impl Held {
    /// Holds the thread, and returns once it stands.
    ///
    /// # Panics
    /// Where the system forbids it: then these tests say nothing.
    pub(crate) fn hold(thread: u32) -> Self {
        let id = Pid::from_raw(i32::try_from(thread).expect("a thread's number"));
        let ((release, released), (tell, stands)) = (channel(), channel());
        // Whoever attaches is the one who must let go.
        let holder = std::thread::spawn(move || {
            let attached = ptrace::seize(id, ptrace::Options::empty())
                .and_then(|()| ptrace::interrupt(id))
                .and_then(|()| waitpid(id, Some(WaitPidFlag::__WALL)));
            let is_attached = attached.is_ok();
            tell.send(attached).expect("the test waits for it");
            // An end of the sender releases it as well.
            let _ = released.recv();
            if is_attached {
                // A process that has been killed meanwhile needs none.
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

/// Returns the threads of a process that have this name, as they were started.
pub(crate) fn named(process: u32, name: &str) -> Vec<u32> {
    let named = threads(process).into_iter().filter(|(_, of)| of == name);
    named.map(|(thread, _)| thread).collect()
}

/// Returns the threads of a process and their names, as they were started.
pub(crate) fn threads(process: u32) -> Vec<(u32, String)> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let mut threads: Vec<(u32, String)> = tasks
        .filter_map(|task| {
            let task = task.ok()?;
            // One that has ended meanwhile has none.
            let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
            Some((task.file_name().to_str()?.parse().ok()?, name.trim_end().to_owned()))
        })
        .collect();
    threads.sort_unstable();
    threads
}
