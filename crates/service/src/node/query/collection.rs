//! The documents of a query: keys, content and operations.

use super::bson::{Document, Value};
use super::error::QueryError;
use super::message::{Command, MAX_MESSAGE_BYTES};
use super::object_id;
use super::pool::Pool;
use super::response::Response;
use experiment::topology::script::{QueryOperation, QueryStep};
use std::time::Duration;
use tokio::time::timeout;

const DATABASE_NAME: &str = "meshmeter";
/// Documents in a collection beyond those of one query. Few, because FerretDB's SQLite back end reads all of
/// them to find several.
const SPARE_DOCUMENTS: u32 = 100;
/// Documents per insert while a collection is filled, bytes.
const FILL_BYTES: usize = 8 << 20;
/// Documents per insert of a script, bytes: leaves room for the rest of a message.
const INSERT_BYTES: usize = MAX_MESSAGE_BYTES - 16 * 1024;
/// How long one command may take while a collection is filled.
const FILL_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Documents {
    query: QueryStep,
    filler: String,
    /// Size of one document.
    bytes: u64,
}

impl Documents {
    pub(super) fn new(query: &QueryStep) -> Self {
        let overhead = content(Value::String(&key(query, 0)), "").as_bytes().len();
        let filler = "x".repeat((query.document_bytes as usize).saturating_sub(overhead));
        let bytes = (overhead + filler.len()) as u64;
        Self { query: query.clone(), filler, bytes }
    }

    pub(super) fn is_read(&self) -> bool {
        self.query.operation != QueryOperation::Insert
    }

    /// Sizes of the documents of an operation, bytes: sent and received.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let bytes = self.bytes * u64::from(self.query.documents);
        match self.query.operation {
            QueryOperation::Find => (0, bytes),
            QueryOperation::Insert => (bytes, 0),
            QueryOperation::Update => (0, 0),
        }
    }

    /// Such as `find flights`.
    pub(super) fn operation(&self) -> String {
        format!("{} {}", self.query.operation.name(), self.query.collection)
    }

    /// Inserts the documents that are missing.
    pub(super) async fn fill(&self, pool: &Pool) -> Result<(), QueryError> {
        let mut is_filled = true;
        for number in [self.count() - 1, 0] {
            let find = self.find_command(&self.key_filter(number), 1);
            is_filled = is_filled && in_time(pool, &find).await?.found > 0;
        }
        if is_filled {
            return Ok(());
        }
        let at_once = (FILL_BYTES / self.bytes as usize).max(1);
        let numbers: Vec<u32> = (0..self.count()).collect();
        for numbers in numbers.chunks(at_once) {
            let documents =
                numbers.iter().map(|number| content(Value::String(&key(&self.query, *number)), &self.filler));
            in_time(pool, &self.insert_command(documents.collect(), false)).await?.there()?;
        }
        Ok(())
    }

    /// Returns how many documents are missing.
    pub(super) async fn find(&self, pool: &Pool, draw: f64) -> Result<u32, QueryError> {
        let documents = self.query.documents;
        let mut response = pool.run(&self.find_command(&self.filter(draw), documents)).await?;
        let mut count = response.found;
        // The server ends a batch early if the documents are too large for a message.
        while response.cursor != 0 {
            response = pool.run(&self.more_command(response.cursor)).await?;
            count = count.saturating_add(response.found);
        }
        Ok(documents.saturating_sub(count))
    }

    /// Returns how many documents are missing.
    pub(super) async fn update(&self, pool: &Pool, draw: f64) -> Result<u32, QueryError> {
        let matched = pool.run(&self.update_command(draw)).await?.written()?.matched;
        Ok(self.query.documents.saturating_sub(matched.try_into().unwrap_or(u32::MAX)))
    }

    pub(super) async fn insert(&self, pool: &Pool) -> Result<u32, QueryError> {
        let at_once = (INSERT_BYTES / self.bytes as usize).max(1);
        let mut left = self.query.documents as usize;
        while left > 0 {
            let count = left.min(at_once);
            let documents = (0..count).map(|_| content(Value::ObjectId(object_id::new()), &self.filler));
            pool.run(&self.insert_command(documents.collect(), true)).await?.written()?;
            left -= count;
        }
        Ok(0)
    }

    fn find_command(&self, filter: &Document, documents: u32) -> Command {
        let find = self.command("find").with("filter", Value::Document(filter.as_bytes()));
        let find = if documents == 1 {
            find.with("limit", Value::Int32(1)).with("singleBatch", Value::Boolean(true))
        } else {
            // One more than there are, so that the first batch is the last.
            find.with("batchSize", Value::Int32(documents as i32 + 1))
        };
        to_database(find)
    }

    fn more_command(&self, cursor: i64) -> Command {
        let more = Document::new()
            .with("getMore", Value::Int64(cursor))
            .with("collection", Value::String(&self.query.collection));
        to_database(more)
    }

    fn update_command(&self, draw: f64) -> Command {
        let filter = self.filter(draw);
        let value = Document::new().with("value", Value::Double(draw));
        let change = Document::new().with("$set", Value::Document(value.as_bytes()));
        let update = Document::new()
            .with("q", Value::Document(filter.as_bytes()))
            .with("u", Value::Document(change.as_bytes()))
            .with("multi", Value::Boolean(self.query.documents > 1));
        let updates = Document::array([Value::Document(update.as_bytes())]);
        to_database(
            self.command("update")
                .with("updates", Value::Array(updates.as_bytes()))
                .with("ordered", Value::Boolean(true)),
        )
    }

    /// `ordered`: the first document that cannot be written ends it.
    fn insert_command(&self, documents: Vec<Document>, ordered: bool) -> Command {
        let insert = to_database(self.command("insert").with("ordered", Value::Boolean(ordered)));
        Command { documents, ..insert }
    }

    fn command(&self, name: &str) -> Document {
        Document::new().with(name, Value::String(&self.query.collection))
    }

    /// Number of documents that the collection holds of this size.
    fn count(&self) -> u32 {
        self.query.documents.saturating_add(SPARE_DOCUMENTS)
    }

    /// Selects by key. FerretDB uses its index only for a single key.
    fn filter(&self, draw: f64) -> Document {
        let documents = self.query.documents;
        let first = (draw * f64::from(self.count() - documents + 1)) as u32;
        if documents == 1 {
            return self.key_filter(first);
        }
        let keys: Vec<String> = (first..first + documents).map(|number| key(&self.query, number)).collect();
        let keys = Document::array(keys.iter().map(|key| Value::String(key)));
        let is_one_of = Document::new().with("$in", Value::Array(keys.as_bytes()));
        Document::new().with("_id", Value::Document(is_one_of.as_bytes()))
    }

    fn key_filter(&self, number: u32) -> Document {
        Document::new().with("_id", Value::String(&key(&self.query, number)))
    }
}

