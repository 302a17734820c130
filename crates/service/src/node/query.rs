//! Queries to databases.

use super::application::{Application, DatabaseSpec};
use super::script::StepFailure;
use crate::server::ServeError;
use experiment::topology::script::QueryStep;

/// The databases of a node.
#[derive(Debug)]
pub(crate) struct Databases {
    specs: Vec<DatabaseSpec>,
}

impl Databases {
    /// Before anything starts.
    pub(crate) fn new(application: &Application) -> Result<Self, ServeError> {
        match &application.databases[..] {
            [] => Ok(Self { specs: Vec::new() }),
            [database, ..] => {
                let DatabaseSpec { name, place, queries, .. } = database;
                let verified = match &application.database_authority {
                    Some(file) => format!("verified with {}", file.display()),
                    None => "not verified".to_owned(),
                };
                Err(ServeError::Settings(format!(
                    "scripts have {} queries to {name} at {}, {verified}: this build has no driver for databases",
                    queries.len(),
                    place.authority
                )))
            }
        }
    }

    /// Carries out one operation; its probability was drawn.
    pub(crate) async fn run(&self, query: &QueryStep) -> Result<(), StepFailure> {
        let known = self.specs.iter().any(|database| database.id == query.to);
        Err(StepFailure(format!("database {} (known: {known}) cannot be queried", query.to)))
    }
}
