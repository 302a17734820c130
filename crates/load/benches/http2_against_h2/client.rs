//! The contenders as processes, one run at a time.

use crate::contest::Outcome;
use crate::contest::process::{EXIT_TIMEOUT, Place, pinned, run_to_end};
use crate::server::{Seen, ServerProcess};
use crate::task::{Reading, Task};
use crate::{engine_client, h2_client};
use load::IoBackendChoice;
use std::env;

/// A contender.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Client {
    /// The load engine, with the network that it chooses: io_uring in a closed loop, epoll in an open loop.
    Engine,
    EngineOnEpoll,
    /// The `h2` crate on tokio.
    H2,
}

const ALL: [Client; 3] = [Client::Engine, Client::EngineOnEpoll, Client::H2];

/// One run of a contender.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub seen: Seen,
    pub cpu_us_per_request: f64,
    pub resident_bytes: u64,
}

impl Client {
    pub fn label(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::EngineOnEpoll => "engine on epoll",
            Self::H2 => "h2 on tokio",
        }
    }

    /// First argument of its process; the second is the task.
    fn word(self) -> &'static str {
        match self {
            Self::Engine => "client-engine",
            Self::EngineOnEpoll => "client-engine-epoll",
            Self::H2 => "client-h2",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        ALL.into_iter().find(|client| client.word() == word)
    }

    /// Runs a task in this process, and prints what it took.
    #[allow(clippy::print_stdout, reason = "the other side reads it")]
    pub fn work(self, task: &str) -> Outcome<()> {
        let (task, address) = Task::from_json(task)?;
        let reading = match self {
            Self::Engine => engine_client::run(&task, address, IoBackendChoice::Auto)?,
            Self::EngineOnEpoll => engine_client::run(&task, address, IoBackendChoice::Epoll)?,
            Self::H2 => h2_client::run(&task, address)?,
        };
        println!("{}", reading.to_json());
        Ok(())
    }

    /// Runs a task in a process on the generator's CPU, against a server of its own.
    ///
    /// # Errors
    /// Returns an error if the client fails, or did not get a response to each request.
    pub fn run(self, task: Task) -> Outcome<Round> {
        let server = ServerProcess::start(task.rate)?;
        let mut command = pinned(Place::Generator, &env::current_exe()?)?;
        command.args([self.word(), &task.to_json(server.address)]);
        let ended = run_to_end(&mut command, task.duration + EXIT_TIMEOUT)?;
        if !ended.status.success() {
            return Err(format!("{}: {}: {}", self.label(), ended.status, ended.stderr).into());
        }
        let reading = Reading::from_json(&ended.stdout)?;
        let seen = server.stop()?;
        if reading.completed != seen.requests || reading.completed == 0 {
            let text =
                format!("{}: {} responses to {} requests", self.label(), reading.completed, seen.requests);
            return Err(text.into());
        }
        Ok(Round {
            cpu_us_per_request: reading.cpu_s * 1e6 / seen.requests as f64,
            resident_bytes: reading.resident_bytes,
            seen,
        })
    }
}