/// Includes the size, so that documents of different sizes coexist in a collection.
fn key(query: &QueryStep, number: u32) -> String {
    format!("{}-{number}", query.document_bytes)
}

fn content(id: Value<'_>, filler: &str) -> Document {
    Document::new().with("_id", id).with("value", Value::Double(0.0)).with("filler", Value::String(filler))
}

fn to_database(body: Document) -> Command {
    Command::new(body.with("$db", Value::String(DATABASE_NAME)))
}

async fn in_time(pool: &Pool, command: &Command) -> Result<Response, QueryError> {
    let response = timeout(FILL_TIMEOUT, pool.run(command)).await;
    response.unwrap_or(Err(QueryError::TimedOut(FILL_TIMEOUT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(documents: u32, document_bytes: u32) -> Documents {
        Documents::new(&QueryStep {
            to: 0,
            operation: QueryOperation::Find,
            collection: "flights".to_owned(),
            documents,
            document_bytes,
            probability: 1.0,
            timeout: Duration::from_secs(1),
        })
    }

    #[test]
    fn document_has_given_size_or_minimum_for_its_key() {
        let key = Value::String("1-7");
        for (size, key, encoded) in
            [(620, Value::String("620-7"), 620), (1, key, content(key, "").as_bytes().len())]
        {
            let documents = documents(1, size);
            assert_eq!(content(key, &documents.filler).as_bytes().len(), encoded, "{size}");
        }
    }

    #[test]
    fn filter_stays_within_filled_documents() {
        let one = |key: &str| Document::new().with("_id", Value::String(key));
        assert_eq!(documents(1, 9).filter(0.0), one("9-0"));
        assert_eq!(documents(1, 9).filter(0.999_999), one("9-100"));
        let keys = Document::array([Value::String("9-100"), Value::String("9-101")]);
        let several = Document::new().with("$in", Value::Array(keys.as_bytes()));
        let several = Document::new().with("_id", Value::Document(several.as_bytes()));
        assert_eq!(documents(2, 9).filter(0.999_999), several);
    }
}
