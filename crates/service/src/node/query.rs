//! Database queries over MongoDB's wire protocol, of which this has the part that scripts need: unauthenticated
//! commands over TLS. [`bson`] and [`message`] are its encoding, [`connection`] runs commands, [`pool`] keeps the
//! connections of a worker, [`collection`] has the operations.
//!
//! Each worker has a separate pool per database. Nothing is resent. The counters cover documents only, and so
//! less than the connections carry.

mod bson;
mod collection;
mod connection;
mod error;
mod message;
mod object_id;
mod pool;
mod response;
pub(super) mod tls;

pub use response::check_database_response;

use super::application::{Application, DatabaseSpec};
use super::failure::StepFailure;
use super::tally::{Attempt, WorkerTally};
use collection::Documents;
use connection::Target;
use error::QueryError;
use experiment::topology::script::{QueryOperation, QueryStep};
use pool::Pool;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Maximum connections of a node to a database over all workers.
const MAX_CONNECTIONS: usize = 64;

/// The databases of a worker.
pub(crate) struct Databases {
    databases: Vec<Database>,
}

struct Database {
    spec: DatabaseSpec,
    pool: Pool,
    documents: Vec<Documents>,
    tally: Arc<WorkerTally>,
    /// Index among the worker's calls.
    index: usize,
}

impl Databases {
    pub(crate) fn new(
        application: &Application,
        tally: &Arc<WorkerTally>,
        workers: usize,
    ) -> io::Result<Self> {
        let Some(tls) = &application.database_tls else { return Ok(Self { databases: Vec::new() }) };
        let specs = application.databases.iter().enumerate();
        let databases = specs.map(|(position, spec)| {
            let index = application.callees.len() + position;
            let target = target(spec, tls, tally, index)?;
            let pool = Pool::new(target, MAX_CONNECTIONS.div_ceil(workers.max(1)));
            let documents = spec.queries.iter().map(Documents::new).collect();
            Ok(Database { spec: spec.clone(), pool, documents, tally: Arc::clone(tally), index })
        });
        Ok(Self { databases: databases.collect::<io::Result<_>>()? })
    }

    /// Fills the collections that are read. Other nodes may do so at the same time.
    pub(crate) async fn fill(&self) -> Result<(), StepFailure> {
        for database in &self.databases {
            for documents in database.documents.iter().filter(|documents| documents.is_read()) {
                let filled = documents.fill(&database.pool).await;
                filled.map_err(|error| database.failure(documents, &error))?;
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
                QueryOperation::Find => documents.find(&database.pool, draw).await,
                QueryOperation::Insert => documents.insert(&database.pool).await,
                QueryOperation::Update => documents.update(&database.pool, draw).await,
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
                if matches!(error, QueryError::Unsent(_)) {
                    attempt.unwritten();
                }
                return Err(database.failure(documents, &error));
            }
            Err(_) => {
                return Err(database.failure(documents, &QueryError::TimedOut(query.timeout)));
            }
        };
        let reason = format!("{missing} of {} documents are missing", query.documents);
        Err(database.failure(documents, &reason))
    }
}

impl Database {
    fn failure(&self, documents: &Documents, reason: &dyn fmt::Display) -> StepFailure {
        let DatabaseSpec { name, place, .. } = &self.spec;
        StepFailure(format!("database {name} at {}: {}: {reason}", place.authority, documents.operation()))
    }
}

impl fmt::Debug for Databases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.databases.iter().map(|database| &database.spec)).finish()
    }
}

fn target(
    spec: &DatabaseSpec,
    tls: &Arc<ClientConfig>,
    tally: &Arc<WorkerTally>,
    index: usize,
) -> io::Result<Target> {
    let host = spec.place.host.clone();
    let server_name = ServerName::try_from(host)
        .map_err(|error| io::Error::other(format!("database {}: its host: {error}", spec.name)))?;
    let tls = TlsConnector::from(Arc::clone(tls));
    Ok(Target { place: spec.place.clone(), server_name, tls, tally: Arc::clone(tally), index })
}
