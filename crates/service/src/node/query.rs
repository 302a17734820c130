//! Database queries over MongoDB's wire protocol, through its official driver.
//!
//! Each worker has a separate pool per database; the driver's tasks run on the worker's thread. The driver
//! monitors the database on an additional connection. Nothing is resent, and no connection is closed for
//! being idle. The driver does not count bytes: the counters cover documents only, and so less than the
//! connections carry.

mod collection;
mod events;

use super::application::{Application, DatabaseSpec};
use super::script::StepFailure;
use super::tally::{Attempt, WorkerTally};
use collection::Documents;
use experiment::topology::script::{QueryOperation, QueryStep};
use mongodb::Client;
use mongodb::error::{Error, ErrorKind, InsertManyError, WriteFailure};
use mongodb::event::EventHandler;
use mongodb::options::{ClientOptions, ServerAddress, ServerMonitoringMode, Tls, TlsOptions};
use std::fmt;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Maximum connections of a node to a database over all workers, without those of the monitors.
const MAX_CONNECTIONS: usize = 64;
/// Shorter than the idle timeout of proxies, which is an hour.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30 * 60);
/// How long an operation waits for a database that is down to come back.
const SELECTION_TIMEOUT: Duration = Duration::from_secs(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const DATABASE_NAME: &str = "meshmeter";

/// The databases of a worker.
pub(crate) struct Databases {
    databases: Vec<Database>,
}

struct Database {
    spec: DatabaseSpec,
    client: mongodb::Database,
    documents: Vec<Documents>,
    tally: Arc<WorkerTally>,
    /// Index among the worker's calls.
    index: usize,
}

/// Checks everything that can be checked before anything starts.
pub(crate) fn check(application: &Application) -> io::Result<()> {
    let Some(file) = application.database_authority.as_ref().filter(|_| !application.databases.is_empty())
    else {
        return Ok(());
    };
    let failed = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("certificates to verify databases with, {}: {error}", file.display()),
        )
    };
    File::open(file).map(drop).map_err(failed)
}

impl Databases {
    /// Must be called within a runtime.
    pub(crate) fn new(
        application: &Application,
        tally: &Arc<WorkerTally>,
        workers: usize,
    ) -> io::Result<Self> {
        let specs = application.databases.iter().enumerate();
        let databases = specs.map(|(position, spec)| {
            let index = application.callees.len() + position;
            let options = options(application, spec, tally, index, workers);
            let client = Client::with_options(options)
                .map_err(|error| io::Error::other(format!("{}: {}", spec.name, describe(&error))))?
                .database(DATABASE_NAME);
            let documents = spec.queries.iter().map(Documents::new).collect();
            Ok(Database { spec: spec.clone(), client, documents, tally: Arc::clone(tally), index })
        });
        Ok(Self { databases: databases.collect::<io::Result<_>>()? })
    }

    /// Fills the collections that are read. Other nodes may do so at the same time.
    pub(crate) async fn fill(&self) -> Result<(), StepFailure> {
        for database in &self.databases {
            for documents in database.documents.iter().filter(|documents| documents.is_read()) {
                documents
                    .fill(&database.client)
                    .await
                    .map_err(|error| database.failure(documents, &error))?;
            }
        }
        Ok(())
    }

    /// Runs one operation. `draw`, in [0, 1), selects the documents.
    pub(crate) async fn run(&self, query: &QueryStep, draw: f64) -> Result<(), StepFailure> {
        let database = self.databases.iter().find(|database| database.spec.id == query.to);
        let database = database.expect("scripts query nothing else");
        let step = database.spec.queries.iter().position(|step| step == query).expect("it is of a script");
        let documents = &database.documents[step];
        let tally = &database.tally.calls[database.index];
        let mut attempt = Attempt::new(tally, false);
        attempt.sent();
        let operation = async {
            match query.operation {
                QueryOperation::Find => documents.find(&database.client, draw).await,
                QueryOperation::Insert => documents.insert(&database.client).await,
                QueryOperation::Update => documents.update(&database.client, draw).await,
            }
        };
        let missing = match timeout(query.timeout, operation).await {
            Ok(Ok(0)) => {
                attempt.answered();
                let (sent, received) = documents.bytes();
                tally.bytes_sent.add(sent);
                tally.bytes_received.add(received);
                return Ok(());
            }
            Ok(Ok(missing)) => missing,
            Ok(Err(error)) => {
                if is_unsent(&error) {
                    attempt.unwritten();
                }
                return Err(database.failure(documents, &error));
            }
            Err(_) => {
                let reason = format!("no response within {:?}", query.timeout);
                return Err(database.failure(documents, &reason));
            }
        };
        let reason = format!("{missing} of {} documents are missing", query.documents);
        Err(database.failure(documents, &reason))
    }
}

