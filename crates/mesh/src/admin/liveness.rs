//! Liveness: whether a running component still responds.
//! The request costs the component next to nothing. Any response counts as alive, even an error status.

use super::Admin;
use super::error::AdminCause;
use std::io;

#[derive(Clone, Debug)]
pub struct LivenessProbe {
    /// The process that responds; absent if the component has only one.
    pub process: Option<&'static str>,
    pub admin: Admin,
    pub path: &'static str,
}

impl LivenessProbe {
    /// True if no response of any kind arrived in time.
    pub fn is_unresponsive(&self) -> bool {
        match self.admin.ask(self.path).map_err(|error| error.cause) {
            Err(AdminCause::TimedOut(_)) => true,
            Err(AdminCause::Connect(error)) => error.kind() == io::ErrorKind::TimedOut,
            _ => false,
        }
    }
}
