//! Cases of a test program without a harness, reported in the harness's format. They run in parallel in
//! worker processes, since only a single-threaded program can enter a lab. Each worker runs one case after
//! the other.

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

/// Number of slowest cases to list at the end.
const SLOWEST: usize = 10;

/// Limits memory use on machines with many CPUs: a worker may have a control plane, which takes half a GB.
const MAX_CASES_AT_ONCE: usize = 8;

/// First argument of a worker.
const WORKER_ROLE: &str = "role:worker";

thread_local! {
    /// Directories of the case that is running.
    static FOLDERS: RefCell<Vec<Rc<TempDir>>> = const { RefCell::new(Vec::new()) };
}

/// A directory of the running case for files that its components write. It is removed when the case ends.
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

/// What the cases of a program spend their time on.
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
        // Only CPUs that this process may use (taskset).
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let at_once = match self {
            Self::Cpu => cpus,
            Self::Time => cpus + 1,
        };
        at_once.min(MAX_CASES_AT_ONCE)
    }
}

/// The cases of a program, filtered by its arguments: those whose name contains one of them, or all.
#[derive(Debug)]
pub struct Cases<Case> {
    selected: Vec<(&'static str, Case)>,
    /// Cases that cannot run, with the reason.
    not_run: Vec<(&'static str, String)>,
    filtered_out: usize,
}

/// The outcome of a case.
struct Report {
    name: &'static str,
    /// The error is why it failed, in one line.
    result: Result<(), String>,
    took_s: f64,
    /// Output of the case and its components.
    output: String,
}

impl<Case: Copy> Cases<Case> {
    pub fn new(table: &[(&'static str, Case)]) -> Self {
        let mut cases = Self { selected: Vec::new(), not_run: Vec::new(), filtered_out: 0 };
        cases.add(table, None);
        cases
    }

    /// Adds cases. If there is a reason, they cannot run here.
    pub fn add(&mut self, table: &[(&'static str, Case)], not_run_because: Option<&str>) {
        // A worker receives the names of its cases later.
        let filters: Vec<String> =
            std::env::args().skip(1).filter(|name| name != WORKER_ROLE && !name.starts_with('-')).collect();
        for &(name, case) in table {
            let is_selected =
                filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()));
            match (is_selected, not_run_because) {
                (true, None) => self.selected.push((name, case)),
                (true, Some(reason)) => self.not_run.push((name, reason.to_owned())),
                (false, _) => self.filtered_out += 1,
            }
        }
    }

    /// True if this process is one of those that run cases.
    pub fn is_worker() -> bool {
        std::env::args().nth(1).is_some_and(|role| role == WORKER_ROLE)
    }

    /// Runs the cases that this worker receives. Components that serve several cases write to `shared_logs`.
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

    /// Runs the cases in workers, prints a summary, and returns the exit code.
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
            // Repeated at the end, since the output of a failed case is long.
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

/// A case's panic message, in one line.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message");
    text.replace('\n', " ")
}
