//! A generator as a child process of the worker: its output lines, its input, its end.

use super::protocol::{End, Progress, Signal, Start, StartArgument};
use super::{CGROUP_ROOT, usage};
use crate::lines::Lines;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mesh::lines::each_line;
use results::LoadEvent;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::Notify;

/// Time between two checks whether a generator has ended that has closed its standard error.
const END_INTERVAL: Duration = Duration::from_millis(20);

/// A generator that has been started.
pub(super) struct Generator {
    number: u64,
    child: Arc<Mutex<Child>>,
    input: Option<ChildStdin>,
    result: PathBuf,
    written: Arc<Mutex<Written>>,
    pub changed: Arc<Notify>,
}

#[derive(Default)]
struct Written {
    lines: Lines,
    ended: Option<End>,
}

impl Drop for Generator {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = lock(&self.child).kill();
    }
}

impl Generator {
    /// Starts this program. Input files and the result are in `directory`.
    pub fn start(program: &Path, directory: &Path, start: &Start) -> io::Result<Self> {
        let directory = directory.join(start.number.to_string());
        fs::create_dir_all(&directory)?;
        let result = directory.join("result.json");
        let mut command = Command::new(program);
        for argument in &start.arguments {
            match argument {
                StartArgument::Text(text) => drop(command.arg(text)),
                StartArgument::File { prefix, name, content_base64 } => {
                    let path = directory.join(Path::new(name).file_name().unwrap_or_default());
                    let content = STANDARD.decode(content_base64).map_err(io::Error::other)?;
                    fs::write(&path, content)?;
                    let mut argument = OsString::from(prefix);
                    argument.push(path);
                    command.arg(argument);
                }
            }
        }
        command.arg("--progress=json").arg(format!("--json={}", result.display()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let (input, errors) = (child.stdin.take(), child.stderr.take());
        let generator = Self {
            number: start.number,
            child: Arc::new(Mutex::new(child)),
            input,
            result,
            written: Arc::default(),
            changed: Arc::default(),
        };
        if let Some(errors) = errors {
            generator.follow(BufReader::new(errors));
        }
        Ok(generator)
    }

    /// Reads its lines on a thread that ends with it.
    fn follow(&self, errors: impl io::BufRead + Send + 'static) {
        let (child, written) = (Arc::clone(&self.child), Arc::clone(&self.written));
        let (changed, result) = (Arc::clone(&self.changed), self.result.clone());
        let oom_kills = || usage::oom_kills(Path::new(CGROUP_ROOT));
        let before = oom_kills();
        thread::spawn(move || {
            each_line(errors, |line| {
                let is_detail = is_detail(&line);
                lock(&written).lines.push(line, is_detail);
                changed.notify_waiters();
            });
            // It has closed its standard error and is about to end. A concurrent kill must not have to wait
            // for the lock.
            let exit_code = loop {
                match lock(&child).try_wait() {
                    Ok(Some(status)) => break status.code(),
                    Ok(None) => {}
                    Err(_) => break None,
                }
                thread::sleep(END_INTERVAL);
            };
            let result_bytes = fs::metadata(&result).ok().map(|file| file.len());
            let is_oom_killed = exit_code.is_none() && oom_kills() > before;
            lock(&written).ended = Some(End { exit_code, result_bytes, is_oom_killed });
            changed.notify_waiters();
        });
    }

    /// Lines from this one on, and its end once there are no more. The run has those before.
    pub fn progress(&self, from: usize) -> Progress {
        let mut written = lock(&self.written);
        written.lines.forget_before(from);
        let batch = written.lines.batch(from);
        let ended = written.ended.clone().filter(|_| batch.is_last);
        Progress { number: self.number, lines: batch.lines, next: batch.next, ended }
    }

    /// Writes a line to its standard input and closes it: no sender has more than one line.
    pub fn input(&mut self, line: &str) -> io::Result<()> {
        match self.input.take() {
            Some(mut input) => writeln!(input, "{line}"),
            None => Err(io::Error::other("its standard input is closed")),
        }
    }

    pub fn signal(&self, signal: Signal) {
        let mut child = lock(&self.child);
        // An ended generator was reaped: its PID may belong to another process.
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        match signal {
            Signal::Kill => drop(child.kill()),
            Signal::Interrupt => {
                if let Some(pid) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
                }
            }
        }
    }

    pub fn result(&self) -> io::Result<Vec<u8>> {
        fs::read(&self.result)
    }
}

/// True unless the line is one of the few events that a trial waits for.
pub(crate) fn is_detail(line: &str) -> bool {
    matches!(LoadEvent::from_json(line), Err(_) | Ok(LoadEvent::Second(_) | LoadEvent::SecondDetail(_)))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
