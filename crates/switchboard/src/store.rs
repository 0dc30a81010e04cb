//! Persistent state of a switchboard, in one file of its folder.

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

/// A store whose committed [`Change`]s survive a kill of the process or the machine at any moment.
///
/// One process at a time opens it. A commit costs a confirmed write to disk: some milliseconds.
#[derive(Debug)]
pub struct Store {
    database: Database,
}

/// Complete content of the store: vehicles and enrolled machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Records by the vehicle's key; a vehicle that is no longer listed keeps its epoch.
    pub vehicles: BTreeMap<PublicKey, Record>,
    /// Enrolled machines by key.
    pub machines: BTreeMap<PublicKey, Machine>,
}

/// An enrolled machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Role of the machine.
    pub role: Role,
    /// Name of the machine, 1 to 64 bytes.
    pub name: String,
}

/// Stored state of a vehicle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Highest epoch of the vehicle's leases, present and past.
    pub epoch: u64,
    /// Current lease, which has that epoch; `None` while the vehicle is free.
    pub lease: Option<KeptLease>,
}

/// Stored state of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLease {
    /// Key of the operator that holds the lease.
    pub operator: PublicKey,
    /// Name under which the two ends were last introduced; `None` before the first introduction.
    pub name: Option<[u8; 16]>,
    /// Begin of the lease in Unix time; integer seconds are stored.
    pub since: Duration,
}

/// A change of the stored state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The new state of a vehicle.
    Vehicle {
        /// Key of the vehicle.
        key: PublicKey,
        /// New stored state of the vehicle.
        record: Record,
    },
    /// The enrolment or removal of a machine.
    Machine {
        /// Key of the machine.
        key: PublicKey,
        /// The machine; `None` if it was removed.
        machine: Option<Machine>,
    },
}

impl Store {
    /// Opens the store in `folder`; creates both if missing.
    ///
    /// # Errors
    /// One line: the folder cannot be used, another switchboard uses it, or its content is damaged
    /// or of a later build.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.with_context(|| format!("state: cannot make the folder {}", folder.display()))?;
        let file = folder.join(FILE);
        if !file.exists() {
            Self::make(folder, &file)
                .with_context(|| format!("state: cannot make {}", file.display()))?;
        }
        Self::begin(Database::open(&file))
            .with_context(|| format!("state: cannot use {}", file.display()))
    }

    /// Creates an empty store atomically.
    fn make(folder: &Path, file: &Path) -> anyhow::Result<()> {
        let new = folder.join(NEW_FILE);
        match std::fs::remove_file(&new) {
            // Left by a process that was killed here.
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        Self::write_new(&new, &Kept::default())?;
        std::fs::rename(&new, file)?;
        File::open(folder)?.sync_all()?;
        Ok(())
    }

    /// Creates a store of `kept` in a new file, in the form that [`open`](Self::open) expects.
    /// After an error in writing, the file is removed.
    ///
    /// # Errors
    /// When the file already exists or cannot be written.
    pub fn write_new(file: &Path, kept: &Kept) -> anyhow::Result<()> {
        let cannot = || format!("cannot write {}", file.display());
        let mut open = std::fs::OpenOptions::new();
        let new = open.read(true).write(true).create_new(true).open(file).with_context(cannot)?;
        let write = || Self::begin(Database::builder().create_file(new))?.commit(&kept.changes());
        write().with_context(cannot).inspect_err(|_| {
            // A part of a copy is of no use, and would keep the next attempt from making one.
            let _ = std::fs::remove_file(file);
        })
    }

    /// Opens a store over `backend` instead of a file.
    ///
    /// # Errors
    /// Same as [`open`](Self::open).
    pub fn over(backend: impl StorageBackend) -> anyhow::Result<Self> {
        Self::begin(Database::builder().create_with_backend(backend))
    }

    /// Opens a store in memory, which ends with the process.
    ///
    /// # Errors
    /// When there is not enough memory.
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

    /// Sets the current form for a new store or one of form 1; refuses any other form.
    fn settle_form(&self) -> anyhow::Result<()> {
        let transaction = self.database.begin_write()?;
        {
            let mut meta = transaction.open_table(META)?;
            let schema = meta.get(SCHEMA_KEY)?.map(|found| found.value());
            match schema {
                Some(SCHEMA) => return Ok(()),
                // A new store is empty. Form 1 has vehicles' records in the current format, and no
                // other tables.
                None | Some(1) => meta.insert(SCHEMA_KEY, SCHEMA)?,
                Some(other) => bail!(
                    "it has format {other} and this build needs format {SCHEMA}: use the build \
                     that wrote it, or restore a backup of format {SCHEMA}"
                ),
            };
            transaction.open_table(VEHICLES)?;
            transaction.open_table(MACHINES)?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// Loads the complete content.
    ///
    /// # Errors
    /// When it cannot be read or is damaged.
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

    /// Commits changes, all or none; they are on disk when it returns.
    ///
    /// # Errors
    /// When the disk fails: the previous content remains.
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
    /// Returns the changes that create this content from an empty store.
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

    /// Applies a change to this content in memory.
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

/// File name of the store in its folder.
const FILE: &str = "switchboard.redb";
/// File name of a store being created.
const NEW_FILE: &str = "switchboard.redb.new";
const DAMAGED: &str = "it is not a switchboard's store, or is damaged: restore a backup, or move \
                       it away; then epochs continue from those that the vehicles report";
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const VEHICLES: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("vehicles");
const MACHINES: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("machines");
const SCHEMA_KEY: &str = "form";
/// Number of the current form of the content. A store of form 1, which has no machines, is
/// converted; any other is refused.
const SCHEMA: u64 = 2;

#[cfg(test)]
mod tests;
