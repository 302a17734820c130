//! The files that the checks read, in the repository or in a copy of its documents.

use std::fs;
use std::path::{Path, PathBuf};

/// A folder with the repository's layout.
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    pub fn repository() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        Self::at(root.canonicalize().expect("the crate lies in the repository"))
    }

    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// A path relative to the root, for messages.
    pub fn shown<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }

    /// Paths and texts of all documents.
    pub fn documents(&self) -> Vec<(PathBuf, String)> {
        let in_root = fs::read_dir(&self.root).unwrap().map(|entry| entry.unwrap().path());
        let paths = in_root.chain(files(&self.root.join("docs"))).filter(|path| is_kind(path, &["md"]));
        let documents = texts(paths.collect());
        assert!(documents.len() >= 30, "README, CONTRIBUTING and docs/ are found: {documents:?}");
        documents
    }

    /// Paths and texts of other files that show commands: sources, studies, scripts, manifests.
    pub fn other_files(&self) -> Vec<(PathBuf, String)> {
        let folder = |name: &str| files(&self.root.join(name));
        let crates = folder("crates").into_iter().filter(|path| {
            let is_in = |name| path.components().any(|part| part.as_os_str() == name);
            // The snapshots of these checks have wrong commands on purpose.
            let is_own = is_in("documents") && is_in("snapshots");
            is_kind(path, &["snap", "html"]) && !is_own || is_in("src") && is_kind(path, &["rs"])
        });
        let others = ["studies", "scripts", "deploy"].into_iter().flat_map(folder);
        texts(crates.chain(others).chain([self.root.join("Makefile")]).collect())
    }
}

fn is_kind(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|extension| extensions.iter().any(|kind| extension == *kind))
}

/// All files in a folder, sorted.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    entries.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Files that are text, with it.
fn texts(paths: Vec<PathBuf>) -> Vec<(PathBuf, String)> {
    paths.into_iter().filter_map(|path| fs::read_to_string(&path).ok().map(|text| (path, text))).collect()
}
