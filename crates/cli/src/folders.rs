//! Folders of a process's files and sockets: systemd's folders, else next to the settings, else
//! XDG's folders.

use std::ffi::OsString;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use tautline_net::datagram::Address;

/// Folders that a process may write to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folders {
    /// Folder of the settings, where earlier builds stored everything.
    beside: PathBuf,
    /// State folder given by the service manager (`STATE_DIRECTORY`), if there is one.
    state: Option<PathBuf>,
    /// State folder of the user, by XDG, used if the settings' folder is not writable.
    state_of_user: Option<PathBuf>,
    /// Runtime folder given by the service manager (`RUNTIME_DIRECTORY`), for sockets, if there is
    /// one.
    runtime: Option<PathBuf>,
    runtime_of_user: Option<PathBuf>,
    /// Folder of the sockets that the default settings name.
    of_defaults: PathBuf,
}

impl Folders {
    /// Returns the folders of a process with these settings, according to its environment.
    pub(crate) fn of(file: Option<&Path>) -> Self {
        Self::by(file, |name| std::env::var_os(name))
    }

    fn by(file: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let beside = file.and_then(Path::parent).map(Path::to_path_buf).unwrap_or_default();
        // Several folders are separated by colons; the first is the unit's own.
        let folder = |name: &str| {
            let folders = variable(name)?;
            std::env::split_paths(&folders).next().filter(|path| path.is_absolute())
        };
        let machine = beside.file_name().map(|name| Path::new("tautline").join(name));
        let machine = machine.unwrap_or_else(|| "tautline".into());
        let home = || Some(folder("HOME")?.join(".local/state"));
        Self {
            state: folder("STATE_DIRECTORY"),
            state_of_user: folder("XDG_STATE_HOME").or_else(home).map(|it| it.join(&machine)),
            runtime: folder("RUNTIME_DIRECTORY"),
            runtime_of_user: folder("XDG_RUNTIME_DIR").map(|it| it.join(&machine)),
            of_defaults: RUNTIME.into(),
            beside,
        }
    }

    /// Replaces the paths of files and folders that a process keeps by where it may write them.
    /// Absolute paths stay as they are; what exists next to the settings stays there. All else goes
    /// to the service manager's state folder, without one next to the settings, and to the user's
    /// state folder if the process may not write there.
    pub(crate) fn keep<'a>(&self, paths: impl IntoIterator<Item = &'a mut PathBuf>) {
        for path in paths {
            *path = self.kept(path);
        }
    }

    fn kept(&self, path: &Path) -> PathBuf {
        let beside = self.beside.join(path);
        if path.is_absolute() || beside.exists() {
            return beside;
        }
        match &self.state {
            Some(folder) => folder.join(path),
            None if self.may_write_beside() => beside,
            None => Self::made(self.state_of_user.as_deref(), path).unwrap_or(beside),
        }
    }

    /// Replaces the path of a socket to listen on by where the process may create it. If that is
    /// elsewhere than next to the settings, a symbolic link there, if possible, lets others find
    /// it, in place of any file of that name. A UDP address stays as it is.
    pub(crate) fn listen(&self, address: &mut Address) {
        let Address::Path(path) = address else { return };
        let (beside, place) = (self.beside.join(&*path), self.socket(path));
        if path.is_relative() && place != beside && self.may_write_beside() {
            let is_left_behind = std::fs::symlink_metadata(&beside).is_ok();
            if is_left_behind {
                let _ = std::fs::remove_file(&beside);
            }
            if let Err(error) = symlink(&place, &beside) {
                tracing::debug!(%error, beside = %beside.display(), "no name next to the settings");
            }
        }
        *path = place;
    }

    /// Replaces the path of another process's socket by the first place at which it exists: next to
    /// the settings, then in the runtime folders. If it exists in none, the place is that of
    /// [`listen`](Self::listen).
    pub(crate) fn connect(&self, path: Option<&mut PathBuf>) {
        let Some(path) = path else { return };
        let folders =
            [self.runtime.clone(), Some(self.of_defaults.clone()), self.runtime_of_user.clone()];
        let name = path.strip_prefix(&self.of_defaults).unwrap_or(path).to_owned();
        let own = folders.into_iter().flatten().map(|folder| folder.join(&name));
        let mut folders = std::iter::once(self.beside.join(&*path)).chain(own);
        *path = folders.find(|place| place.exists()).unwrap_or_else(|| self.socket(path));
    }

    fn socket(&self, path: &Path) -> PathBuf {
        let beside = self.beside.join(path);
        if let (Ok(name), None) = (path.strip_prefix(&self.of_defaults), &self.runtime) {
            let folders = [Some(self.of_defaults.as_path()), self.runtime_of_user.as_deref()];
            let made = folders.into_iter().filter_map(|folder| Self::made(folder, name));
            let mut written = made.filter(|place| place.parent().is_some_and(may_write));
            return written.next().unwrap_or(beside);
        }
        match &self.runtime {
            _ if path.is_absolute() => beside,
            Some(folder) => folder.join(path),
            None if self.may_write_beside() => beside,
            None => Self::made(self.runtime_of_user.as_deref(), path).unwrap_or(beside),
        }
    }

    /// Returns `path` in `folder`, which is created if missing; `None` without a folder, or if that
    /// fails.
    fn made(folder: Option<&Path>, path: &Path) -> Option<PathBuf> {
        let folder = folder?;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.ok().map(|()| folder.join(path))
    }

    fn may_write_beside(&self) -> bool {
        let here = self.beside.as_os_str().is_empty();
        let folder = if here { Path::new(".") } else { &self.beside };
        may_write(folder)
    }
}

