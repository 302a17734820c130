//! Cases of a test program without a harness (a lab is entered by a program of one thread), told as the harness would; of one
//! that fails, what its components have said last.

#[path = "last_lines.rs"]
pub mod last_lines;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;
use tempfile::TempDir;

/// So many cases are named at the end as the slowest.
const SLOWEST: usize = 10;

thread_local! {
    /// Of the case that runs.
    static FOLDERS: RefCell<Vec<Rc<TempDir>>> = const { RefCell::new(Vec::new()) };
}

/// A folder of the case that runs, for what its components write. It is there until the case ends.
#[derive(Debug)]
pub struct LogFolder(Rc<TempDir>);

impl LogFolder {
    #[allow(dead_code, reason = "not every program starts components itself")]
    pub fn create() -> Self {
        let folder = Rc::new(tempfile::tempdir().expect("a temporary folder"));
        FOLDERS.with_borrow_mut(|folders| folders.push(Rc::clone(&folder)));
        Self(folder)
    }

    #[allow(dead_code, reason = "not every program starts components itself")]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// The cases that are run, and what became of them.
#[derive(Debug, Default)]
pub struct Cases {
    only: Option<String>,
    /// Where components write that serve several cases.
    shared_logs: Option<PathBuf>,
    took: Vec<(f64, &'static str)>,
    failed: Vec<&'static str>,
    not_run: Vec<&'static str>,
}

impl Cases {
    /// Those whose name holds this program's first argument, or all.
    pub fn wanted() -> Self {
        let only = std::env::args().nth(1).filter(|name| !name.starts_with('-'));
        Self { only, ..Self::default() }
    }

    /// Components that serve several cases write to this folder.
    #[allow(dead_code, reason = "only some programs have such components")]
    pub fn share_logs(&mut self, folder: PathBuf) {
        self.shared_logs = Some(folder);
    }

    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }

    /// Runs a case, where it is wanted.
    pub fn run(&mut self, name: &'static str, case: impl FnOnce()) {
        if !self.wants(name) {
            return;
        }
        let begun = Instant::now();
        let passed = catch_unwind(AssertUnwindSafe(case)).is_ok();
        let took = begun.elapsed().as_secs_f64();
        println!("test {name} ... {} ({took:.1} s)", if passed { "ok" } else { "FAILED" });
        let folders = FOLDERS.take();
        if !passed {
            self.failed.push(name);
            // The failure is about the last trial, or about how it differs from the one before.
            let of_case = folders.iter().rev().take(2).rev().map(|folder| folder.path());
            of_case.chain(self.shared_logs.as_deref()).for_each(last_lines::tell);
        }
        self.took.push((took, name));
    }

    /// Tells of a case that cannot run here, where it is wanted.
    #[allow(dead_code, reason = "only some programs have such cases")]
    pub fn cannot_run(&mut self, name: &'static str, reason: &str) {
        if self.wants(name) {
            println!("test {name} ... not run: {reason}");
            self.not_run.push(name);
        }
    }

    /// Sums up; what the program ends with.
    pub fn end(mut self) -> ExitCode {
        self.took.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let total: f64 = self.took.iter().map(|(took, _)| took).sum();
        println!("{} cases took {total:.1} s; the slowest:", self.took.len());
        self.took.iter().take(SLOWEST).for_each(|(took, name)| println!("{took:8.1} s  {name}"));
        println!("{} failed {:?}", self.failed.len(), self.failed);
        if !self.not_run.is_empty() {
            println!("{} not run {:?}", self.not_run.len(), self.not_run);
        }
        if self.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
