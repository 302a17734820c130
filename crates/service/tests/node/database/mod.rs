//! Queries to databases, against a server that speaks OP_MSG over TLS and shares no code with the client.

mod bson;
mod server;

use crate::graph::{Running, TEST_TIMEOUT, get, service, settings, topology};
use bson::{Bson, document};
use experiment::protocol::Protocol;
use experiment::topology::script::{QueryOperation, QueryStep, Step};
use experiment::topology::{Runs, Workload};
use server::{Answer, Database, Fault};
use std::collections::BTreeSet;
use std::time::Duration;

fn query(operation: QueryOperation, documents: u32) -> QueryStep {
    QueryStep {
        to: 1,
        operation,
        collection: "flights".to_owned(),
        documents,
        document_bytes: 620,
        probability: 1.0,
        timeout: TEST_TIMEOUT,
    }
}

/// A node `web` whose script has these queries of `db`.
fn web(database: &Database, queries: Vec<QueryStep>) -> Running {
    let steps = queries.into_iter().map(Step::Query).collect();
    let db = Workload { runs: Runs::Database, ..service("db", Protocol::Tcp, Vec::new()) };
    let mut settings = settings(&topology(vec![service("web", Protocol::Http1, steps), db]), 0);
    settings.connect.insert(1, database.address());
    settings.database_authority = Some(database.authority());
    Running::start(&settings)
}

fn await_ready(web: &Running) {
    loop {
        let (status, body) = get(web.admin, "/health/ready");
        if status == 200 {
            return;
        }
        assert!(body.contains("are being filled"), "{body}");
        std::thread::yield_now();
    }
}

fn counts(web: &Running) -> [u64; 4] {
    ["sent", "answered", "failed", "unsent"].map(|count| web.calls("db", count))
}

#[test]
fn queries_find_update_and_insert_documents() {
    let database = Database::start();
    let operations = [QueryOperation::Find, QueryOperation::Update, QueryOperation::Insert];
    let queries = operations.into_iter().flat_map(|operation| [query(operation, 1), query(operation, 3)]);
    let web = web(&database, queries.collect());
    await_ready(&web);
    // Three documents and a hundred spare ones.
    let filled = database.documents("flights");
    assert_eq!(filled.len(), 103);
    // The size is that with a key of one digit.
    let sizes: BTreeSet<usize> = filled.iter().map(|document| document.encoded().len()).collect();
    assert_eq!(sizes, BTreeSet::from([620, 621, 622]));
    for _ in 0..2 {
        assert_eq!(get(web.address, "/").0, 200);
    }
    assert_eq!(counts(&web), [12, 12, 0, 0]);
    // Bytes are those of documents: found 1 + 3, inserted 1 + 3 per request.
    assert_eq!(["bytes_sent", "bytes_received"].map(|count| web.calls("db", count)), [8 * 620; 2]);
    assert_eq!(["connections", "connections_open"].map(|count| web.calls("db", count)), [1; 2]);
    let documents = database.documents("flights");
    assert_eq!(documents.len(), 111);
    let of_scripts: Vec<&Bson> = documents
        .iter()
        .map(|document| &document["_id"])
        .filter(|id| matches!(id, Bson::ObjectId(_)))
        .collect();
    assert_eq!(of_scripts.len(), 8);
    let updated = documents.iter().filter(|document| document["value"] != Bson::Double(0.0)).count();
    assert!((3..=8).contains(&updated), "{updated}");
    assert_eq!(web.end().errors, 0);
    let names = database.commands();
    assert_eq!(names[0], "isMaster");
    // Filling asks for one or two documents per query that reads; then come two finds per request.
    assert_eq!(names.iter().filter(|name| *name == "find").count(), 6 + 2 * 2, "{names:?}");
}

/// A collection that another service has filled in part is completed.
#[test]
fn documents_that_are_there_are_kept() {
    let database = Database::start();
    database
        .insert("flights", document([("_id", Bson::String("620-7".into())), ("value", Bson::Double(7.0))]));
    let web = web(&database, vec![query(QueryOperation::Find, 1)]);
    await_ready(&web);
    let documents = database.documents("flights");
    assert_eq!(documents.len(), 101);
    assert!(documents.iter().any(|document| document["value"] == Bson::Double(7.0)));
}

