//! Worker processes: this program again, several at a time. Each reads names of cases from its standard input
//! and prints a line after each case. All its other output belongs to the case.

use super::{Report, WORKER_ROLE};
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, PipeReader, Read as _, Write as _, pipe};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Instant;

/// Lines printed after a case, which no component prints. After the second one comes the reason.
pub const PASSED: &str = "\u{1}case passed";
pub const FAILED: &str = "\u{1}case failed";

/// Runs the cases, at most this many at once, and reports each as it ends. Returns an error if a worker fails
/// after its cases.
pub fn run(
    names: VecDeque<&'static str>,
    at_once: usize,
    mut report: impl FnMut(Report),
) -> Result<(), String> {
    let workers = at_once.min(names.len());
    let queue = &Mutex::new(names);
    let (sender, reports) = channel();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers)
            .map(|_| {
                let sender = sender.clone();
                scope.spawn(move || take_cases(queue, &sender))
            })
            .collect();
        drop(sender);
        reports.into_iter().for_each(&mut report);
        workers.into_iter().try_for_each(|worker| worker.join().expect("it does not panic"))
    })
}

fn take_cases(queue: &Mutex<VecDeque<&'static str>>, reports: &Sender<Report>) -> Result<(), String> {
    let next = || queue.lock().expect("nobody panics holding it").pop_front();
    let mut worker = None;
    while let Some(name) = next() {
        let begun = Instant::now();
        let (result, output) = worker.get_or_insert_with(Worker::start).run(name).unwrap_or_else(|ended| {
            // The remaining cases get another worker.
            worker = None;
            (Err(format!("the process that ran it ended: {}", ended.status)), ended.output)
        });
        let report = Report { name, result, took_s: begun.elapsed().as_secs_f64(), output };
        reports.send(report).expect("they are received until the last worker has ended");
    }
    worker.map_or(Ok(()), Worker::end)
}

/// A worker that ended while it ran a case.
struct Ended {
    status: ExitStatus,
    /// Output of the case so far.
    output: String,
}

struct Worker {
    child: Child,
    names: ChildStdin,
    output: BufReader<PipeReader>,
}

impl Worker {
    fn start() -> Self {
        // One pipe for both outputs, so that their lines stay in order.
        let (output, writer) = pipe().expect("pipes can be made");
        let mut child = Command::new(std::env::current_exe().expect("a running program has a path"))
            .arg(WORKER_ROLE)
            .stdin(Stdio::piped())
            .stdout(writer.try_clone().expect("files can be duplicated"))
            .stderr(writer)
            .spawn()
            .expect("it is this program");
        let names = child.stdin.take().expect("piped");
        Self { child, names, output: BufReader::new(output) }
    }

    /// Runs a case to its end. Returns why it failed, if it did, and its output.
    fn run(&mut self, name: &str) -> Result<(Result<(), String>, String), Ended> {
        let mut printed = String::new();
        let mut line = Vec::new();
        // If the worker has ended, the output says why.
        let _ = writeln!(self.names, "{name}");
        while self.output.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let text = String::from_utf8_lossy(&line);
            if text.trim_end() == PASSED {
                return Ok((Ok(()), printed));
            }
            if let Some(reason) = text.strip_prefix(FAILED) {
                return Ok((Err(reason.trim().to_owned()), printed));
            }
            printed += &text;
            line.clear();
        }
        Err(Ended { status: self.child.wait().expect("it is a child"), output: printed })
    }

    /// Without further cases it ends by itself.
    fn end(mut self) -> Result<(), String> {
        drop(self.names);
        let mut printed = String::new();
        let read = self.output.read_to_string(&mut printed);
        let status = self.child.wait().expect("it is a child");
        if status.success() && read.is_ok() {
            return Ok(());
        }
        Err(format!("a worker's end after its cases: {status}\n{printed}"))
    }
}
