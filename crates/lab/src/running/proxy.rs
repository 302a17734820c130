//! A running proxy of any kind, and how to query it.

use crate::Result;
use crate::container::Container;
use crate::pod::Pod;
use crate::private_dir::PrivateDir;
use crate::process_table;
use experiment::environment::ErrorContext;
use mesh::istio::nack::{CHECKED_LINES, check_not_rejected};
use mesh::proxy::CounterSource;
use mesh::spans::SentSpans;
use mesh::trial::place::RunningProxy;
use std::fmt;
use std::path::Path;

#[derive(Debug)]
pub(crate) struct Proxy {
    pub name: String,
    pub pod: String,
    pub container: Container,
    /// Name of an agent's proxy in istiod's status; absent if istiod does not track what it has acknowledged.
    pub known_as: Option<String>,
    /// Spans that it sends if requests are traced; absent if it sends none.
    pub spans: Option<SentSpans>,
    pub counters: Box<dyn CounterSource>,
    pub _files: PrivateDir,
    /// Something that ends with the proxy, such as a connection.
    pub _held: Option<Box<dyn fmt::Debug + Send + Sync>>,
}

impl Proxy {
    /// A proxy in a pod that is known neither to istiod nor to the trace collector.
    pub fn new(
        name: &str,
        pod: &Pod,
        container: Container,
        counters: Box<dyn CounterSource>,
        files: PrivateDir,
    ) -> Self {
        let (name, pod) = (name.to_owned(), pod.name().to_owned());
        Self { name, pod, container, known_as: None, spans: None, counters, _files: files, _held: None }
    }

    /// Treats the end of the agent's Envoy as the proxy's end: agents may end much later, and no traffic
    /// passes meanwhile.
    pub fn watch_envoy(&self) -> Result<()> {
        if self.known_as.is_none() {
            return Ok(());
        }
        // The agent's only child. The program may differ from the named one if that is a wrapper script.
        let agent = self.container.pid().cast_signed();
        let is_envoy = |pid: &i32| {
            process_table::stat(Path::new("/proc"), *pid).is_ok_and(|process| process.ppid == agent)
        };
        let watched = match self.container.processes().into_iter().find(is_envoy) {
            Some(envoy) => self.container.requires("Envoy", envoy),
            None => Err(std::io::ErrorKind::NotFound.into()),
        };
        watched.context(format!("watch the Envoy of {}", self.name))
    }

    /// Returns an error that names `operation` if the proxy has ended, was stopped, or logged a rejection.
    pub fn check(&self, operation: &str) -> Result<()> {
        self.container.check(operation)?;
        if self.known_as.is_none() {
            return Ok(());
        }
        check_not_rejected(&self.name, &self.container.log_tail(CHECKED_LINES))
    }
}

impl RunningProxy for Proxy {
    fn name(&self) -> &str {
        &self.name
    }

    fn source(&self) -> &dyn CounterSource {
        &*self.counters
    }

    fn failure(&self) -> Option<String> {
        failure(&self.container)
    }

    fn spans(&self) -> Option<&SentSpans> {
        self.spans.as_ref()
    }
}

/// Failure of a component, as a reason for not querying it.
pub(crate) fn failure(container: &Container) -> Option<String> {
    container.failed().map(|how| format!("it {how}"))
}
