//! Cases of a test program without a harness, reported as the harness would. They run side by side in worker processes, since
//! a lab is entered by a program of one thread; a worker runs one case after the other.

#[path = "last_lines.rs"]
pub mod last_lines;
#[path = "workers.rs"]
mod workers;

use std::any::Any;
use std::cell::RefCell;
use std::io::stdin;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;
use tempfile::TempDir;

/// How many cases are named at the end as the slowest.
const SLOWEST: usize = 10;

/// Bounds memory on machines with many CPUs: a worker may have a control plane, of half a GB.
const MAX_CASES_AT_ONCE: usize = 8;

/// First argument of a worker.
const WORKER_ROLE: &str = "role:worker";

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

/// What the cases of a program spend their time with.
#[derive(Clone, Copy, Debug)]
pub enum Demand {
    /// Computing: one case per CPU.
    #[allow(dead_code, reason = "each program has one demand")]
    Cpu,
    /// Waiting for something to come up, hang, die or end: more cases than CPUs.
    #[allow(dead_code, reason = "each program has one demand")]
    Time,
}

impl Demand {
    fn cases_at_once(self) -> usize {
        // As far as this process may use them (taskset).
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let at_once = match self {
            Self::Cpu => cpus,
            Self::Time => 2 * cpus,
        };
        at_once.min(MAX_CASES_AT_ONCE)
    }
}

/// The cases of a program that its first argument selects: those whose name holds it, or all.
#[derive(Debug)]
pub struct Cases<Case> {
    selected: Vec<(&'static str, Case)>,
    /// With the reason.
    not_run: Vec<(&'static str, String)>,
    filtered_out: usize,
}

/// What became of a case.
struct Report {
    name: &'static str,
    /// Or why it failed, in a line.
    result: Result<(), String>,
    took_s: f64,
    /// What it and its components have printed.
    output: String,
}

impl<Case: Copy> Cases<Case> {
    pub fn of(table: &[(&'static str, Case)]) -> Self {
        let mut cases = Self { selected: Vec::new(), not_run: Vec::new(), filtered_out: 0 };
        cases.add(table, None);
        cases
    }

    /// Further cases, which cannot run here where there is a reason.
    pub fn add(&mut self, table: &[(&'static str, Case)], not_run_because: Option<&str>) {
        let filter = std::env::args().nth(1).filter(|name| name != WORKER_ROLE && !name.starts_with('-'));
        for &(name, case) in table {
            match (filter.as_ref().is_none_or(|filter| name.contains(filter.as_str())), not_run_because) {
                (true, None) => self.selected.push((name, case)),
                (true, Some(reason)) => self.not_run.push((name, reason.to_owned())),
                (false, _) => self.filtered_out += 1,
            }
        }
    }

    /// Whether this process is one of those that run cases.
    pub fn is_worker() -> bool {
        std::env::args().nth(1).is_some_and(|role| role == WORKER_ROLE)
    }

    /// In a worker: runs the cases that it is given. Components that serve several cases write to `shared_logs`.
    pub fn work(&self, shared_logs: Option<&Path>, call: impl Fn(Case)) -> ExitCode {
        for name in stdin().lines().map_while(Result::ok) {
            let (_, case) = self.selected.iter().find(|case| case.0 == name).expect("a case of this program");
            let result = catch_unwind(AssertUnwindSafe(|| call(*case)));
            let folders = FOLDERS.take();
            match result {
                Ok(()) => println!("{}", workers::PASSED),
                Err(panic) => {
                    // The failure is about the last trial, or about how it differs from the one before.
                    let of_case = folders.iter().rev().take(2).rev().map(|folder| folder.path());
                    of_case.chain(shared_logs).for_each(last_lines::tell);
                    println!("{} {}", workers::FAILED, message(panic.as_ref()));
                }
            }
        }
        ExitCode::SUCCESS
    }

    /// Has workers run the cases, and sums up; what the program ends with.
    pub fn run(self, demand: Demand) -> ExitCode {
        let begun = Instant::now();
        for (name, reason) in &self.not_run {
            println!("test {name} ... not run: {reason}");
        }
        let names = self.selected.iter().map(|(name, _)| *name).collect();
        let mut reports = Vec::new();
        let workers_ended = workers::run(names, demand.cases_at_once(), |report| {
            let verdict = if report.result.is_ok() { "ok" } else { "FAILED" };
            println!("test {} ... {verdict} ({:.1} s)", report.name, report.took_s);
            print!("{}", report.output);
            reports.push(report);
        });
        reports.sort_by(|one, other| other.took_s.total_cmp(&one.took_s));
        let (passed, failed): (Vec<_>, Vec<_>) = reports.iter().partition(|report| report.result.is_ok());
        let total_s: f64 = reports.iter().map(|report| report.took_s).sum();
        println!("\n{} cases, {total_s:.1} s one after the other; the slowest:", reports.len());
        for report in reports.iter().take(SLOWEST) {
            println!("{:8.1} s  {}", report.took_s, report.name);
        }
        for report in &failed {
            // Again at the end: the output of a failed case is long.
            println!("failed: {}: {}", report.name, report.result.as_ref().err().map_or("", String::as_str));
        }
        if let Err(reason) = &workers_ended {
            println!("failed: {reason}");
        }
        let good = failed.is_empty() && workers_ended.is_ok();
        println!(
            "\ntest result: {}. {} passed; {} failed; {} ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
            if good { "ok" } else { "FAILED" },
            passed.len(),
            failed.len(),
            self.not_run.len(),
            self.filtered_out,
            begun.elapsed().as_secs_f64()
        );
        if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// What a case panicked with, in a line.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message");
    text.replace('\n', " ")
}
