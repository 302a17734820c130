//! A database in memory: OP_MSG over TLS, a thread per connection, and one fault at a time if it is told so.

use super::bson::{Bson, Document, document};
use crate::graph::LOOPBACK;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::spawn;
use tempfile::NamedTempFile;

const OP_MSG: i32 = 2013;

/// How the next command after the greeting is answered instead of executed.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    Refusal(&'static str),
    /// The command succeeds, its first document does not.
    WriteError(&'static str),
    Fault(Fault),
}

#[derive(Clone, Copy, Debug)]
pub enum Fault {
    Close,
    HalfAMessage,
    OtherRequest,
    /// A message that says to be this long.
    Length(i32),
    Garbage,
    Silence,
}

#[derive(Default)]
struct State {
    collections: BTreeMap<String, Vec<Document>>,
    commands: Vec<String>,
    answer: Option<Answer>,
    /// Documents of a batch, if limited.
    batch: Option<usize>,
    /// Documents of the open cursor that were not sent.
    rest: Vec<Bson>,
}

pub struct Database {
    address: SocketAddr,
    authority: NamedTempFile,
    state: Arc<Mutex<State>>,
}

impl Database {
    pub fn start() -> Self {
        let (config, authority) = identity();
        let listener = TcpListener::bind(LOOPBACK).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        spawn(move || {
            for stream in listener.incoming() {
                let (config, state) = (Arc::clone(&config), Arc::clone(&shared));
                let connection = ServerConnection::new(config).unwrap();
                // Ends with an error if the client closes the connection or does not trust it.
                spawn(move || serve(StreamOwned::new(connection, stream.unwrap()), &state));
            }
        });
        Self { address, authority, state }
    }

    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The file with the certificate that verifies it.
    pub fn authority(&self) -> PathBuf {
        self.authority.path().to_owned()
    }

    pub fn documents(&self, collection: &str) -> Vec<Document> {
        self.state.lock().unwrap().collections.get(collection).cloned().unwrap_or_default()
    }

    pub fn insert(&self, collection: &str, document: Document) {
        self.state.lock().unwrap().collections.entry(collection.to_owned()).or_default().push(document);
    }

    pub fn clear(&self, collection: &str) {
        self.state.lock().unwrap().collections.remove(collection);
    }

    pub fn set_batch(&self, documents: usize) {
        self.state.lock().unwrap().batch = Some(documents);
    }

    pub fn answer_next(&self, answer: Answer) {
        self.state.lock().unwrap().answer = Some(answer);
    }

    /// Names of all commands so far.
    pub fn commands(&self) -> Vec<String> {
        self.state.lock().unwrap().commands.clone()
    }
}

/// A certificate of its own authority for 127.0.0.1, and the authority's.
fn identity() -> (Arc<ServerConfig>, NamedTempFile) {
    let mut parameters = CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new(vec![LOOPBACK.ip().to_string()]).unwrap();
    let certificate = parameters.signed_by(&key, &authority).unwrap().pem();
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = builder.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(authority.pem().as_bytes()).unwrap();
    (Arc::new(config), file)
}

fn serve(mut stream: StreamOwned<ServerConnection, TcpStream>, state: &Mutex<State>) -> io::Result<()> {
    loop {
        let mut header = [0; 16];
        stream.read_exact(&mut header)?;
        let field = |index: usize| i32::from_le_bytes(header[4 * index..][..4].try_into().unwrap());
        assert_eq!((field(2), field(3)), (0, OP_MSG));
        let mut message = vec![0; field(0) as usize - 16];
        stream.read_exact(&mut message)?;
        let command = sections(&message);
        let request_id = field(1);
        let answer = {
            let mut state = state.lock().unwrap();
            let name = &command.0[0].0;
            state.commands.push(name.clone());
            if name == "isMaster" { None } else { state.answer.take() }
        };
        let response = match answer {
            None => state.lock().unwrap().execute(&command),
            Some(Answer::Refusal(message)) => {
                document([("ok", Bson::Double(0.0)), ("errmsg", Bson::String(message.to_owned()))])
            }
            Some(Answer::WriteError(message)) => write_errors(&[(121, message)]),
            Some(Answer::Fault(fault)) => {
                stream.write_all(&faulty(fault, request_id))?;
                if matches!(fault, Fault::Close | Fault::HalfAMessage) {
                    stream.conn.send_close_notify();
                    return stream.flush();
                }
                stream.flush()?;
                // Until the client closes it.
                continue;
            }
        };
        stream.write_all(&message_of(&response.encoded(), request_id))?;
        stream.flush()?;
    }
}

/// The command, with the documents of further sections as fields.
fn sections(message: &[u8]) -> Document {
    assert_eq!(message[..5], [0; 5], "no flags, and the command first");
    let mut rest = &message[5..];
    let mut command = Document::take(&mut rest);
    while let Some((kind, section)) = rest.split_first() {
        assert_eq!(*kind, 1);
        let length = i32::from_le_bytes(section[..4].try_into().unwrap()) as usize;
        let (section, after) = section.split_at(length);
        let end = 4 + section[4..].iter().position(|byte| *byte == 0).unwrap();
        let name = String::from_utf8(section[4..end].to_vec()).unwrap();
        let mut documents = &section[end + 1..];
        let mut values = Vec::new();
        while !documents.is_empty() {
            values.push(Bson::Document(Document::take(&mut documents)));
        }
        command.0.push((name, Bson::Array(values)));
        rest = after;
    }
    command
}