#[test]
fn documents_in_several_batches_are_all_found() {
    let database = Database::start();
    database.set_batch(2);
    let web = web(&database, vec![query(QueryOperation::Find, 5)]);
    await_ready(&web);
    assert_eq!(get(web.address, "/").0, 200);
    let names = database.commands();
    assert_eq!(names.iter().filter(|name| *name == "getMore").count(), 2, "{names:?}");
    assert_eq!(counts(&web), [1, 1, 0, 0]);
}

#[test]
fn missing_documents_and_refusals_are_reported() {
    let database = Database::start();
    let web = web(&database, vec![query(QueryOperation::Find, 2)]);
    await_ready(&web);
    let place = database.address();
    database.clear("flights");
    let (status, body) = get(web.address, "/");
    let expected = format!("database db at {place}: find flights: 2 of 2 documents are missing\n");
    assert_eq!((status, body), (502, expected));
    database.answer_next(Answer::Refusal("the cache is full"));
    let (status, body) = get(web.address, "/");
    assert_eq!((status, body), (502, format!("database db at {place}: find flights: the cache is full\n")));
    // A refusal is a whole response: the connection is kept.
    assert_eq!(web.calls("db", "connections"), 1);
    assert_eq!(counts(&web), [2, 0, 2, 0]);
}

#[test]
fn failed_write_of_one_document_is_reported() {
    let database = Database::start();
    let web = web(&database, vec![query(QueryOperation::Insert, 2)]);
    await_ready(&web);
    database.answer_next(Answer::WriteError("document failed validation"));
    let (status, body) = get(web.address, "/");
    assert!(status == 502 && body.ends_with("insert flights: document failed validation\n"), "{body}");
}

/// Each breaks one response; the next query succeeds on a new connection.
#[test]
fn broken_responses_end_their_connection_and_nothing_else() {
    let database = Database::start();
    let web = web(&database, vec![query(QueryOperation::Find, 1)]);
    await_ready(&web);
    for (connections, (fault, reason)) in (2..).zip([
        (Fault::Close, "the database closed the connection"),
        (Fault::HalfAMessage, "the database closed the connection"),
        (Fault::OtherRequest, "the response is malformed: a message responds to another request"),
        (Fault::Length(i32::MAX), "the response is malformed: a message is longer than 48 MB"),
        (Fault::Length(-1), "the response is malformed: the length of a message is negative"),
        (Fault::Garbage, "the response is malformed: a document has another length than it says"),
    ]) {
        database.answer_next(Answer::Fault(fault));
        let (status, body) = get(web.address, "/");
        assert!(status == 502 && body.contains(reason), "{fault:?}: {body}");
        assert_eq!(get(web.address, "/").0, 200, "{fault:?}");
        assert_eq!(web.calls("db", "connections"), connections, "{fault:?}");
        assert_eq!(web.calls("db", "connections_open"), 1, "{fault:?}");
    }
    assert_eq!(counts(&web), [12, 6, 6, 0]);
    assert_eq!(web.end().errors, 0);
}

#[test]
fn silent_database_times_out() {
    let database = Database::start();
    let timeout = Duration::from_millis(20);
    let web = web(&database, vec![QueryStep { timeout, ..query(QueryOperation::Insert, 1) }]);
    await_ready(&web);
    database.answer_next(Answer::Fault(Fault::Silence));
    let (status, body) = get(web.address, "/");
    assert!(status == 502 && body.ends_with("insert flights: no response within 20ms\n"), "{body}");
    assert_eq!(counts(&web), [1, 0, 1, 0]);
}

#[test]
fn database_of_another_authority_is_not_queried() {
    let (database, other) = (Database::start(), Database::start());
    let queries = vec![Step::Query(query(QueryOperation::Insert, 1))];
    let db = Workload { runs: Runs::Database, ..service("db", Protocol::Tcp, Vec::new()) };
    let mut settings = settings(&topology(vec![service("web", Protocol::Http1, queries), db]), 0);
    settings.connect.insert(1, database.address());
    settings.database_authority = Some(other.authority());
    let web = Running::start(&settings);
    let (status, body) = get(web.address, "/");
    assert!(status == 502 && body.contains("invalid peer certificate"), "{body}");
    assert_eq!(counts(&web), [0, 0, 0, 1]);
    assert_eq!(database.commands(), Vec::<String>::new());
}
