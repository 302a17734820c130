//! The synthetic service in its pod, the same under every mesh.

use crate::container::{Container, ContainerSpec, ContainerUser, ErrorOutput};
use crate::pod::Pod;
use experiment::environment::{EnvironmentError, ServerSettings};
use experiment::units::{format_duration, format_fraction};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The port of the service, and of a gateway before it.
pub(crate) const SERVICE_PORT: u16 = 8080;

/// The service starts in milliseconds; more on a machine that is busy with other things.
const SERVICE_READY_WITHIN: Duration = Duration::from_secs(20);

/// Starts the service. It need not listen yet.
pub(crate) fn start_service(
    pod: &mut Pod,
    settings: &ServerSettings,
    meshmeter: &Path,
    log_dir: &Path,
) -> Result<Container, EnvironmentError> {
    let arguments = [
        "serve".to_owned(),
        format!("--listen=0.0.0.0:{SERVICE_PORT}"),
        format!("--size={}", settings.payload_bytes),
        format!("--delay={}", format_duration(settings.delay)),
        format!("--error-rate={}", format_fraction(settings.error_fraction)),
    ];
    pod.start(&ContainerSpec {
        name: "server".to_owned(),
        program: meshmeter.to_path_buf(),
        arguments: arguments.map(Into::into).to_vec(),
        environment: BTreeMap::new(),
        cpu_limit_cores: settings.cpu_limit_cores,
        user: ContainerUser::Lab,
        working_directory: None,
        output_log: log_dir.join("server.log"),
        error_output: ErrorOutput::WithOutput,
    })
}

/// Waits until the service listens.
pub(crate) fn wait_for_service(pod: &Pod, server: &Container) -> Result<(), EnvironmentError> {
    pod.wait_until_listening(server, SERVICE_PORT, SERVICE_READY_WITHIN)
}
