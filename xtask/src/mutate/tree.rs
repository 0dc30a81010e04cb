//! A checkout of the last commit in target/mutate with every mutation built in; the work tree is
//! not touched.
//!
//! An expression `from` becomes `(if mutation_name() { to } else { from })`. The file gets a
//! function that returns whether the variable [`CHOSEN`] names the mutation. One build thus
//! contains all of them, and without the variable the code runs unchanged.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, bail, ensure};

use super::list::Mutation;

/// Environment variable that names the active mutation.
pub(super) const CHOSEN: &str = "TAUTLINE_MUTATION";

/// The checkout, and the folders next to it.
#[derive(Debug)]
pub(super) struct Tree {
    /// Absolute path of target/mutate in the repository.
    folder: PathBuf,
    /// Hash of the product's committed files in hexadecimal: equal names mean equal code. The
    /// mutations are not part of it.
    pub(super) name: String,
}

impl Tree {
    /// Checks out the last commit over an earlier checkout, and builds the mutations in.
    ///
    /// # Errors
    /// If the product has uncommitted changes, git fails, or a mutation cannot be applied.
    pub(super) fn check_out(mutations: &[Mutation]) -> Result<Self> {
        let changed = git(&["status", "--porcelain", "--", "crates", "Cargo.toml", "Cargo.lock"])?;
        ensure!(changed.is_empty(), "commit first, for a commit is what is mutated:\n{changed}");
        let folder = std::env::current_dir()?.join("target/mutate");
        let files = git(&["ls-tree", "-r", "HEAD", "--", "crates", "Cargo.toml", "Cargo.lock"])?;
        let tree = Self { folder, name: name_of(&files) };
        let left = tree.armed_files(mutations);
        let root = tree.root();
        let path = root.to_str().context("the repository's path is no text")?;
        if root.join(".git").exists() {
            git(&[
                "-C",
                path,
                "checkout",
                "--quiet",
                "--force",
                "--detach",
                &git(&["rev-parse", "HEAD"])?,
            ])?;
        } else {
            // Force twice: git may remember a worktree that was removed with target/.
            git(&["worktree", "add", "--quiet", "--force", "--force", "--detach", path, "HEAD"])?;
        }
        tree.arm(mutations, &left)?;
        let page = std::env::current_dir()?.join("console/dist");
        ensure!(page.is_dir(), "console/dist is missing: make console");
        let link = root.join("console/dist");
        if std::fs::symlink_metadata(&link).is_err() {
            std::os::unix::fs::symlink(&page, &link).context("console/dist of the checkout")?;
        }
        Ok(tree)
    }

