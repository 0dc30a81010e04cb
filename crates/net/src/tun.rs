//! Network namespaces, and TUN devices in them: interfaces whose packets this process gives and takes.
//!
//! Names, addresses and interfaces are laid by iproute2 (`ip`), which needs root.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tun_rs::{DeviceBuilder, SyncDevice};

/// A network namespace that has a name.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    /// Whether it goes when this is dropped.
    made: bool,
}

impl Namespace {
    /// Returns the namespace of this name; makes it if there is none, and takes it away again when it is dropped.
    ///
    /// # Errors
    /// One line: a name that is none, or what `ip` says.
    pub fn open_or_make(name: &str) -> anyhow::Result<Self> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_name = (1..=NAME_BYTES_MAX).contains(&name.len())
            && name.bytes().all(plain)
            && !name.starts_with(['.', '-']);
        ensure!(
            is_name,
            "namespace {name:?}: a name has 1 to {NAME_BYTES_MAX} letters, digits, - and _"
        );
        let made = !Path::new(FOLDER).join(name).exists();
        if made {
            iproute2("ip", &[], &[format!("netns add {name}")])?;
        }
        Ok(Self { name: name.to_owned(), made })
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes the calling thread there for good.
    ///
    /// # Errors
    /// One line: when it is gone, or this process may not.
    pub fn enter(&self) -> anyhow::Result<()> {
        let name = &self.name;
        let place = File::open(Path::new(FOLDER).join(name))
            .with_context(|| format!("there is no namespace {name}"))?;
        move_into_link_name_space(place.as_fd(), Some(LinkNameSpaceType::Network))
            .with_context(|| format!("cannot enter namespace {name}"))
    }

    /// Does `work` there, on a thread of its own; what it opens stays there.
    ///
    /// # Errors
    /// As [`Self::enter`], and when `work` panics.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        let done = std::thread::scope(|scope| {
            let thread = scope.spawn(|| self.enter().map(|()| work()));
            thread.join()
        });
        done.map_err(|_| anyhow!("what was done in namespace {} failed", self.name))?
    }

    /// Runs lines of `ip` there.
    ///
    /// # Errors
    /// As [`iproute2`].
    pub fn ip(&self, lines: &[String]) -> anyhow::Result<()> {
        iproute2("ip", &["-n", &self.name], lines)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.made
            && let Err(error) = iproute2("ip", &[], &[format!("netns del {}", self.name)])
        {
            tracing::warn!("namespace {} is left: {error:#}", self.name);
        }
    }
}

/// An interface whose packets, of IP and without a header before them, this process gives and takes; it goes when this
/// is dropped. Reads do not wait.
pub struct Device(SyncDevice);

impl Device {
    /// Makes a device in a namespace, not up yet.
    ///
    /// # Errors
    /// One line: a name that is taken, no `/dev/net/tun`, or a process that may not.
    pub fn make(name: &str, namespace: &Namespace) -> anyhow::Result<Self> {
        let make = || -> io::Result<SyncDevice> {
            let device = DeviceBuilder::new().name(name).enable(false).build_sync()?;
            device.set_nonblocking(true)?;
            // The kernel's own packets of IPv6 would take their part of what is emulated.
            let silent = format!("/proc/sys/net/ipv6/conf/{name}/addr_gen_mode");
            let _ = std::fs::write(silent, "1");
            Ok(device)
        };
        let device = namespace.within(make)?;
        let at = namespace.name();
        Ok(Self(device.with_context(|| format!("cannot make TUN device {name} in {at}"))?))
    }

    /// Reads the next packet that the kernel sends through it.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where none waits.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.recv(buffer)
    }

    /// Hands the kernel a packet as if it had come through it.
    ///
    /// # Errors
    /// When it is no packet of IP, or the interface is down.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.0.send(packet).map(|_| ())
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Device").field(&self.0.as_raw_fd()).finish()
    }
}

impl AsRawFd for Device {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Runs a program of iproute2 once for all lines: starting one takes longer than what it does.
///
/// # Errors
/// One line with what it says.
pub fn iproute2(program: &str, arguments: &[&str], lines: &[String]) -> anyhow::Result<()> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    command.args(arguments).args(["-b", "-"]).env("PATH", format!("{PATH}:{path}"));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .with_context(|| format!("{program} does not start: it is of the package iproute2"))?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    // One that has ended already says below why.
    let _ = stdin.write_all((lines.join("\n") + "\n").as_bytes());
    drop(stdin);
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or_default().trim();
    ensure!(output.status.success(), "{program} {}: {said}", lines.join("; "));
    Ok(())
}

/// Where iproute2 keeps the names of namespaces.
const FOLDER: &str = "/run/netns";
const NAME_BYTES_MAX: usize = 64;
/// Whoever becomes root by `su` has none of these.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_be_a_path_or_an_option_is_none() {
        for name in ["", "..", ".hidden", "a/b", "-n", "a b", "a\nnetns del b", &"a".repeat(65)] {
            let error = Namespace::open_or_make(name).unwrap_err().to_string();
            assert!(error.starts_with(&format!("namespace {name:?}: a name has")), "{error}");
        }
    }

    #[test]
    fn what_iproute2_refuses_is_told_in_one_line() {
        let error = iproute2("ip", &[], &["link set nosuchdevice up".to_owned()]).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("nosuchdevice") && error.lines().count() == 1, "{error}");
    }
}
