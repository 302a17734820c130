//! Task of a client process, and its report: JSON in its arguments and on its standard output.

use crate::contest::Outcome;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;

/// Load of one run.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Requests per second of an open loop; absent in a closed loop, where each stream has its client.
    pub rate: Option<u32>,
    pub connections: usize,
    /// Maximum concurrent requests per connection.
    pub streams: usize,
    pub duration: Duration,
}

impl Task {
    /// Clients of a closed loop.
    pub fn clients(&self) -> usize {
        self.connections * self.streams
    }

    pub fn to_json(self, address: SocketAddr) -> String {
        let Self { rate, connections, streams, duration } = self;
        let millis = duration.as_millis() as u64;
        json!({ "address": address.to_string(), "rate": rate, "connections": connections, "streams": streams, "ms": millis })
            .to_string()
    }

    /// Parses a task, and the address of its server.
    pub fn from_json(text: &str) -> Outcome<(Self, SocketAddr)> {
        let value: Value = serde_json::from_str(text)?;
        let number = |key: &str| value[key].as_u64().ok_or_else(|| format!("the task has no {key}"));
        let task = Self {
            rate: value["rate"].as_u64().map(u32::try_from).transpose()?,
            connections: usize::try_from(number("connections")?)?,
            streams: usize::try_from(number("streams")?)?,
            duration: Duration::from_millis(number("ms")?),
        };
        Ok((task, value["address"].as_str().ok_or("the task has no address")?.parse()?))
    }
}

/// Report of a client process.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Complete responses with status 200 and a whole body.
    pub completed: u64,
    /// CPU time of the process until its report.
    pub cpu_s: f64,
    /// Resident memory at the end of the load, with all connections open.
    pub resident_bytes: u64,
}

impl Reading {
    pub fn new(completed: u64, resident_bytes: u64) -> Self {
        Self { completed, cpu_s: cpu_s(), resident_bytes }
    }

    pub fn to_json(self) -> String {
        json!({ "completed": self.completed, "cpu_s": self.cpu_s, "resident_bytes": self.resident_bytes })
            .to_string()
    }

    pub fn from_json(text: &str) -> Outcome<Self> {
        let value: Value = serde_json::from_str(text)?;
        let number = |key: &str| value[key].as_u64().ok_or_else(|| format!("the reading has no {key}"));
        Ok(Self {
            completed: number("completed")?,
            cpu_s: value["cpu_s"].as_f64().ok_or("the reading has no cpu_s")?,
            resident_bytes: number("resident_bytes")?,
        })
    }
}

/// CPU time of this process, all threads together.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
