//! The documents of a query: keys, content and operations.

use experiment::topology::script::{QueryOperation, QueryStep};
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use mongodb::error::{Error, ErrorKind, Result};
use mongodb::{Collection, Database};

/// Documents in a collection beyond those of one query. Few, because FerretDB's SQLite back end reads all of
/// them to find several.
const SPARE_DOCUMENTS: u32 = 100;
/// Write error code for a duplicate key.
const DUPLICATE_KEY: i32 = 11_000;
/// Documents per insert while a collection is filled, bytes: below the 48 MB limit of a message.
const FILL_BYTES: usize = 8 << 20;

#[derive(Debug)]
pub(super) struct Documents {
    query: QueryStep,
    filler: String,
    /// Size of one document.
    bytes: u64,
}

impl Documents {
    pub(super) fn new(query: &QueryStep) -> Self {
        let overhead = encoded_bytes(&content(query, 0, ""));
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
        let verb = match self.query.operation {
            QueryOperation::Find => "find",
            QueryOperation::Insert => "insert",
            QueryOperation::Update => "update",
        };
        format!("{verb} {}", self.query.collection)
    }

    /// Inserts the documents that are missing.
    pub(super) async fn fill(&self, database: &Database) -> Result<()> {
        let collection = self.collection(database);
        let last = self.count() - 1;
        if collection.find_one(doc! {"_id": self.key(last)}).await?.is_some()
            && collection.find_one(doc! {"_id": self.key(0)}).await?.is_some()
        {
            return Ok(());
        }
        let numbers: Vec<u32> = (0..self.count()).collect();
        let at_once = (FILL_BYTES / (self.query.document_bytes as usize).max(1)).max(1);
        for numbers in numbers.chunks(at_once) {
            let documents: Vec<RawDocumentBuf> =
                numbers.iter().map(|number| raw(&content(&self.query, *number, &self.filler))).collect();
            match collection.insert_many(documents).ordered(false).await {
                Err(error) if !is_there(&error) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns how many documents are missing.
    pub(super) async fn find(&self, database: &Database, draw: f64) -> Result<u32> {
        let collection = self.collection(database);
        let documents = self.query.documents;
        if documents == 1 {
            let found = collection.find_one(self.filter(draw)).await?;
            return Ok(u32::from(found.is_none()));
        }
        // One more than there are, so that the first batch is the last.
        let mut found = collection.find(self.filter(draw)).batch_size(documents + 1).await?;
        let mut count = 0;
        while found.advance().await? {
            count += 1;
        }
        Ok(documents.saturating_sub(count))
    }

    pub(super) async fn update(&self, database: &Database, draw: f64) -> Result<u32> {
        let collection = self.collection(database);
        let change = doc! {"$set": {"value": draw}};
        let matched = if self.query.documents == 1 {
            collection.update_one(self.filter(draw), change).await?.matched_count
        } else {
            collection.update_many(self.filter(draw), change).await?.matched_count
        };
        Ok(self.query.documents.saturating_sub(matched.try_into().unwrap_or(u32::MAX)))
    }

    pub(super) async fn insert(&self, database: &Database) -> Result<u32> {
        let collection = self.collection(database);
        let new = || {
            let mut document = content(&self.query, 0, &self.filler);
            document.insert("_id", ObjectId::new());
            raw(&document)
        };
        if self.query.documents == 1 {
            collection.insert_one(new()).await?;
        } else {
            collection.insert_many((0..self.query.documents).map(|_| new())).await?;
        }
        Ok(0)
    }

    fn collection(&self, database: &Database) -> Collection<RawDocumentBuf> {
        database.collection(&self.query.collection)
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
            return doc! {"_id": self.key(first)};
        }
        let keys: Vec<Bson> = (first..first + documents).map(|number| self.key(number)).collect();
        doc! {"_id": {"$in": keys}}
    }

    /// Includes the size, so that documents of different sizes coexist in a collection.
    fn key(&self, number: u32) -> Bson {
        key(&self.query, number)
    }
}

fn key(query: &QueryStep, number: u32) -> Bson {
    Bson::String(format!("{}-{number}", query.document_bytes))
}

fn content(query: &QueryStep, number: u32, filler: &str) -> Document {
    doc! {"_id": key(query, number), "value": 0.0, "filler": filler}
}

fn encoded_bytes(document: &Document) -> usize {
    raw(document).as_bytes().len()
}

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).expect("names without zero bytes can be encoded")
}

/// True if the only failures are documents that already exist.
fn is_there(error: &Error) -> bool {
    let ErrorKind::InsertMany(error) = &*error.kind else { return false };
    let written = error.write_errors.as_deref().unwrap_or_default();
    error.write_concern_error.is_none()
        && !written.is_empty()
        && written.iter().all(|error| error.code == DUPLICATE_KEY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

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
        for (size, encoded) in [(620, 620), (1, encoded_bytes(&content(&documents(1, 1).query, 7, "")))] {
            let documents = documents(1, size);
            let document = content(&documents.query, 7, &documents.filler);
            assert_eq!(encoded_bytes(&document), encoded, "{size}");
        }
    }

    #[test]
    fn filter_stays_within_filled_documents() {
        assert_eq!(documents(1, 9).filter(0.0), doc! {"_id": "9-0"});
        assert_eq!(documents(1, 9).filter(0.999_999), doc! {"_id": "9-100"});
        assert_eq!(documents(2, 9).filter(0.999_999), doc! {"_id": {"$in": ["9-100", "9-101"]}});
    }
}
