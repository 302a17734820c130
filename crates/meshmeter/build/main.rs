//! Build script: commit and state of the sources, for `meshmeter --version` and results; options of the linker.
//!
//! Only the crate of the command is recompiled when they change; other crates get them from `results`' `Build`. `source.rs`
//! determines them. A program for tests has the state of its last recompilation: a commit alone does not change its sources,
//! and would relink every test.

#![allow(clippy::print_stdout, reason = "Cargo reads it")]

mod linker;
mod source;

use source::{Source, VARIABLE};
use std::env;
use std::path::{Path, PathBuf};

fn main() {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it"));
    let scripts = package.join("build");
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        for option in linker::options_for_size(&scripts) {
            println!("cargo::rustc-link-arg-bins=-Wl,{option}");
        }
    }
    println!("cargo::rerun-if-changed={}", scripts.display());
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let source = match env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => Source::parse(&text),
        _ => Ok(from_git(&package.join("../.."))),
    };
    match source {
        Ok(Source { commit, date, modified }) => {
            println!("cargo::rustc-env=MESHMETER_BUILD_COMMIT={commit}");
            println!("cargo::rustc-env=MESHMETER_BUILD_DATE={date}");
            println!("cargo::rustc-env=MESHMETER_BUILD_MODIFIED={modified}");
        }
        Err(reason) => println!("cargo::error={VARIABLE}: {reason}"),
    }
}

/// State of the work tree; an empty commit if there is none. Declares its inputs.
fn from_git(root: &Path) -> Source {
    let is_for_tests = env::var("PROFILE").is_ok_and(|profile| profile == "debug");
    let inputs = if is_for_tests { source::sources(root) } else { source::all_inputs(root) };
    // Cargo would rerun the script every time for a file that does not exist.
    for path in inputs.iter().filter(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    Source::of_repository(root).unwrap_or_default()
}