fn message_of(document: &[u8], request_id: i32) -> Vec<u8> {
    let length = 16 + 5 + document.len() as i32;
    let header = [length, 1, request_id, OP_MSG].map(i32::to_le_bytes).concat();
    [&header[..], &[0; 5], document].concat()
}

fn faulty(fault: Fault, request_id: i32) -> Vec<u8> {
    let good = message_of(&document([("ok", Bson::Double(1.0))]).encoded(), request_id);
    match fault {
        Fault::Close | Fault::Silence => Vec::new(),
        Fault::HalfAMessage => good[..good.len() / 2].to_vec(),
        Fault::OtherRequest => message_of(&good[21..], request_id + 1),
        Fault::Length(length) => [&length.to_le_bytes(), &good[4..]].concat(),
        Fault::Garbage => message_of(&[0x55; 40], request_id),
    }
}

fn write_errors(errors: &[(i32, &str)]) -> Document {
    let errors = errors.iter().map(|(code, message)| {
        Bson::Document(document([
            ("index", Bson::Int32(0)),
            ("code", Bson::Int32(*code)),
            ("errmsg", Bson::String((*message).to_owned())),
        ]))
    });
    let mut response = document([("n", Bson::Int32(0)), ("ok", Bson::Double(1.0))]);
    let errors: Vec<Bson> = errors.collect();
    if !errors.is_empty() {
        response.set("writeErrors", Bson::Array(errors));
    }
    response
}

impl State {
    fn execute(&mut self, command: &Document) -> Document {
        let (name, value) = &command.0[0];
        let database = if name == "isMaster" { "admin" } else { "meshmeter" };
        assert_eq!(command["$db"], Bson::String(database.to_owned()));
        match (name.as_str(), value) {
            ("isMaster", _) => document([("ismaster", Bson::Boolean(true)), ("ok", Bson::Double(1.0))]),
            ("find", Bson::String(collection)) => self.find(collection, command),
            ("getMore", Bson::Int64(1)) => self.batch("nextBatch"),
            ("insert", Bson::String(collection)) => self.insert(collection, command),
            ("update", Bson::String(collection)) => self.update(collection, command),
            _ => panic!("unexpected command {command:?}"),
        }
    }

    fn find(&mut self, collection: &str, command: &Document) -> Document {
        let documents = self.collections.get(collection).into_iter().flatten();
        let found = documents.filter(|document| matches(document, &command["filter"])).cloned();
        self.rest = found.map(Bson::Document).collect();
        if let Some(Bson::Int32(limit)) = command.get("limit") {
            self.rest.truncate(*limit as usize);
        }
        self.batch("firstBatch")
    }

    fn batch(&mut self, name: &str) -> Document {
        let count = self.batch.unwrap_or(usize::MAX).min(self.rest.len());
        let batch: Vec<Bson> = self.rest.drain(..count).collect();
        let id = i64::from(!self.rest.is_empty());
        let cursor = document([(name, Bson::Array(batch)), ("id", Bson::Int64(id))]);
        document([("cursor", Bson::Document(cursor)), ("ok", Bson::Double(1.0))])
    }

    fn insert(&mut self, collection: &str, command: &Document) -> Document {
        let Bson::Array(new) = &command["documents"] else { panic!("{command:?}") };
        let documents = self.collections.entry(collection.to_owned()).or_default();
        let mut errors = Vec::new();
        for new in new {
            let Bson::Document(new) = new else { panic!("{new:?}") };
            if documents.iter().any(|document| document["_id"] == new["_id"]) {
                errors.push((11_000, "duplicate key"));
            } else {
                documents.push(new.clone());
            }
        }
        write_errors(&errors)
    }

    fn update(&mut self, collection: &str, command: &Document) -> Document {
        let Bson::Array(updates) = &command["updates"] else { panic!("{command:?}") };
        let [Bson::Document(update)] = &updates[..] else { panic!("{updates:?}") };
        let Bson::Document(change) = &update["u"] else { panic!("{update:?}") };
        let Bson::Document(change) = &change["$set"] else { panic!("{change:?}") };
        let most = if update["multi"] == Bson::Boolean(true) { usize::MAX } else { 1 };
        let documents = self.collections.entry(collection.to_owned()).or_default().iter_mut();
        let mut count = 0;
        for document in documents.filter(|document| matches(document, &update["q"])).take(most) {
            change.0.iter().for_each(|(name, value)| document.set(name, value.clone()));
            count += 1;
        }
        document([("n", Bson::Int32(count)), ("ok", Bson::Double(1.0))])
    }
}

/// Filters select by `_id`: one, or one of several.
fn matches(document: &Document, filter: &Bson) -> bool {
    let Bson::Document(filter) = filter else { panic!("{filter:?}") };
    match &filter["_id"] {
        Bson::Document(one_of) => {
            let Bson::Array(keys) = &one_of["$in"] else { panic!("{one_of:?}") };
            keys.contains(&document["_id"])
        }
        key => document["_id"] == *key,
    }
}
