//! `tautline keys`: creates and shows the keys by which machines know each other.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use tautline_net::file::{Input, refuse_readable_by_others};
use tautline_transport::crypto::{Identity, PublicKey};

/// Create and show keys.
#[derive(Debug, Args)]
pub(crate) struct Keys {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a new secret key file and print its public key
    New {
        /// File to create; it must not exist yet, and only you will be able to read it
        file: PathBuf,
    },
    /// Print the public key of a secret key file
    Show {
        /// Secret key file
        file: PathBuf,
    },
}

impl Keys {
    /// Creates or reads a key file, and prints its public key.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let public = match self.action {
            Action::New { file } => create(&file)?,
            Action::Show { file } => read(&file)?.public(),
        };
        answer!("{public}");
        Ok(())
    }
}

/// Creates a secret key file, readable by its owner only, and returns its public key. Fails if the
/// file exists; after an error in writing, no file remains.
pub(crate) fn create(file: &Path) -> anyhow::Result<PublicKey> {
    let mut seed = zeroize::Zeroizing::new([0; 32]);
    getrandom::fill(seed.as_mut_slice()).context("the system gives no randomness")?;
    let identity = Identity::from_seed(&seed);
    let mut open = OpenOptions::new();
    let opened = open.write(true).create_new(true).mode(0o600).open(file);
    let mut output = match opened {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("{} exists already and is left as it is; choose another name", file.display())
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot make key file {}", file.display()));
        }
    };
    let written = writeln!(output, "{}", &*identity.to_text()).and_then(|()| output.sync_all());
    if let Err(error) = written {
        // A part of a key is of no use, and would keep the next attempt from making one.
        let _ = std::fs::remove_file(file);
        return Err(error).with_context(|| format!("cannot write key file {}", file.display()));
    }
    Ok(identity.public())
}

/// Reads a secret key file. Fails if anybody but its owner may read or change it, or if it contains
/// no key.
pub(crate) fn read(file: &Path) -> anyhow::Result<Identity> {
    let cannot = || {
        let secret = file.with_extension("key");
        let help = match file.extension().is_some_and(|extension| extension == "pub") {
            true => {
                format!("a public key is what `tautline keys show {}` prints", secret.display())
            }
            false => format!("`tautline keys new {}` makes one", file.display()),
        };
        format!("cannot read key file {}; {help}", file.display())
    };
    let input = Input::open(file).with_context(cannot)?;
    refuse_readable_by_others(input.file(), file)?;
    let mut text = zeroize::Zeroizing::new(String::new());
    input.take(FILE_BYTES_MAX).read_to_string(&mut text).with_context(cannot)?;
    text.parse().with_context(|| format!("key file {}", file.display()))
}

const FILE_BYTES_MAX: u64 = 1024;
