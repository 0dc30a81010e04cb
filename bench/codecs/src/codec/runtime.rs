//! Codecs in languages with their own runtime: a process that times itself.
//!
//! Protocol of its pipes, with little-endian numbers, and messages in normal form as in
//! `records.rs`:
//! ```text
//! request: | what u8 | length u32 | payload |          answer: | length u32 | payload |
//! e: a message in normal form                          that message, encoded; both are kept
//! t: metric or phase u8, repeats u32                   seconds of a call f64, of what was kept
//! r: any bytes                                         letter u8, and if they are a message:
//!                                                      sum f64, y f32, the normal form
//! ```
//! Letters are those of `hostile.rs`.

use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::records::Records;
use super::{Codec, Read, refused};
use crate::normal::Cloud;

/// A running codec process.
pub(crate) struct Runtime {
    child: Child,
    into: ChildStdin,
    from: ChildStdout,
    message: Vec<u8>,
}

impl Runtime {
    /// Starts a program that implements this protocol.
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        #[expect(unsafe_code, reason = "the child must not outlive this process")]
        // SAFETY: `prctl` may be called between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let mut child = command.spawn().expect("what was built can be started");
        let (into, from) = (child.stdin.take(), child.stdout.take());
        Self {
            child,
            into: into.expect("asked for"),
            from: from.expect("asked for"),
            message: Vec::new(),
        }
    }

    #[cfg(colfer_go)]
    pub(crate) fn colfer_go() -> Self {
        Self::start(Command::new(env!("COLFER_GO")))
    }

    #[cfg(protobuf_java)]
    pub(crate) fn protobuf_java() -> Self {
        let mut java = Command::new("java");
        // Single-threaded work with little memory: other collectors need more of both.
        java.args(["-XX:+UseSerialGC", "-Xmx1g", "-XX:CompressedClassSpaceSize=64m"]);
        java.args(["-XX:ReservedCodeCacheSize=64m", "-cp", env!("PROTOBUF_JAVA"), "Main"]);
        Self::start(java)
    }

    /// Sends a request and returns the answer, or an error if the process has died.
    fn ask(&mut self, what: u8, payload: &[u8]) -> std::io::Result<Vec<u8>> {
        let length = u32::try_from(payload.len()).expect("messages are some MB");
        let mut request = vec![what];
        request.extend(length.to_le_bytes());
        request.extend(payload);
        self.into.write_all(&request)?;
        self.into.flush()?;
        let mut length = [0; 4];
        self.from.read_exact(&mut length)?;
        let mut answer = vec![0; u32::from_le_bytes(length) as usize];
        self.from.read_exact(&mut answer)?;
        Ok(answer)
    }

    /// Returns the sum, the middle y and the normal form of a message.
    fn read(&mut self, bytes: &[u8]) -> Read<(f64, f32, Cloud)> {
        let answer = self.ask(b'r', bytes)?;
        let (letter, rest) = answer.split_first().ok_or_else(|| refused("no answer"))?;
        let (sum, rest) = rest.split_first_chunk().ok_or_else(|| refused("refused"))?;
        let (y, records) = rest.split_first_chunk().ok_or_else(|| refused("refused"))?;
        if *letter == b'p' {
            return Err(refused("crashed"));
        }
        let cloud = Records::default().decode(records)?;
        Ok((f64::from_le_bytes(*sum), f32::from_le_bytes(*y), cloud))
    }
}

impl Codec for Runtime {
    fn encode(&mut self, cloud: &Cloud) -> &[u8] {
        let records = Records::default().encode(cloud).to_vec();
        self.message = self.ask(b'e', &records).expect("an honest message ends no process");
        &self.message
    }

    fn decode(&mut self, bytes: &[u8]) -> Read<Cloud> {
        Ok(self.read(bytes)?.2)
    }

    fn sum(&mut self, bytes: &[u8]) -> Read<f64> {
        Ok(self.read(bytes)?.0)
    }

    fn middle_y(&mut self, bytes: &[u8]) -> Read<f32> {
        Ok(self.read(bytes)?.1)
    }

    fn time_itself(&mut self, metric: usize, repeats: u32) -> Option<f64> {
        let mut payload = vec![metric as u8];
        payload.extend(repeats.to_le_bytes());
        let answer = self.ask(b't', &payload).expect("timing ends no process");
        answer.first_chunk().map(|eight| f64::from_le_bytes(*eight))
    }

    fn judge_itself(&mut self, bytes: &[u8]) -> Option<u8> {
        let answer = self.ask(b'r', bytes);
        // A process that no longer exists has aborted.
        Some(answer.ok().and_then(|answer| answer.first().copied()).unwrap_or(b'a'))
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