    /// Returns the checkout's root.
    pub(super) fn root(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// Returns cargo's target folder of the checkout.
    pub(super) fn build(&self) -> PathBuf {
        self.folder.join("build")
    }

    /// Returns the results folder of a mutation.
    pub(super) fn results(&self, name: &str) -> PathBuf {
        self.folder.join("results").join(name)
    }

    /// Returns the file of stored outcomes.
    pub(super) fn kept(&self) -> PathBuf {
        self.folder.join("kept.json")
    }

    /// Returns the files of these mutations as an earlier run left them; files that do not exist
    /// are left out.
    fn armed_files(&self, mutations: &[Mutation]) -> Left {
        let left = |mutation: &Mutation| {
            let path = self.root().join(&mutation.file);
            let written_at = path.metadata().and_then(|file| file.modified()).ok()?;
            Some((mutation.file.clone(), (std::fs::read_to_string(&path).ok()?, written_at)))
        };
        mutations.iter().filter_map(left).collect()
    }

    /// Builds the mutations into their files. A file that is unchanged since an earlier run keeps
    /// its modification time, so that cargo recompiles only changed code.
    fn arm(&self, mutations: &[Mutation], left: &Left) -> Result<()> {
        let mut files: BTreeMap<&str, Vec<&Mutation>> = BTreeMap::new();
        for mutation in mutations {
            files.entry(&mutation.file).or_default().push(mutation);
        }
        for (file, mutations) in files {
            let path = self.root().join(file);
            let text = std::fs::read_to_string(&path).with_context(|| file.to_owned())?;
            let text = armed(text, &mutations).with_context(|| file.to_owned())?;
            std::fs::write(&path, &text).with_context(|| file.to_owned())?;
            if let Some((_, written_at)) = left.get(file).filter(|(left, _)| *left == text) {
                let file = std::fs::File::options().append(true).open(&path)?;
                file.set_modified(*written_at)?;
            }
        }
        Ok(())
    }
}

/// Contents and modification times of files, by path from the checkout's root.
type Left = BTreeMap<String, (String, SystemTime)>;

/// Returns a file's text with its mutations built in, and with a function for each that returns
/// whether it is chosen.
///
/// # Errors
/// If the place of a mutation is not in the text exactly once.
fn armed(mut text: String, mutations: &[&Mutation]) -> Result<String> {
    for mutation in mutations {
        let Mutation { name, from, to, .. } = mutation;
        let place = mutation.place();
        ensure!(text.matches(place).count() == 1, "{place:?} does not stand there once");
        let function = format!("mutation_{}", name.replace('-', "_"));
        let both = format!("(if {function}() {{ {to} }} else {{ {from} }})");
        text = text.replacen(place, &place.replacen(from.as_str(), &both, 1), 1);
        // The crate may be `no_std`.
        write!(
            text,
            "\n#[inline]\nfn {function}() -> bool {{\n    \
             extern crate std as with_std;\n    \
             static IS: with_std::sync::OnceLock<bool> = with_std::sync::OnceLock::new();\n    \
             *IS.get_or_init(|| with_std::env::var_os({CHOSEN:?}).is_some_and(|name| name == {name:?}))\n}}\n"
        )?;
    }
    Ok(text)
}

/// Returns the hash of git's list of files, as 16 hexadecimal digits. Tests, benches, examples and
/// documents are left out, because they are not in the binary.
fn name_of(files: &str) -> String {
    let is_read = |line: &&str| {
        let aside = ["/tests/", "/benches/", "/examples/"].iter().any(|part| line.contains(part));
        !aside && !line.ends_with("/tests.rs") && !line.ends_with(".md")
    };
    let mut hasher = DefaultHasher::new();
    files.lines().filter(is_read).for_each(|line| line.hash(&mut hasher));
    format!("{:016x}", hasher.finish())
}

fn git(arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").args(arguments).output().context("git")?;
    if !output.status.success() {
        bail!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn mutation(name: &str, place: Option<&str>, from: &str, to: &str) -> Mutation {
        Mutation {
            name: name.to_owned(),
            what: "another number".to_owned(),
            file: "five.rs".to_owned(),
            place: place.map(str::to_owned),
            from: from.to_owned(),
            to: to.to_owned(),
        }
    }

    const CODE: &str = "fn main() {\n    let five = 5;\n    println!(\"{}\", five + 3 * 10);\n}\n";

    #[test]
    fn one_program_has_every_mutation_and_selects_one_at_start() {
        let folder = std::env::temp_dir().join(format!("tautline-armed-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let four = mutation("four", Some("five = 5;"), "5", "4");
        let less = mutation("a-tenth", None, "3 * 10", "3");
        let text = armed(CODE.to_owned(), &[&four, &less]).unwrap();
        let (file, program) = (folder.join("five.rs"), folder.join("five"));
        fs::write(&file, text).unwrap();
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut make = Command::new(rustc);
        make.args(["--edition=2024", "--allow=warnings"]).arg(&file).arg("-o").arg(&program);
        assert!(make.status().unwrap().success());
        let says = |chosen: Option<&str>| {
            let mut command = Command::new(&program);
            command.env_remove(CHOSEN).envs(chosen.map(|name| (CHOSEN, name)));
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        };
        assert_eq!(says(None), "35\n");
        assert_eq!(says(Some("four")), "34\n");
        assert_eq!(says(Some("a-tenth")), "8\n");
        assert_eq!(says(Some("another")), "35\n");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_expression_that_does_not_occur_once_is_refused() {
        let six = mutation("six", None, "6", "7");
        let told = armed(CODE.to_owned(), &[&six]).unwrap_err().to_string();
        assert_eq!(told, "\"6\" does not stand there once");
    }

    #[test]
    fn a_file_that_is_as_it_was_left_counts_as_old() {
        let folder = std::env::temp_dir().join(format!("tautline-tree-{}", std::process::id()));
        let tree = Tree { folder: folder.clone(), name: String::new() };
        fs::create_dir_all(tree.root()).unwrap();
        let file = tree.root().join("five.rs");
        let mutations = [mutation("four", Some("five = 5;"), "5", "4")];
        let arm = |code: &str| {
            let left = tree.armed_files(&mutations);
            fs::write(&file, code).unwrap();
            tree.arm(&mutations, &left).unwrap();
            file.metadata().unwrap().modified().unwrap()
        };
        arm(CODE);
        let old = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        fs::File::options().append(true).open(&file).unwrap().set_modified(old).unwrap();
        assert_eq!(arm(CODE), old);
        assert_ne!(arm(&CODE.replace("10", "11")), old);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn tests_and_pages_are_none_of_the_code() {
        let files = "100644 blob 5\tcrates/fec/src/five.rs\n100644 blob 6\tcrates/fec/tests/five.rs\n\
                     100644 blob 7\tcrates/fec/src/five/tests.rs\n100644 blob 8\tcrates/fec/README.md\n";
        for (other, is_other) in [("5", true), ("6", false), ("7", false), ("8", false)] {
            let changed = files.replace(&format!("blob {other}"), "blob 9");
            assert_eq!(name_of(&changed) != name_of(files), is_other, "{other}");
        }
    }
}
