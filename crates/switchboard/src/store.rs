//! What a switchboard keeps over a restart, in one file of its folder.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition,
};
use tautline_message::Role;
use tautline_transport::crypto::PublicKey;

mod codec;

/// The store: every [`Change`] that was committed is there again after the process, or the machine, was
/// killed at any moment.
///
/// One process at a time has it open. A commit costs a write to disk and its confirmation: some milliseconds.
#[derive(Debug)]
pub struct Store {
    database: Database,
}

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// By vehicle's key; a vehicle that is no longer listed keeps its epoch.
    pub vehicles: BTreeMap<PublicKey, Record>,
    /// Those who were let in by a code.
    pub machines: BTreeMap<PublicKey, Machine>,
}

/// A machine that was let in by a code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// What it is.
    pub role: Role,
    /// Its name, 1 to 64 bytes.
    pub name: String,
}

/// What is kept of a vehicle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The highest of any lease of it.
    pub epoch: u64,
    /// Its present lease, of that epoch.
    pub lease: Option<KeptLease>,
}

/// What is kept of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLease {
    /// The key of the operator who has it.
    pub operator: PublicKey,
    /// The name under which the two were introduced last.
    pub name: Option<[u8; 16]>,
    /// Since when, in Unix time; whole seconds are kept.
    pub since: Duration,
}

/// A change of what is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// This is known of a vehicle now.
    Vehicle {
        /// Its key.
        key: PublicKey,
        /// What is known.
        record: Record,
    },
    /// This machine was let in by a code, or is no longer.
    Machine {
        /// Its key.
        key: PublicKey,
        /// What it is, unless it was taken off.
        machine: Option<Machine>,
    },
}

