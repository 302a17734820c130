//! Commit of the sources, and whether they differ from it.
//!
//! Uses the `git` command. Without it, or if the sources are not the root of a work tree (an archive, or a copy inside another
//! repository), the commit is unknown. Everything works in linked work trees: Git is asked for the paths of its files.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Environment variable with the commit, for builds from an archive.
pub const VARIABLE: &str = "MESHMETER_COMMIT";

/// Suffix of [`VARIABLE`] if tracked files differ.
const MODIFIED: &str = ", modified";
/// Sources of the program, as Git's path patterns.
const SOURCES: [&str; 6] = [
    "Cargo.lock",
    "Cargo.toml",
    "components",
    "studies",
    ":(glob)crates/*/Cargo.toml",
    ":(glob)crates/*/src/**",
];

/// State of the sources.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Source {
    /// In hexadecimal; empty if unknown.
    pub commit: String,
    /// Day of the commit, such as `2026-11-27`; empty if unknown.
    pub date: String,
    /// True if tracked files differ from the commit.
    pub modified: bool,
}

impl Source {
    /// Reads the variable: a commit, optionally with its day and `, modified`, as `meshmeter --version` prints them.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (rest, modified) = text.strip_suffix(MODIFIED).map_or((text, false), |rest| (rest, true));
        let (commit, date) = rest.split_once(' ').unwrap_or((rest, ""));
        let is_commit =
            (7..=64).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_date = date.is_empty()
            || date.len() == 10 && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        if is_commit && is_date {
            return Ok(Self { commit: commit.to_owned(), date: date.to_owned(), modified });
        }
        Err(format!("`{text}` is not a commit such as `6f9fdd3b 2026-11-27` or `6f9fdd3b{MODIFIED}`"))
    }

    /// The state of the work tree at `root`; `None` if it is not one.
    pub fn of_repository(root: &Path) -> Option<Self> {
        let top = git(root, &["rev-parse", "--show-toplevel"])?;
        if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
            return None;
        }
        let head = git(root, &["show", "--no-patch", "--format=%H %cs", "HEAD"])?;
        let (commit, date) = head.split_once(' ')?;
        let changed = git(root, &["status", "--porcelain", "--untracked-files=no"])?;
        Some(Self { commit: commit.to_owned(), date: date.to_owned(), modified: !changed.is_empty() })
    }
}

/// Tracked files that the program is made from.
pub fn sources(root: &Path) -> Vec<PathBuf> {
    tracked(root, &SOURCES)
}

/// Every input of [`Source::of_repository`]: all tracked files, and the files of Git that change with a commit, a checkout or
/// the index.
pub fn all_inputs(root: &Path) -> Vec<PathBuf> {
    let path = |name: &str| git(root, &["rev-parse", "--git-path", name]).map(|path| root.join(path));
    let of_git = ["HEAD", "logs/HEAD", "index", "packed-refs"].into_iter().filter_map(path);
    // Without a reflog, a commit changes the branch's own file.
    let branch = git(root, &["symbolic-ref", "--quiet", "HEAD"]).and_then(|branch| path(&branch));
    of_git.chain(branch).chain(tracked(root, &["."])).collect()
}

fn tracked(root: &Path, patterns: &[&str]) -> Vec<PathBuf> {
    let list = git(root, &[&["ls-files", "-z", "--"], patterns].concat()).unwrap_or_default();
    list.split('\0').filter(|path| !path.is_empty()).map(|path| root.join(path)).collect()
}

/// Output of a Git command in this folder; `None` if it fails. Changes nothing, not even the index.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").arg("--no-optional-locks").args(arguments).current_dir(folder).output().ok()?;
    let text = output.status.success().then(|| String::from_utf8(output.stdout).ok())??;
    Some(text.trim_end_matches('\n').to_owned())
}
