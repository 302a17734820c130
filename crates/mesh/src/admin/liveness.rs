//! Liveness: whether a component that runs still responds.
//! The request costs the component next to nothing, and any response is a sign of life, be it an error status.

use super::Admin;
use super::error::AdminCause;
use std::io;

#[derive(Clone, Debug)]
pub struct LivenessProbe {
    /// The process that responds; absent if the component has one.
    pub process: Option<&'static str>,
    pub admin: Admin,
    pub path: &'static str,
}

impl LivenessProbe {
    /// No response of any kind in time.
    pub fn is_unresponsive(&self) -> bool {
        match self.admin.ask(self.path).map_err(|error| error.cause) {
            Err(AdminCause::TimedOut(_)) => true,
            Err(AdminCause::Connect(error)) => error.kind() == io::ErrorKind::TimedOut,
            _ => false,
        }
    }
}
