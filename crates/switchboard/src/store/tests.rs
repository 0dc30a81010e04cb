use std::io;
use std::sync::{Arc, Mutex};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tautline_transport::crypto::Identity;

use super::*;

/// A disk whose process is killed after a number of writes: earlier ones are stored, later ones are
/// not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    left: Arc<Mutex<Option<usize>>>,
}

impl Disk {
    /// Allows this number of writes from now on, or all of them.
    pub(crate) fn kill_after(&self, writes: Option<usize>) {
        *self.left.lock().unwrap() = writes;
    }

    fn write(&self, act: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        if let Some(left) = self.left.lock().unwrap().as_mut() {
            *left = left.checked_sub(1).ok_or_else(|| io::Error::other("killed"))?;
        }
        act(&mut self.bytes.lock().unwrap());
        Ok(())
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let (bytes, offset) = (self.bytes.lock().unwrap(), offset as usize);
        let found = bytes.get(offset..offset + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.write(|bytes| bytes.resize(length as usize, 0))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.write(|_| {})
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write(|bytes| bytes[offset as usize..][..data.len()].copy_from_slice(data))
    }
}

fn key(seed: u8) -> PublicKey {
    Identity::from_seed(&[seed; 32]).public()
}

fn record() -> impl Strategy<Value = Record> {
    let lease = (0..3_u8, option::of(any::<[u8; 16]>()), any::<u64>());
    let lease = lease.prop_map(|(seed, name, seconds)| KeptLease {
        operator: key(seed),
        name,
        since: Duration::from_secs(seconds),
    });
    (any::<u64>(), option::of(lease)).prop_map(|(epoch, lease)| Record { epoch, lease })
}

fn change() -> impl Strategy<Value = Change> {
    let role = prop_oneof![Just(Role::Vehicle), Just(Role::Operator)];
    let machine = (role, "[a-zü]{1,20}").prop_map(|(role, name)| Machine { role, name });
    prop_oneof![
        (0..4_u8, record()).prop_map(|(seed, record)| Change::Vehicle { key: key(seed), record }),
        (0..4_u8, option::of(machine))
            .prop_map(|(seed, machine)| Change::Machine { key: key(seed), machine }),
    ]
}

/// Writes a store in format 1, as earlier builds did.
fn write_first_form(disk: Disk, kept: &BTreeMap<PublicKey, Record>) {
    let database = Database::builder().create_with_backend(disk).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(META).unwrap().insert(SCHEMA_KEY, 1).unwrap();
    transaction.open_table(VEHICLES).unwrap();
    transaction.commit().unwrap();
    let transaction = database.begin_write().unwrap();
    for (key, record) in kept {
        let mut vehicles = transaction.open_table(VEHICLES).unwrap();
        vehicles.insert(key.as_bytes(), record.encode().as_slice()).unwrap();
    }
    transaction.commit().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn killed_at_any_point_every_commit_is_complete_or_absent(
        commits in vec(vec(change(), 1..4), 1..6), kill_after in 0..120_usize
    ) {
        let disk = Disk::default();
        drop(Store::over(disk.clone()).unwrap());
        disk.kill_after(Some(kill_after));
        let (mut before, mut after) = (Kept::default(), Kept::default());
        // It is killed while it opens its file, in a commit, or at the end.
        if let Ok(store) = Store::over(disk.clone()) {
            for changes in &commits {
                changes.iter().cloned().for_each(|change| after.apply(change));
                if store.commit(changes).is_err() {
                    break;
                }
                before = after.clone();
            }
        }
        disk.kill_after(None);
        let store = Store::over(disk).unwrap();
        let kept = store.load().unwrap();
        prop_assert!(kept == before || kept == after, "{kept:?}");
        // The reopened store works as any other.
        let changes = vec![Change::Vehicle { key: key(9), record: Record { epoch: 3, lease: None } }];
        store.commit(&changes).unwrap();
        prop_assert_eq!(store.load().unwrap().vehicles[&key(9)].epoch, 3);
    }

    #[test]
    fn a_store_of_the_first_form_is_migrated_despite_any_kill(
        records in vec(record(), 0..4), kill_after in option::of(0..40_usize)
    ) {
        let vehicles: BTreeMap<_, _> = (0..4).map(key).zip(records).collect();
        let disk = Disk::default();
        write_first_form(disk.clone(), &vehicles);
        disk.kill_after(kill_after);
        drop(Store::over(disk.clone()));
        disk.kill_after(None);
        let mut kept = Kept { vehicles, machines: BTreeMap::new() };
        let store = Store::over(disk.clone()).unwrap();
        prop_assert_eq!(&store.load().unwrap(), &kept);
        // It accepts entries that format 1 did not support, and is converted once.
        let machine = Some(Machine { role: Role::Operator, name: "anna".to_owned() });
        let change = Change::Machine { key: key(9), machine };
        store.commit(std::slice::from_ref(&change)).unwrap();
        kept.apply(change);
        drop(store);
        prop_assert_eq!(Store::over(disk).unwrap().load().unwrap(), kept);
    }

    #[test]
    fn a_backup_comes_back_as_it_was(changes in vec(change(), 0..8)) {
        let mut kept = Kept::default();
        changes.into_iter().for_each(|change| kept.apply(change));
        prop_assert_eq!(Kept::decode(&kept.encode()), Some(kept));
    }

    #[test]
    fn no_bytes_panic_the_readers_and_any_value_read_round_trips(
        bytes in vec(any::<u8>(), 0..200), which in 0..3_u8, seed in 0..9_u8
    ) {
        // Also after a valid key and length.
        let length = u8::try_from(bytes.len()).unwrap();
        let entry = [&[which][..], key(seed).as_bytes(), &[length], &bytes].concat();
        for bytes in [&bytes, &entry] {
            prop_assert!(Kept::decode(bytes).is_none_or(|kept| kept.encode() == **bytes));
        }
        prop_assert!(Record::decode(&bytes).is_none_or(|record| record.encode() == bytes));
        prop_assert!(Machine::decode(&bytes).is_none_or(|machine| machine.encode() == bytes));
    }

    #[test]
    fn a_backup_that_is_cut_off_is_none_or_a_shorter_one(
        changes in vec(change(), 1..4), share in 0.0..1.0
    ) {
        let mut kept = Kept::default();
        changes.into_iter().for_each(|change| kept.apply(change));
        let bytes = kept.encode();
        let cut = &bytes[..(bytes.len() as f64 * share) as usize];
        let count = |kept: Kept| kept.vehicles.len() + kept.machines.len();
        let found = Kept::decode(cut).map_or(0, count);
        prop_assert!(found < count(kept) || bytes.is_empty());
    }
}

#[test]
fn a_file_that_is_no_store_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(FILE);
    for garbage in [&b"garbage"[..], &[0xA5; 100_000], &[0; 4096], &b"redb".repeat(3000)] {
        std::fs::write(&file, garbage).unwrap();
        let error = format!("{:#}", Store::open(folder.path()).unwrap_err());
        assert!(error.starts_with(&format!("state: cannot use {}: ", file.display())), "{error}");
        assert!(error.contains("restore a backup, or move it away"), "{error}");
        assert!(!error.contains('\n'), "{error}");
        assert_eq!(std::fs::read(&file).unwrap(), garbage, "it is left as it is");
    }
}

