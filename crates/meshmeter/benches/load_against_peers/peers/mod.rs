//! Optional generators: finding them, their arguments, and parsing their output.

pub mod fortio;
pub mod oha;
pub mod wrk2;

use crate::contest::Outcome;
use crate::generators::{Generator, Load};
use std::path::PathBuf;

/// A generator of another project.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Peer {
    Fortio,
    Oha,
    Wrk2,
}

/// A peer, or why it does not run.
pub type Found = Result<Generator, String>;

/// All peers.
pub struct Peers {
    pub fortio: Found,
    pub oha: Found,
    pub wrk2: Found,
}

impl Peers {
    /// Finds the peers: by their variables, or else in PATH.
    pub fn find(
        variable: impl Fn(&str) -> Option<PathBuf>,
        on_path: impl Fn(&str) -> Option<PathBuf>,
    ) -> Self {
        let found = |peer: Peer| peer.find(variable(peer.variable()), on_path(peer.name()));
        Self { fortio: found(Peer::Fortio), oha: found(Peer::Oha), wrk2: found(Peer::Wrk2) }
    }
}

impl Peer {
    pub fn name(self) -> &'static str {
        match self {
            Self::Fortio => "fortio",
            Self::Oha => "oha",
            Self::Wrk2 => "wrk2",
        }
    }

    /// Environment variable that may name the program.
    fn variable(self) -> &'static str {
        match self {
            Self::Fortio => "FORTIO",
            Self::Oha => "OHA",
            Self::Wrk2 => "WRK2",
        }
    }

    /// Finds the program as `named`, or else in PATH.
    ///
    /// # Errors
    /// Returns an error if it is in neither place.
    pub fn find(self, named: Option<PathBuf>, on_path: Option<PathBuf>) -> Found {
        let (name, variable) = (self.name(), self.variable());
        match named {
            Some(path) if path.is_file() => Ok(Generator::Peer(self, path)),
            Some(path) => Err(format!("{name}: {variable} names `{}`, which is not a file", path.display())),
            None => on_path
                .map(|path| Generator::Peer(self, path))
                .ok_or_else(|| format!("{name} is not on PATH")),
        }
    }

    /// Arguments for a task.
    ///
    /// # Errors
    /// Returns an error if the generator does not support the task.
    pub fn arguments(self, load: Load, seconds: u32) -> Outcome<Vec<String>> {
        match self {
            Self::Fortio => fortio::arguments(load, seconds),
            Self::Oha => oha::arguments(load, seconds),
            Self::Wrk2 => wrk2::arguments(load, seconds),
        }
    }
}
