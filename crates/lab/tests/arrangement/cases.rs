//! Cases of a test program without a harness (a lab is entered by a program of one thread), told as the harness would.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

/// The cases that are run, and what became of them.
#[derive(Debug, Default)]
pub struct Cases {
    only: Option<String>,
    failed: Vec<&'static str>,
    not_run: Vec<&'static str>,
}

impl Cases {
    /// Those whose name holds this program's first argument, or all.
    pub fn wanted() -> Self {
        let only = std::env::args().nth(1).filter(|name| !name.starts_with('-'));
        Self { only, ..Self::default() }
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
        if !passed {
            self.failed.push(name);
        }
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
    pub fn end(self) -> ExitCode {
        println!("{} failed {:?}", self.failed.len(), self.failed);
        if !self.not_run.is_empty() {
            println!("{} not run {:?}", self.not_run.len(), self.not_run);
        }
        if self.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