fn may_write(folder: &Path) -> bool {
    access(folder, Access::WRITE_OK).is_ok()
}

/// Folder for sockets, created by the package.
const RUNTIME: &str = "/run/tautline";

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(file: &Path, variables: &[(&str, &Path)]) -> Folders {
        Folders::by(Some(file), |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.as_os_str().to_owned())
        })
    }

    #[test]
    fn state_goes_to_systemds_folder_unless_it_already_exists() {
        let folder = tempfile::tempdir().unwrap();
        let (settings, state) = (folder.path().join("vehicle"), folder.path().join("state"));
        std::fs::create_dir_all(&settings).unwrap();
        std::fs::write(settings.join("epoch"), "7").unwrap();
        let file = settings.join("vehicle.toml");
        let under = |variables: &[(&str, &Path)], path: &str| {
            let mut path = PathBuf::from(path);
            folders(&file, variables).keep([&mut path]);
            path
        };
        let service = [("STATE_DIRECTORY", state.as_path())];
        assert_eq!(under(&service, "latch"), state.join("latch"));
        assert_eq!(under(&service, "epoch"), settings.join("epoch"), "an upgrade loses nothing");
        assert_eq!(under(&service, "/srv/latch"), Path::new("/srv/latch"));
        assert_eq!(under(&[], "latch"), settings.join("latch"));
        let two = std::env::join_paths([&state, &settings]).unwrap();
        assert_eq!(under(&[("STATE_DIRECTORY", Path::new(&two))], "latch"), state.join("latch"));
    }

    #[test]
    fn read_only_settings_use_the_users_own_folders() {
        let folder = tempfile::tempdir().unwrap();
        // Not even root can write there.
        let file = Path::new("/proc/vehicle/vehicle.toml");
        let home = folder.path().join("home");
        let variables = [("HOME", home.as_path()), ("XDG_RUNTIME_DIR", folder.path())];
        let folders = folders(file, &variables);
        let mut latch = PathBuf::from("latch");
        folders.keep([&mut latch]);
        assert_eq!(latch, home.join(".local/state/tautline/vehicle/latch"));
        assert!(latch.parent().unwrap().is_dir());
        let mut socket = "./vehicle.sock".parse().unwrap();
        folders.listen(&mut socket);
        let place = folder.path().join("tautline/vehicle/vehicle.sock");
        assert_eq!(socket, Address::Path(place.clone()));
        std::fs::write(&place, "").unwrap();
        let mut found = PathBuf::from("./vehicle.sock");
        folders.connect(Some(&mut found));
        assert_eq!(found, place);
    }

    #[test]
    fn default_sockets_use_run_or_else_the_users_folder() {
        let folder = tempfile::tempdir().unwrap();
        let at = |of_defaults: &Path| {
            let runtime_of_user = Some(folder.path().join("user"));
            let of_defaults = of_defaults.to_owned();
            let folders = Folders { of_defaults, runtime_of_user, ..Folders::default() };
            let mut socket = Address::Path(folders.of_defaults.join("vehicle.sock"));
            folders.listen(&mut socket);
            socket
        };
        let run = folder.path().join("run");
        assert_eq!(at(&run), Address::Path(run.join("vehicle.sock")));
        assert!(run.is_dir());
        let own = folder.path().join("user/vehicle.sock");
        assert_eq!(at(Path::new("/proc/tautline")), Address::Path(own));
    }

    #[test]
    fn a_socket_of_the_service_managers_folder_has_its_old_name_too() {
        let folder = tempfile::tempdir().unwrap();
        let (settings, run) = (folder.path().join("vehicle"), folder.path().join("run"));
        std::fs::create_dir_all(&settings).unwrap();
        std::fs::create_dir_all(&run).unwrap();
        // Left behind by an earlier build.
        std::fs::write(settings.join("machine.sock"), "").unwrap();
        let file = settings.join("guard.toml");
        let mut address = "./machine.sock".parse().unwrap();
        folders(&file, &[("RUNTIME_DIRECTORY", run.as_path())]).listen(&mut address);
        assert_eq!(address, Address::Path(run.join("machine.sock")));
        std::fs::write(run.join("machine.sock"), "the guard's").unwrap();
        assert_eq!(std::fs::read(settings.join("machine.sock")).unwrap(), b"the guard's");
        // A process that is not a service finds it by the old name.
        let mut path = PathBuf::from("./machine.sock");
        folders(&file, &[]).connect(Some(&mut path));
        assert_eq!(path, settings.join("./machine.sock"));
    }
}
