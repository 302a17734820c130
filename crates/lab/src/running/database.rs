//! Databases in pods of their own, outside the mesh: FerretDB, or a MongoDB that the user named. They accept
//! TLS only.

use crate::Result;
use crate::certificates::{CredentialFiles, write_private};
use components::{Component, Installed};
use experiment::environment::ErrorContext;
use mesh::admin::{Admin, AdminError};
use mesh::proof::CountedService;
use results::exposition::{Sample, add_up};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

pub(crate) const DATABASE_PORT: u16 = 27017;

/// Port on the loopback of its pod where FerretDB serves metrics.
pub(super) const METRICS_PORT: u16 = 8088;
pub(super) const LIVE_PATH: &str = "/debug/livez";
const METRICS_PATH: &str = "/debug/metrics";

/// Arguments of the program. Its data is in `directory` and is removed with it.
pub(super) fn arguments(
    program: &Installed,
    files: &CredentialFiles,
    directory: &Path,
) -> Result<Vec<String>> {
    if program.component == Component::Mongod {
        return mongod(files, directory);
    }
    let directory = directory.display();
    Ok(vec![
        "--handler=sqlite".to_owned(),
        // The machine's disk is not part of the measurement.
        format!("--sqlite-url=file:{directory}/?_pragma=synchronous(off)"),
        format!("--state-dir={directory}"),
        "--listen-addr=".to_owned(),
        format!("--listen-tls=0.0.0.0:{DATABASE_PORT}"),
        format!("--listen-tls-cert-file={}", files.certificate.display()),
        format!("--listen-tls-key-file={}", files.key.display()),
        format!("--debug-addr=127.0.0.1:{METRICS_PORT}"),
        "--telemetry=disable".to_owned(),
        "--log-level=warn".to_owned(),
    ])
}

/// mongod reads certificate and key from one file.
fn mongod(files: &CredentialFiles, directory: &Path) -> Result<Vec<String>> {
    let both = directory.join("certificate-and-key.pem");
    let read = |path: &Path| fs::read(path).context(format!("read {}", path.display()));
    let content = [read(&files.certificate)?, read(&files.key)?].concat();
    write_private(&both, &content, None)?;
    Ok(vec![
        format!("--dbpath={}", directory.display()),
        "--bind_ip_all".to_owned(),
        format!("--port={DATABASE_PORT}"),
        "--tlsMode=requireTLS".to_owned(),
        format!("--tlsCertificateKeyFile={}", both.display()),
        "--nounixsocket".to_owned(),
        "--quiet".to_owned(),
    ])
}

/// Counters of FerretDB: client operations of the kinds that scripts use, and connections.
pub(super) fn read(admin: &Admin) -> Result<BTreeMap<String, u64>, AdminError> {
    Ok(counters(&String::from_utf8_lossy(&admin.ask(METRICS_PATH)?)))
}

fn counters(metrics: &str) -> BTreeMap<String, u64> {
    let is_counted = |command: &str| ["find", "insert", "update"].contains(&command);
    let name = |sample: &Sample<'_>| match sample.name {
        "ferretdb_client_accepts_total" => Some(CountedService::CONNECTIONS),
        "ferretdb_client_requests_total" if sample.label("command").as_deref().is_some_and(is_counted) => {
            Some(CountedService::REQUESTS)
        }
        _ => None,
    };
    let all = [CountedService::CONNECTIONS, CountedService::REQUESTS];
    let mut counters = all.map(|name| (name.to_owned(), 0)).into();
    add_up(metrics, |sample| name(sample).map(str::to_owned).into_iter().collect(), &mut counters);
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_and_connections_are_read_from_metrics() {
        let metrics = "# HELP ferretdb_client_accepts_total x\nferretdb_client_accepts_total{error=\"0\"} 9\n\
            ferretdb_client_requests_total{command=\"find\",opcode=\"OP_MSG\"} 557\n\
            ferretdb_client_requests_total{command=\"update\",opcode=\"OP_MSG\"} 1.5e+06\n\
            ferretdb_client_requests_total{command=\"isMaster\",opcode=\"OP_MSG\"} 9\n\
            ferretdb_client_responses_total{argument=\"unknown\",command=\"find\",opcode=\"OP_MSG\",result=\"ok\"} 557\n";
        let expected = [(CountedService::CONNECTIONS, 9), (CountedService::REQUESTS, 1_500_557)];
        assert_eq!(counters(metrics), expected.map(|(name, count)| (name.to_owned(), count)).into());
    }
}