impl Store {
    /// Opens the store in `folder`; makes both if they are not there.
    ///
    /// # Errors
    /// One line: the folder cannot be used, another switchboard uses it, or what is in it was damaged, or
    /// written by a later build.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.with_context(|| format!("state: cannot make the folder {}", folder.display()))?;
        let file = folder.join(FILE);
        if !file.exists() {
            Self::make(folder, &file)
                .with_context(|| format!("state: cannot make {}", file.display()))?;
        }
        Self::begin(Database::open(&file))
            .with_context(|| format!("state: {} cannot be used", file.display()))
    }

    /// Makes an empty store, which is there as a whole or not at all.
    fn make(folder: &Path, file: &Path) -> anyhow::Result<()> {
        let new = folder.join(NEW_FILE);
        match std::fs::remove_file(&new) {
            // A process that was killed here has left it.
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        Self::write_new(&new, &Kept::default())?;
        std::fs::rename(&new, file)?;
        File::open(folder)?.sync_all()?;
        Ok(())
    }

    /// Makes a store of `kept` in a new file, as [`open`](Self::open) finds it in a folder.
    ///
    /// # Errors
    /// When the file is there already, or cannot be written.
    pub fn write_new(file: &Path, kept: &Kept) -> anyhow::Result<()> {
        let written = || {
            let new =
                std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(file)?;
            let store = Self::begin(Database::builder().create_file(new))?;
            store.commit(&kept.changes())
        };
        written().with_context(|| format!("cannot write {}", file.display()))
    }

    /// Opens a store over `backend`, in a file's place.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn over(backend: impl StorageBackend) -> anyhow::Result<Self> {
        Self::begin(Database::builder().create_with_backend(backend))
    }

    /// Opens a store that is gone with the process.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn in_memory() -> anyhow::Result<Self> {
        Self::over(redb::backends::InMemoryBackend::new())
    }

    fn begin(opened: Result<Database, DatabaseError>) -> anyhow::Result<Self> {
        let store = match opened {
            Ok(database) => Self { database },
            Err(DatabaseError::DatabaseAlreadyOpen) => bail!("another switchboard uses it"),
            Err(DatabaseError::Storage(redb::StorageError::Io(error)))
                if error.kind() != io::ErrorKind::InvalidData =>
            {
                return Err(error.into());
            }
            Err(error) => bail!("{DAMAGED} ({})", in_one_line(&error)),
        };
        store.settle_form()?;
        Ok(store)
    }

    /// Gives a new store, or one of the first form, the present form; of another form nothing is read.
    fn settle_form(&self) -> anyhow::Result<()> {
        let transaction = self.database.begin_write()?;
        {
            let mut meta = transaction.open_table(META)?;
            let schema = meta.get(SCHEMA_KEY)?.map(|found| found.value());
            match schema {
                Some(SCHEMA) => return Ok(()),
                // Nothing is in a store that was made just now; and vehicles' records are as they were in form 1,
                // which had nothing beside.
                None | Some(1) => meta.insert(SCHEMA_KEY, SCHEMA)?,
                Some(other) => bail!(
                    "it has form {other} and this build knows form {SCHEMA}: use the build that wrote it, or \
                     put a backup of form {SCHEMA} in its place"
                ),
            };
            transaction.open_table(VEHICLES)?;
            transaction.open_table(MACHINES)?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// Returns all that is kept.
    ///
    /// # Errors
    /// When it cannot be read, or was damaged.
    pub fn load(&self) -> anyhow::Result<Kept> {
        let mut kept = Kept::default();
        let transaction = self.database.begin_read()?;
        for entry in transaction.open_table(VEHICLES)?.iter()? {
            let (key, record) = entry?;
            let key = PublicKey::from_bytes(*key.value()).ok().context(DAMAGED)?;
            let record = Record::decode(record.value()).context(DAMAGED)?;
            kept.vehicles.insert(key, record);
        }
        for entry in transaction.open_table(MACHINES)?.iter()? {
            let (key, machine) = entry?;
            let key = PublicKey::from_bytes(*key.value()).ok().context(DAMAGED)?;
            let machine = Machine::decode(machine.value()).context(DAMAGED)?;
            kept.machines.insert(key, machine);
        }
        Ok(kept)
    }

    /// Writes changes down, all or none; when it returns they are on disk.
    ///
    /// # Errors
    /// When the disk takes no more: what was there before is there still.
    pub fn commit(&self, changes: &[Change]) -> anyhow::Result<()> {
        let transaction = self.database.begin_write()?;
        {
            let mut vehicles = transaction.open_table(VEHICLES)?;
            let mut machines = transaction.open_table(MACHINES)?;
            for change in changes {
                match change {
                    Change::Vehicle { key, record } => {
                        vehicles.insert(key.as_bytes(), record.encode().as_slice())?;
                    }
                    Change::Machine { key, machine: Some(machine) } => {
                        machines.insert(key.as_bytes(), machine.encode().as_slice())?;
                    }
                    Change::Machine { key, machine: None } => {
                        machines.remove(key.as_bytes())?;
                    }
                }
            }
        }
        transaction.commit()?;
        Ok(())
    }
}

impl Kept {
    /// Returns the changes that make this of nothing.
    pub fn changes(&self) -> Vec<Change> {
        let change = |(key, record): (&PublicKey, &Record)| Change::Vehicle {
            key: *key,
            record: record.clone(),
        };
        let machine = |(key, machine): (&PublicKey, &Machine)| Change::Machine {
            key: *key,
            machine: Some(machine.clone()),
        };
        self.vehicles.iter().map(change).chain(self.machines.iter().map(machine)).collect()
    }

    /// Makes a change.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Vehicle { key, record } => {
                self.vehicles.insert(key, record);
            }
            Change::Machine { key, machine: Some(machine) } => {
                self.machines.insert(key, machine);
            }
            Change::Machine { key, machine: None } => {
                self.machines.remove(&key);
            }
        }
    }
}

fn in_one_line(error: &impl ToString) -> String {
    error.to_string().replace('\n', " ")
}

/// The store's name in its folder.
const FILE: &str = "switchboard.redb";
/// The same before it is one.
const NEW_FILE: &str = "switchboard.redb.new";
const DAMAGED: &str = "it is no store of a switchboard, or was damaged: put a backup in its place, or move it \
                       away: then epochs go on from what the vehicles tell";
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const VEHICLES: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("vehicles");
const MACHINES: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("machines");
const SCHEMA_KEY: &str = "form";
/// The form of what is kept. The first had no machines; of no other form is anything read.
const SCHEMA: u64 = 2;

#[cfg(test)]
mod tests;
