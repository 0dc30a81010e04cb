//! Handover of accepted connections between processes: a TCP port has one owner on a host, even if
//! two share it.
//!
//! The owner peeks at the connection without consuming data, and sends the socket itself to the
//! other process. That process sees the client's own address and does TLS under its own key.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::datagram;

/// The end that serves connections accepted by the owner of the port; dropping it removes its path.
#[derive(Debug)]
pub struct Inlet {
    socket: UnixDatagram,
    path: PathBuf,
}

/// The end of the port's owner, which hands connections over. It looks for the inlet anew each
/// time, so the other process may start later, or restart.
#[derive(Clone, Debug)]
pub struct Outlet(PathBuf);

impl Inlet {
    /// Opens the inlet at `path`, for processes of this user only; never blocks.
    ///
    /// # Errors
    /// One line that names the path.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let socket = datagram::open_path(path).with_context(|| {
            format!("cannot accept connections at {}: another relay may use it", path.display())
        })?;
        Ok(Self { socket, path: path.to_owned() })
    }

    /// Receives the next TCP socket that the owner of the port has passed, without waiting.
    ///
    /// Returns `None` if none is waiting, after an error of the system, and after
    /// [`MALFORMED_MAX`] messages without a connection.
    pub fn take(&self) -> Option<TcpStream> {
        for _ in 0..MALFORMED_MAX {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let (mut byte, flags) = ([0; 1], RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC);
            recvmsg(&self.socket, &mut [IoSliceMut::new(&mut byte)], &mut control, flags).ok()?;
            let sockets = control.drain().filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
                _ => None,
            });
            let socket = sockets.flatten().next().map(TcpStream::from);
            // Anything else that was sent is not a connection.
            if let Some(socket) = socket.filter(|socket| socket.peer_addr().is_ok()) {
                return Some(socket);
            }
        }
        None
    }
}

impl AsFd for Inlet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        // If this fails, the next inlet reuses the path.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Outlet {
    /// Creates the end for the inlet at `path`, which need not exist yet.
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Passes `connection` to the process that opened the inlet, without waiting; the caller then
    /// closes its own copy.
    ///
    /// # Errors
    /// When there is no inlet, or its queue is full.
    pub fn hand_over(&self, connection: impl AsFd) -> io::Result<()> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(&self.0)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let sockets = [connection.as_fd()];
        if !control.push(SendAncillaryMessage::ScmRights(&sockets)) {
            return Err(ErrorKind::OutOfMemory.into());
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sendmsg(&socket, &[IoSlice::new(&[1])], &mut control, flags)?;
        Ok(())
    }
}

/// Maximum messages without a connection that are skipped per call.
const MALFORMED_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_connection_handed_over_is_served_from_its_first_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("relay.sock");
        let outlet = Outlet::new(&path);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"hello").unwrap();
        let (taken, remote) = listener.accept().unwrap();
        assert!(taken.peek(&mut [0; 5]).is_ok_and(|length| length > 0));
        assert!(outlet.hand_over(&taken).is_err(), "nobody is there");
        let inlet = Inlet::open(&path).unwrap();
        assert!(inlet.take().is_none());
        outlet.hand_over(&taken).unwrap();
        drop(taken);
        UnixDatagram::unbound().unwrap().send_to(b"noise", &path).unwrap();
        let mut served = inlet.take().unwrap();
        assert!(inlet.take().is_none());
        assert_eq!(served.peer_addr().unwrap(), remote);
        let mut bytes = [0; 5];
        served.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"hello");
        drop(inlet);
        assert!(!path.exists());
    }
}
