//! What the generator of a trial is told: the command line of `meshmeter load`.

use experiment::environment::{Arrangement, EnvironmentError, TCP_REQUEST_BYTES};
use experiment::units::format_duration;
use experiment::{PlannedTrial, Protocol};
use std::fs;
use std::path::Path;

/// The whole command line. Files that the generator needs are written to `log_dir`.
pub(super) fn arguments(
    planned: &PlannedTrial,
    arrangement: &dyn Arrangement,
    log_dir: &Path,
    result: &Path,
) -> Result<Vec<String>, EnvironmentError> {
    let load = &planned.load;
    let (kind, amount) = match (load.rate, load.clients) {
        (Some(rate), _) => ("--rate", rate.to_string()),
        (None, clients) => ("--clients", clients.unwrap_or(1).to_string()),
    };
    let mut arguments = vec!["load".to_owned(), arrangement.url()];
    for (option, value) in [
        (kind, amount),
        ("--arrival", load.arrival.clone()),
        ("--connections", load.connections.to_string()),
        ("--threads", planned.threads.to_string()),
        ("--warmup", format_duration(planned.warmup)),
        ("--duration", format_duration(planned.duration)),
        ("--timeout", format_duration(planned.timeout)),
        ("--seed", planned.generator_seed.to_string()),
        ("--progress", "json".to_owned()),
        ("--json", result.to_string_lossy().into_owned()),
    ] {
        arguments.extend([option.to_owned(), value]);
    }
    arguments.extend(of_protocol(planned, log_dir)?);
    arguments.extend(arrangement.client_arguments());
    Ok(arguments)
}

/// What the protocol needs that the URL does not say.
pub(in crate::commands) fn of_protocol(
    planned: &PlannedTrial,
    log_dir: &Path,
) -> Result<Vec<String>, EnvironmentError> {
    let arguments = match planned.spec.protocol {
        Protocol::Http1 => Vec::new(),
        Protocol::Http2 => vec!["--http".to_owned(), "2".to_owned()],
        Protocol::Grpc => {
            // Asked for its methods, the service would see calls that are none of the load.
            let file = log_dir.join("echo.proto");
            fs::write(&file, service::ECHO_PROTO)
                .map_err(|error| EnvironmentError::new(format!("write {}", file.display()), error))?;
            vec!["--proto".to_owned(), file.to_string_lossy().into_owned()]
        }
        Protocol::Tcp => vec![
            "--body-size".to_owned(),
            TCP_REQUEST_BYTES.to_string(),
            "--reply-size".to_owned(),
            planned.load.payload_bytes.max(1).to_string(),
        ],
    };
    Ok(arguments)
}
