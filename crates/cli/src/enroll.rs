//! `tautline enroll`.

use std::fs::{self, DirBuilder};
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use tautline_message::{Control, Known, Refusal, Role};
use tautline_net::control::{Code, Connection};
use tautline_transport::crypto::{Identity, PublicKey};
use tokio::time::timeout;

use crate::init::{Host, dead_man_words, operator_file, vehicle_files};
use crate::owner::Owner;
use crate::up::Up;
use crate::{keys, settings};

/// Register this machine at a switchboard with a code from `tautline switchboard invite`.
///
/// The command asks for the code, creates a key, and writes key and settings into a folder. The
/// code also authenticates the switchboard, so a man in the middle is rejected.
#[derive(Debug, Args)]
pub(crate) struct Enroll {
    /// Folder to create; only you will be able to read it
    #[arg(default_value = "tautline")]
    folder: PathBuf,
    /// Address of the switchboard: a name or an IP address, with its port if that is not 7443
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    switchboard: String,
    /// Run the machine afterwards, like `tautline up`
    #[arg(long)]
    up: bool,
    #[command(flatten)]
    owner: Owner,
}

impl Enroll {
    /// Enrols this machine, writes all files, and prints the commands to run it, or runs it.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let host = Host::parse(&self.switchboard)?;
        let identity = self.key()?;
        let code = ask()?;
        let (server, enrolled) = enroll(&host, code, &identity).await?;
        self.write(&host, server, enrolled)?;
        if !self.up {
            return Ok(());
        }
        Up { folder: self.folder, invite: None }.run().await
    }

    /// Creates the folder and the key, or reads the key of an earlier, unfinished attempt. Fails if
    /// the folder exists without such a key.
    fn key(&self) -> anyhow::Result<Identity> {
        let shown = self.folder.display();
        let file = self.folder.join(NEW_KEY);
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let is_ours = file.exists();
                if !is_ours {
                    bail!("{shown} exists already and is left as it is; choose another name");
                }
                return keys::read(&file);
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot make the folder {shown}"));
            }
        }
        keys::create(&file)?;
        keys::read(&file)
    }

    fn write(&self, host: &Host, server: PublicKey, enrolled: Enrolled) -> anyhow::Result<()> {
        let Enrolled { role, name, peers } = enrolled;
        for name in peers.iter().map(|known| &known.name).chain([&name]) {
            // Names are written to files and to a terminal.
            ensure!(!name.contains(char::is_control), "the switchboard tells a name {name:?}");
        }
        let known = |known: &Known| Ok((known.name.clone(), PublicKey::from_bytes(known.key)?));
        let peers: Vec<(String, PublicKey)> =
            peers.iter().map(known).collect::<anyhow::Result<_>>()?;
        let keys: Vec<PublicKey> = peers.iter().map(|(_, key)| *key).collect();
        let folder = self.folder.display();
        let (role, steps) = match role {
            Role::Vehicle => {
                let answers = self.owner.clone().ask()?;
                let (owner, is_dead_man_required) = answers.settings()?;
                let blanks = answers.blanks_words()?.map_or_else(String::new, |it| it + "\n");
                let machine = answers.stand_in();
                for (file, text) in vehicle_files(&name, host, server, &keys, &owner, machine) {
                    put(&self.folder.join(file), &text)?;
                }
                if !keys.is_empty() {
                    let file = self.folder.join("vehicle.toml");
                    settings::read::<tautline_vehicle::Config>(&file)?.validate()?;
                }
                let steps = format!(
                    "tautline guard --config {folder}/guard.toml\n  \
                     tautline machine --config {folder}/machine.toml\n  \
                     tautline vehicle --config {folder}/vehicle.toml\n\
                     or all at once, with a simulated machine as long as machine.toml is there: tautline up {folder}\n{blanks}{}",
                    dead_man_words(is_dead_man_required)
                );
                ("vehicle", steps)
            }
            Role::Operator => {
                let vehicles: Vec<_> = peers.iter().map(|(name, key)| (&**name, *key)).collect();
                let text = operator_file(&name, host, server, &vehicles);
                let file = self.folder.join("operator.toml");
                put(&file, &text)?;
                settings::read::<tautline_operator::Config>(&file)?.validate()?;
                ("operator", format!("tautline operator --config {folder}/operator.toml"))
            }
        };
        // This is the last step, so that the same key may try again until then.
        fs::rename(self.folder.join(NEW_KEY), self.folder.join(format!("{role}.key")))
            .with_context(|| format!("cannot name the key in {folder}"))?;
        let steps = if self.up { String::new() } else { format!(" Then:\n  {steps}") };
        tell!("This machine is {role} {name}. Key and settings are in {folder}.{steps}");
        match (role, peers.is_empty()) {
            ("vehicle", true) => tell!(
                "No operator is known yet. Enrol one, and put its key into `operators` of {folder}/vehicle.toml: \
                 a vehicle speaks to those alone who are listed there."
            ),
            ("vehicle", false) => tell!(
                "These operators may drive it, by {folder}/vehicle.toml: {}. Take off who should not.",
                peers.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
            ),
            (_, true) => tell!(
                "No vehicle is known yet: when one is, it stands on the console, where you pick it."
            ),
            (_, false) => tell!(
                "A vehicle that was there before drives for this operator when its own list, `operators` in \
                 its vehicle.toml, has this key: {}",
                keys::read(&self.folder.join("operator.key"))?.public()
            ),
        }
        Ok(())
    }
}

/// The switchboard's answer: this machine's role and name, and the other machines that it needs.
struct Enrolled {
    role: Role,
    name: String,
    peers: Vec<Known>,
}

async fn enroll(
    host: &Host,
    code: Code,
    identity: &Identity,
) -> anyhow::Result<(PublicKey, Enrolled)> {
    let mut connection = Connection::by_code(&host.to_string(), code, identity).await?;
    let server = connection.peer_key();
    let Code { number, secret, .. } = code;
    connection.send(&Control::Enroll { number, secret }.encode()).await?;
    let answered = async {
        while let Some(frame) = connection.recv().await? {
            match Control::decode(&frame)? {
                Control::Enrolled { role, name, peers } => {
                    return Ok((server, Enrolled { role, name, peers }));
                }
                // Without a pending invitation, the key is refused like any unknown key.
                Control::Refused { reason_code: Refusal::NotAllowed, .. } => bail!(
                    "this code is not valid: each works once, within ten minutes and three attempts; ask for another"
                ),
                Control::Refused { text, .. } => bail!("the switchboard refuses: {text}"),
                _ => {}
            }
        }
        bail!("the switchboard closed the connection: is it an older build?")
    };
    timeout(ANSWER_MAX, answered).await.context("the switchboard does not answer")?
}

/// Reads the code from standard input; a person at a terminal is asked again if it is mistyped.
fn ask() -> anyhow::Result<Code> {
    let is_person = std::io::stdin().is_terminal();
    loop {
        if is_person {
            let _ = write!(std::io::stderr(), "Code: ");
        }
        let mut line = String::new();
        if std::io::stdin().read_line(&mut line).context("no code can be read")? == 0 {
            bail!("no code was given: it is asked for on standard input");
        }
        match line.parse() {
            Ok(code) => return Ok(code),
            Err(error) if is_person => note!("{error}"),
            Err(error) => return Err(error.into()),
        }
    }
}

fn put(file: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Name of the key's file until all settings are written.
const NEW_KEY: &str = "new.key";
const ANSWER_MAX: Duration = Duration::from_secs(10);
