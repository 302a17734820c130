//! A server that runs until it is dropped.

use super::Outcome;
use super::process::{resident_bytes, until};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};

/// A server, stopped when dropped.
pub struct Server {
    pub child: Child,
    /// ID of the single-threaded process that responds.
    pub worker: u32,
    /// URL to load.
    pub url: String,
    /// URL to load over HTTP/2 without TLS, if supported.
    pub http2_url: String,
    /// URL to load over TLS, if supported; the certificate is self-signed.
    pub tls_url: String,
    /// URL to load if the server should log the connection of each request, if supported.
    pub noted_url: String,
    /// File with the connection of each logged request, one per line.
    pub notes: PathBuf,
}

impl Server {
    /// Starts the server. The caller sets the worker process and the URLs.
    pub fn start(command: &mut Command) -> Outcome<Self> {
        let child = command.spawn().map_err(|error| format!("start {command:?}: {error}"))?;
        Ok(Self {
            worker: child.id(),
            child,
            url: String::new(),
            http2_url: String::new(),
            tls_url: String::new(),
            noted_url: String::new(),
            notes: PathBuf::new(),
        })
    }

    /// CPU time of the worker so far, seconds.
    pub fn cpu_s(&self) -> Outcome<f64> {
        let path = format!("/proc/{}/schedstat", self.worker);
        let text = fs::read_to_string(&path).map_err(|error| format!("read {path}: {error}"))?;
        let on_cpu_ns: f64 = text.split_whitespace().next().ok_or("schedstat is empty")?.parse()?;
        Ok(on_cpu_ns / 1e9)
    }

    /// Number of requests of each connection, once the log has at least `requests` of them. Clears the log.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read, or does not have that many requests after a while.
    pub fn requests_by_connection(&self, requests: usize) -> Outcome<Vec<usize>> {
        let noted = until(|| {
            let notes = fs::read_to_string(&self.notes).ok()?;
            (notes.lines().count() >= requests).then_some(notes)
        });
        let notes = noted.ok_or_else(|| format!("{} has not {requests} lines", self.notes.display()))?;
        fs::write(&self.notes, "")?;
        let mut by_connection = HashMap::<&str, usize>::new();
        notes.lines().for_each(|connection| *by_connection.entry(connection).or_default() += 1);
        Ok(by_connection.into_values().collect())
    }

    /// Resident memory of all its processes, bytes.
    pub fn memory_bytes(&self) -> Outcome<u64> {
        let mut processes = vec![self.child.id(), self.worker];
        processes.dedup();
        processes.into_iter().map(resident_bytes).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // nginx stops its worker on SIGTERM but leaves it behind on SIGKILL.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        if until(|| self.child.try_wait().ok().flatten()).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
