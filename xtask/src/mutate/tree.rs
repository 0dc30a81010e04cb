//! A checkout of the last commit in target/mutate, in which constants are changed: nothing here is touched.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::list::Mutation;

/// The checkout, and the folders beside it.
#[derive(Debug)]
pub(super) struct Tree {
    /// target/mutate of the repository, absolute.
    folder: PathBuf,
    /// What git calls the product's code: the same name, the same code.
    pub(super) name: String,
}

impl Tree {
    /// Checks the last commit out, over what an earlier run has left.
    ///
    /// # Errors
    /// When the product has changes that are not committed, or git fails.
    pub(super) fn check_out() -> Result<Self> {
        let changed = git(&["status", "--porcelain", "--", "crates", "Cargo.toml", "Cargo.lock"])?;
        ensure!(changed.is_empty(), "commit first, for a commit is what is mutated:\n{changed}");
        let folder = std::env::current_dir()?.join("target/mutate");
        let tree = Self { folder, name: git(&["rev-parse", "HEAD:crates"])? };
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
            // Twice forced: git may know of one that was removed with target/.
            git(&["worktree", "add", "--quiet", "--force", "--force", "--detach", path, "HEAD"])?;
        }
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

    /// Returns where all builds go: they have everything in common but the mutation.
    pub(super) fn build(&self) -> PathBuf {
        self.folder.join("build")
    }

    /// Returns where results, of a mutation by that name, go.
    pub(super) fn results(&self, name: &str) -> PathBuf {
        self.folder.join("results").join(name)
    }

    /// Returns where it is kept what came of all.
    pub(super) fn kept(&self) -> PathBuf {
        self.folder.join("kept.json")
    }

    /// Changes the constant.
    ///
    /// # Errors
    /// When what is to be changed does not stand there once.
    pub(super) fn apply(&self, mutation: &Mutation) -> Result<()> {
        let Mutation { file, from, to, .. } = mutation;
        let path = self.root().join(file);
        let text = std::fs::read_to_string(&path).with_context(|| file.clone())?;
        ensure!(text.matches(from.as_str()).count() == 1, "{file} has not {from:?} once");
        std::fs::write(&path, text.replacen(from.as_str(), to, 1)).with_context(|| file.clone())
    }

    /// Takes the change back.
    ///
    /// # Errors
    /// When git fails.
    pub(super) fn undo(&self, mutation: &Mutation) -> Result<()> {
        let root = self.root();
        let path = root.to_str().context("the repository's path is no text")?;
        git(&["-C", path, "checkout", "--quiet", "--force", "--", &mutation.file]).map(drop)
    }
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

    #[test]
    fn a_change_is_made_once_and_taken_back() {
        let folder = std::env::temp_dir().join(format!("tautline-tree-{}", std::process::id()));
        let tree = Tree { folder: folder.clone(), name: String::new() };
        fs::create_dir_all(tree.root()).unwrap();
        let root = tree.root().to_str().unwrap().to_owned();
        let file = tree.root().join("five.rs");
        fs::write(&file, "const FIVE: u32 = 5;\n").unwrap();
        git(&["-C", &root, "init", "--quiet"]).unwrap();
        git(&["-C", &root, "add", "five.rs"]).unwrap();
        let identity = ["-c", "user.name=five", "-c", "user.email=five@example.org"];
        git(&[&["-C", &root], &identity[..], &["commit", "--quiet", "-m", "Five"]].concat())
            .unwrap();

        let mutation = Mutation {
            name: "five".to_owned(),
            what: "four for five".to_owned(),
            file: "five.rs".to_owned(),
            from: "u32 = 5".to_owned(),
            to: "u32 = 4".to_owned(),
            turns_red: Vec::new(),
            build: None,
        };
        tree.apply(&mutation).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "const FIVE: u32 = 4;\n");
        let told = tree.apply(&mutation).unwrap_err().to_string();
        assert_eq!(told, "five.rs has not \"u32 = 5\" once");
        tree.undo(&mutation).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "const FIVE: u32 = 5;\n");
        fs::remove_dir_all(&folder).unwrap();
    }
}
