//! The build script's knowledge of the sources' commit, in repositories made here, and of the machine's glibc. Needs `git`.

#[path = "../build/linker.rs"]
mod linker;
#[path = "../build/source.rs"]
mod source;

use source::{Source, VARIABLE, all_inputs, sources};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs Git with a fixed identity and without the user's configuration.
fn git(folder: &Path, arguments: &[&str]) {
    let identity =
        ["-c", "user.name=Tester", "-c", "user.email=tester@example.com", "-c", "init.defaultBranch=main"];
    let output = Command::new("git")
        .args(identity)
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_COMMITTER_DATE", "2026-11-27T12:00:00Z")
        .output()
        .expect("git is installed");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A repository with one commit of a source and a document.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("crates/a/src")).unwrap();
    fs::write(folder.path().join("crates/a/src/lib.rs"), "one\n").unwrap();
    fs::write(folder.path().join("README.md"), "one\n").unwrap();
    git(folder.path(), &["init", "--quiet"]);
    git(folder.path(), &["add", "."]);
    git(folder.path(), &["commit", "--quiet", "--message", "one"]);
    folder
}

#[test]
fn clean_and_modified_trees_are_told_apart() {
    let repository = repository();
    let source = || Source::of_repository(repository.path()).unwrap();
    let clean = source();
    assert!(!clean.modified && clean.commit.len() == 40 && clean.date == "2026-11-27", "{clean:?}");
    fs::write(repository.path().join("untracked"), "").unwrap();
    assert_eq!(source(), clean);
    fs::write(repository.path().join("README.md"), "two\n").unwrap();
    assert_eq!(source(), Source { modified: true, ..clean.clone() });
    git(repository.path(), &["commit", "--quiet", "--all", "--message", "two"]);
    let next = source();
    assert!(!next.modified && next.commit != clean.commit, "{next:?}");
}

/// Packages have the commit of their own sources, not that of a repository in which an archive was unpacked.
#[test]
fn commit_of_packages_is_that_of_their_own_repository() {
    let repository = repository();
    let inner = repository.path().join("unpacked");
    fs::create_dir(&inner).unwrap();
    for folder in [repository.path(), &inner] {
        fs::write(folder.join("Cargo.toml"), "version = \"1.0.0\"\n").unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/dist/program.sh");
    let commit_in = |folder: &Path| {
        let mut command = Command::new("bash");
        command.args(["-c", "source \"$0\" && echo \"commit $commit\""]).arg(&script).current_dir(folder);
        let output = command.env_remove(VARIABLE).output().expect("bash is installed");
        String::from_utf8(output.stdout).unwrap()
    };
    let own = Source::of_repository(repository.path()).unwrap().commit;
    assert_eq!(commit_in(repository.path()), format!("commit {own}\n"));
    assert_eq!(commit_in(&inner), "commit \n");
}

#[test]
fn linked_work_tree_has_a_state_and_inputs_of_its_own() {
    let repository = repository();
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    git(repository.path(), &["worktree", "add", "--quiet", "-b", "other", tree.to_str().unwrap()]);
    fs::write(tree.join("README.md"), "two\n").unwrap();
    assert!(Source::of_repository(&tree).unwrap().modified);
    assert!(!Source::of_repository(repository.path()).unwrap().modified);
    let existing: Vec<_> = all_inputs(&tree).into_iter().filter(|path| path.exists()).collect();
    for name in [
        "worktrees/tree/HEAD",
        "worktrees/tree/index",
        "worktrees/tree/logs/HEAD",
        "refs/heads/other",
        "README.md",
    ] {
        assert!(existing.iter().any(|path| path.ends_with(name)), "{name}: {existing:?}");
    }
}

#[test]
fn tests_watch_sources_only() {
    let repository = repository();
    let watched = sources(repository.path());
    assert_eq!(watched, [repository.path().join("crates/a/src/lib.rs")]);
}

#[test]
fn commit_is_unknown_outside_of_the_root_of_a_work_tree() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(Source::of_repository(folder.path()), None);
    assert_eq!((sources(folder.path()), all_inputs(folder.path())), (Vec::new(), Vec::new()));
    let repository = repository();
    assert_eq!(
        Source::of_repository(&repository.path().join("crates")),
        None,
        "a copy in another repository"
    );
}

/// Runs the tests' own program: its commit depends on where it was compiled, its form does not.
#[test]
fn version_names_commit_and_state_of_the_tree() {
    let output = Command::new(env!("CARGO_BIN_EXE_meshmeter")).arg("--version").output().unwrap();
    let line = String::from_utf8(output.stdout).unwrap();
    let rest =
        line.strip_prefix(concat!("meshmeter ", env!("CARGO_PKG_VERSION"), " (")).expect("name and version");
    let source = rest.strip_suffix(")\n").expect("one line");
    assert!(source == "commit unknown" || Source::parse(source).is_ok(), "{line}");
}

#[test]
fn variable_names_commit_date_and_state() {
    let source = |commit: &str, date: &str, modified| Source {
        commit: commit.to_owned(),
        date: date.to_owned(),
        modified,
    };
    assert_eq!(Source::parse("6f9fdd3b"), Ok(source("6f9fdd3b", "", false)));
    assert_eq!(Source::parse("6f9fdd3b 2026-11-27"), Ok(source("6f9fdd3b", "2026-11-27", false)));
    assert_eq!(Source::parse("6f9fdd3b, modified"), Ok(source("6f9fdd3b", "", true)));
    assert_eq!(VARIABLE, "MESHMETER_COMMIT", "docs/install.md names it");
    for text in ["v0.1.0", "6f9f", "6f9fdd3b yesterday", "6f9fdd3b modified"] {
        assert!(Source::parse(text).unwrap_err().contains("is not a commit"), "{text}");
    }
}

#[test]
fn version_of_libc_is_read() {
    assert_eq!(linker::parse("glibc 2.36\n"), Some((2, 36)));
    assert_eq!(linker::parse("glibc 2.40.1"), Some((2, 40)));
    for text in ["", "musl", "glibc", "glibc two", "glibc 2"] {
        assert_eq!(linker::parse(text), None, "{text}");
    }
    assert!(linker::options_for_size(Path::new("build")).is_empty(), "nothing names a target here");
}
