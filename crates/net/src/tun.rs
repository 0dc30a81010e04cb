//! Network namespaces, and TUN devices in them: interfaces whose packets this process reads and
//! writes.
//!
//! iproute2 (`ip`), which needs root, creates names, addresses and interfaces.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tun_rs::{DeviceBuilder, SyncDevice};

/// A named network namespace.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    /// `true` if dropping this value removes the namespace, because it was created here.
    made: bool,
}

impl Namespace {
    /// Opens the namespace of this name, or creates it; one created here is removed when the value
    /// is dropped.
    ///
    /// # Errors
    /// One line: an invalid name, or the error of `ip`.
    pub fn open_or_make(name: &str) -> anyhow::Result<Self> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_name = (1..=NAME_BYTES_MAX).contains(&name.len())
            && name.bytes().all(plain)
            && !name.starts_with(['.', '-']);
        ensure!(
            is_name,
            "namespace {name:?}: a name has 1 to {NAME_BYTES_MAX} letters, digits, -, . and _"
        );
        let made = !Path::new(FOLDER).join(name).exists();
        if made {
            iproute2("ip", &[], &[format!("netns add {name}")])?;
        }
        Ok(Self { name: name.to_owned(), made })
    }

    /// Returns the name of the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Moves the calling thread into the namespace permanently.
    ///
    /// # Errors
    /// One line: it no longer exists, or the permission is missing.
    pub fn enter(&self) -> anyhow::Result<()> {
        let name = &self.name;
        let place = File::open(Path::new(FOLDER).join(name))
            .with_context(|| format!("the namespace {name} does not exist"))?;
        move_into_link_name_space(place.as_fd(), Some(LinkNameSpaceType::Network))
            .with_context(|| format!("cannot enter namespace {name}"))
    }

    /// Runs `work` in the namespace on a thread of its own; sockets and devices that it opens stay
    /// there.
    ///
    /// # Errors
    /// Those of [`Self::enter`], and when `work` panics.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        let done = std::thread::scope(|scope| {
            let thread = scope.spawn(|| self.enter().map(|()| work()));
            thread.join()
        });
        done.map_err(|_| anyhow!("an operation in namespace {} failed", self.name))?
    }

    /// Runs commands of `ip` in the namespace, one per line without the word `ip`.
    ///
    /// # Errors
    /// Those of [`iproute2`].
    pub fn ip(&self, lines: &[String]) -> anyhow::Result<()> {
        iproute2("ip", &["-n", &self.name], lines)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.made
            && let Err(error) = iproute2("ip", &[], &[format!("netns del {}", self.name)])
        {
            tracing::warn!("cannot delete namespace {}: {error:#}", self.name);
        }
    }
}

/// An interface whose IP packets, without a preceding header, this process reads and writes;
/// dropping it removes the interface. Reads do not block.
pub struct Device(SyncDevice);

impl Device {
    /// Creates a device in a namespace, which is not up yet.
    ///
    /// # Errors
    /// One line: a name in use, no `/dev/net/tun`, or a missing permission.
    pub fn make(name: &str, namespace: &Namespace) -> anyhow::Result<Self> {
        let make = || -> io::Result<SyncDevice> {
            let device = DeviceBuilder::new().name(name).enable(false).build_sync()?;
            device.set_nonblocking(true)?;
            // The kernel's own IPv6 packets would use a part of the emulated capacity.
            let silent = format!("/proc/sys/net/ipv6/conf/{name}/addr_gen_mode");
            let _ = std::fs::write(silent, "1");
            Ok(device)
        };
        let device = namespace.within(make)?;
        let at = namespace.name();
        Ok(Self(device.with_context(|| format!("cannot make TUN device {name} in {at}"))?))
    }

    /// Reads the next packet that the kernel sends through the device; returns its length in bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if no packet is waiting.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.recv(buffer)
    }

    /// Passes a packet to the kernel as if it had arrived on the interface.
    ///
    /// # Errors
    /// When it is no IP packet, or the interface is down.
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

/// Runs a program of iproute2, such as `ip`, with `arguments`, and with `lines` as commands on its
/// standard input: one start for all of them, because starting it takes longer than its work.
///
/// # Errors
/// One line with its error message.
pub fn iproute2(program: &str, arguments: &[&str], lines: &[String]) -> anyhow::Result<()> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    command.args(arguments).args(["-b", "-"]).env("PATH", format!("{PATH}:{path}"));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {program} of the package iproute2"))?;
    let mut stdin = child.stdin.take().context("the child process has no standard input")?;
    // If it has already ended, its error is reported below.
    let _ = stdin.write_all((lines.join("\n") + "\n").as_bytes());
    drop(stdin);
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or_default().trim();
    ensure!(output.status.success(), "{program} {}: {said}", lines.join("; "));
    Ok(())
}

/// Folder in which iproute2 keeps the names of namespaces.
const FOLDER: &str = "/run/netns";
const NAME_BYTES_MAX: usize = 64;
/// Folders searched first for a program: a root shell opened by `su` may have none of them.
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
    fn an_iproute2_error_is_reported_in_one_line() {
        let error = iproute2("ip", &[], &["link set nosuchdevice up".to_owned()]).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("nosuchdevice") && error.lines().count() == 1, "{error}");
    }
}