#[test]
fn a_store_half_created_by_a_killed_process_is_created_again() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(NEW_FILE), [0; 4096]).unwrap();
    assert_eq!(Store::open(folder.path()).unwrap().load().unwrap(), Kept::default());
    assert!(!folder.path().join(NEW_FILE).exists());
}

#[test]
fn a_store_in_use_or_of_a_later_build_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let refused = || format!("{:#}", Store::open(folder.path()).unwrap_err());
    assert!(refused().ends_with("another switchboard uses it"), "{}", refused());
    let transaction = store.database.begin_write().unwrap();
    transaction.open_table(META).unwrap().insert(SCHEMA_KEY, SCHEMA + 1).unwrap();
    transaction.commit().unwrap();
    drop(store);
    assert!(refused().contains("it has format 3 and this build needs format 2"), "{}", refused());
}

#[test]
fn a_backup_is_a_store_and_never_written_over_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(FILE);
    let mut kept = Kept::default();
    let lease =
        KeptLease { operator: key(2), name: Some([7; 16]), since: Duration::from_secs(1_000) };
    kept.vehicles.insert(key(1), Record { epoch: 5, lease: Some(lease) });
    Store::write_new(&file, &kept).unwrap();
    assert!(Store::write_new(&file, &Kept::default()).is_err());
    assert_eq!(Store::open(folder.path()).unwrap().load().unwrap(), kept);
}
