//! A registry that serves one image, and misbehaves on demand.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use crate::image::{Artifact, Content};
use crate::server::{Body, Request, Response, Server};
use crate::tls::{CERTIFICATE, certify};

/// What a request gets instead of the requested content.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// A response that the test provides.
    Respond(Response),
    /// The true headers, this many bytes, and then the end of the connection.
    BreakAfter(usize),
    /// The true headers, this many bytes, and then nothing more.
    StallAfter(usize),
    /// The true content from its beginning, ignoring the requested range.
    WithoutRanges,
    /// Each behaviour for one request in turn, then the truth.
    Sequence(Vec<Behaviour>),
    /// The requested content.
    Truth,
}

/// A registry without credentials. Requests whose path ends in a text with a [`Behaviour`] get that
/// behaviour.
pub struct HostileRegistry {
    server: Server,
    behaviours: Arc<Mutex<HashMap<String, Behaviour>>>,
    /// Directory of the certificate.
    folder: Option<TempDir>,
}

impl HostileRegistry {
    /// Serves `artifact` under every name and tag, over plain HTTP.
    pub fn start(artifact: Artifact) -> Self {
        Self::start_with(artifact, None)
    }

    /// Serves `artifact` under every name and tag, over TLS.
    pub fn start_with_tls(artifact: Artifact) -> Self {
        Self::start_with(artifact, Some(tempfile::tempdir().expect("a temporary folder")))
    }

    fn start_with(artifact: Artifact, folder: Option<TempDir>) -> Self {
        let tls = folder.as_ref().map(|folder| certify(folder.path()));
        let behaviours = Arc::new(Mutex::new(HashMap::<String, Behaviour>::new()));
        let of_server = Arc::clone(&behaviours);
        let server = Server::start(tls, move |request| {
            let truth = answer(&artifact, request);
            let mut behaviours = of_server.lock().expect("no thread panics");
            let behaviour = behaviours.iter_mut().find(|(end, _)| request.path().ends_with(end.as_str()));
            match behaviour {
                Some((_, behaviour)) => behave(behaviour, &artifact, request, truth),
                None => truth,
            }
        });
        Self { server, behaviours, folder }
    }

    /// Sets the behaviour for requests whose path ends in `end`.
    #[must_use]
    pub fn with(self, end: &str, behaviour: Behaviour) -> Self {
        self.behaviours.lock().expect("no thread panics").insert(end.to_owned(), behaviour);
        self
    }

    /// Host and port, the first part of an image's name.
    pub fn address(&self) -> String {
        self.server.address().to_string()
    }

    /// File with the CA certificate, if the registry uses TLS.
    pub fn ca(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.path().join(CERTIFICATE))
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.server.requests()
    }
}

fn behave(behaviour: &mut Behaviour, artifact: &Artifact, request: &Request, truth: Response) -> Response {
    let sent = |response: &Response, most: usize| match &response.body {
        Body::Whole(bytes) => (bytes.len(), bytes[..most.min(bytes.len())].to_vec()),
        _ => (0, Vec::new()),
    };
    match behaviour {
        Behaviour::Truth => truth,
        Behaviour::Respond(response) => response.clone(),
        Behaviour::BreakAfter(most) => {
            let (length, sent) = sent(&truth, *most);
            Response { body: Body::Broken { length, sent }, ..truth }
        }
        Behaviour::StallAfter(most) => {
            let (length, sent) = sent(&truth, *most);
            Response { body: Body::Stalled { length, sent }, ..truth }
        }
        Behaviour::WithoutRanges => {
            let headers = request.headers.iter().filter(|(name, _)| name != "range").cloned().collect();
            answer(artifact, &Request { headers, ..request.clone() })
        }
        Behaviour::Sequence(behaviours) if behaviours.is_empty() => truth,
        Behaviour::Sequence(behaviours) => {
            let mut next = behaviours.remove(0);
            behave(&mut next, artifact, request, truth)
        }
    }
}

/// The response of a correct registry.
fn answer(artifact: &Artifact, request: &Request) -> Response {
    let path = request.path();
    let name = path.rsplit('/').next().unwrap_or_default();
    if path.contains("/manifests/") {
        let found = artifact.all_manifests().find(|manifest| manifest.digest == name);
        let content = if name.contains(':') { found } else { Some(&artifact.root) };
        return content.map_or_else(unknown, |content| {
            let response = whole(content).with("Content-Type", &content.media_type);
            let length = content.bytes.len();
            if request.method == "HEAD" {
                Response { body: Body::LengthOnly(length), ..response }
            } else {
                response
            }
        });
    }
    let Some(blob) = artifact.blobs.iter().find(|blob| blob.digest == name) else { return unknown() };
    let from = request
        .header("range")
        .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    match from {
        None => whole(blob),
        Some(from) if from >= blob.bytes.len() => Response::new(416, ""),
        Some(from) => {
            let range = format!("bytes {from}-{}/{}", blob.bytes.len() - 1, blob.bytes.len());
            Response::new(206, &blob.bytes[from..]).with("Content-Range", &range)
        }
    }
}

fn whole(content: &Content) -> Response {
    Response::new(200, content.bytes.clone()).with("Docker-Content-Digest", &content.digest)
}

fn unknown() -> Response {
    Response::new(404, r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}"#)
}