impl Database {
    fn failure(&self, documents: &Documents, reason: &dyn Reason) -> StepFailure {
        let DatabaseSpec { name, place, .. } = &self.spec;
        StepFailure(format!(
            "database {name} at {}: {}: {}",
            place.authority,
            documents.operation(),
            reason.text()
        ))
    }
}

impl fmt::Debug for Databases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.databases.iter().map(|database| &database.spec)).finish()
    }
}

fn options(
    application: &Application,
    spec: &DatabaseSpec,
    tally: &Arc<WorkerTally>,
    index: usize,
    workers: usize,
) -> ClientOptions {
    let mut tls = TlsOptions::default();
    tls.ca_file_path.clone_from(&application.database_authority);
    let mut options = ClientOptions::default();
    options.hosts = vec![ServerAddress::Tcp { host: spec.place.host.clone(), port: Some(spec.place.port) }];
    options.app_name = Some("meshmeter".to_owned());
    options.tls = Some(Tls::Enabled(tls));
    options.direct_connection = Some(true);
    options.retry_reads = Some(false);
    options.retry_writes = Some(false);
    options.server_monitoring_mode = Some(ServerMonitoringMode::Poll);
    options.heartbeat_freq = Some(HEARTBEAT_INTERVAL);
    options.server_selection_timeout = Some(SELECTION_TIMEOUT);
    options.connect_timeout = Some(CONNECT_TIMEOUT);
    options.max_pool_size = u32::try_from(MAX_CONNECTIONS.div_ceil(workers.max(1))).ok();
    let (pooled, monitoring) = (Arc::clone(tally), Arc::clone(tally));
    options.cmap_event_handler =
        Some(EventHandler::callback(move |event| events::count_pooled(&pooled.calls[index], &event)));
    let monitor = events::Monitor::default();
    options.sdam_event_handler =
        Some(EventHandler::callback(move |event| monitor.count(&monitoring.calls[index], &event)));
    options
}

/// Why an operation failed, as text for a response.
trait Reason {
    fn text(&self) -> String;
}

impl Reason for String {
    fn text(&self) -> String {
        self.clone()
    }
}

impl Reason for Error {
    fn text(&self) -> String {
        describe(self)
    }
}

/// True if the operation found no connection.
fn is_unsent(error: &Error) -> bool {
    matches!(*error.kind, ErrorKind::ServerSelection { .. } | ErrorKind::ConnectionPoolCleared { .. })
}

/// The cause, without the driver's description of the database.
fn describe(error: &Error) -> String {
    match &*error.kind {
        ErrorKind::Io(error) => error.to_string(),
        ErrorKind::Command(error) => error.message.clone(),
        ErrorKind::Write(WriteFailure::WriteError(error)) => error.message.clone(),
        ErrorKind::InsertMany(InsertManyError { write_errors: Some(errors), .. }) if !errors.is_empty() => {
            errors[0].message.clone()
        }
        ErrorKind::ServerSelection { message, .. } => selection_cause(message).to_owned(),
        kind => kind.to_string(),
    }
}

/// Why no connection could be opened, extracted from the driver's description of each server.
fn selection_cause(message: &str) -> &str {
    let cause = message.split_once("Error: Kind: ").and_then(|(_, cause)| cause.split_once(", labels"));
    cause.map_or(message, |(cause, _)| cause.trim_start_matches("I/O error: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_selection_error_is_reduced_to_its_cause() {
        let message = "Server selection timeout: No available servers. Topology: { Type: Single, Servers: [ { Address: \
            db:27017, Type: Unknown, Error: Kind: I/O error: Connection refused (os error 111), labels: {} } ] }";
        assert_eq!(selection_cause(message), "Connection refused (os error 111)");
        assert_eq!(selection_cause("no servers"), "no servers");
    }
}
