//! One request to the API, and its answer: bounded in size, with the API's own words where it refuses.

use experiment::environment::EnvironmentError;
use http::{Method, Request};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use serde_json::Value;

/// How long an answer may be, bytes. Each is about one object, and the API stores none of more than 1.5 MiB; what it says
/// of who wrote which field may come to several times that.
const ANSWER_BYTES: usize = 16 << 20;

/// How much is shown of an answer that is not of the API's own making, characters.
const SHOWN_CHARACTERS: usize = 300;

/// The status of an answer: such an object exists already.
const EXISTS: u16 = 409;

/// One request.
pub(super) struct Question {
    pub operation: String,
    pub method: Method,
    pub path: String,
    pub content_type: &'static str,
    pub body: Vec<u8>,
    /// That the object does not exist is as good as success.
    pub may_be_absent: bool,
    /// What it means that nothing answers at this path at all; absent: what the API says itself.
    pub unknown_path: Option<String>,
    /// What is asked where the object exists already; absent: that is an error.
    pub instead: Option<Box<Question>>,
}

impl Question {
    pub fn new(operation: impl Into<String>, method: Method, path: impl Into<String>) -> Self {
        Self {
            operation: operation.into(),
            method,
            path: path.into(),
            content_type: "application/json",
            body: Vec::new(),
            may_be_absent: false,
            unknown_path: None,
            instead: None,
        }
    }

    pub fn with(self, content_type: &'static str, body: &Value) -> Self {
        Self { content_type, body: body.to_string().into_bytes(), ..self }
    }
}

/// A question that was not answered as it must.
pub(super) struct Refusal {
    pub operation: String,
    /// The status of the answer, where there was one.
    pub code: Option<u16>,
    pub reason: String,
}

impl From<Refusal> for EnvironmentError {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.operation, refusal.reason)
    }
}

/// Asks, and gives the answer's text.
pub(super) async fn answer(client: &Client, mut question: Question) -> Result<String, Refusal> {
    let instead = question.instead.take();
    match (answer_once(client, question).await, instead) {
        (Err(Refusal { code: Some(EXISTS), .. }), Some(instead)) => answer_once(client, *instead).await,
        (answer, _) => answer,
    }
}

async fn answer_once(client: &Client, question: Question) -> Result<String, Refusal> {
    let Question { operation, method, path, content_type, body, may_be_absent, unknown_path, instead: _ } =
        question;
    let refused = |code: Option<u16>, reason: String| Refusal { operation: operation.clone(), code, reason };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, content_type)
        .body(Body::from(body))
        .map_err(|error| refused(None, error.to_string()))?;
    // Its own text holds those of its causes.
    let response = client.send(request).await.map_err(|error| refused(None, error.to_string()))?;
    let code = response.status();
    let text = text(response.into_body(), ANSWER_BYTES).await.map_err(|reason| refused(None, reason))?;
    if code.is_success() {
        return Ok(text);
    }
    if may_be_absent && code == http::StatusCode::NOT_FOUND {
        return Ok(String::new());
    }
    let message = message(&text);
    let reason = unknown_path.filter(|_| is_unknown_path(code, &message)).unwrap_or(message);
    Err(refused(Some(code.as_u16()), reason))
}

/// A body as a whole, where it is no longer than that.
async fn text(body: Body, at_most_bytes: usize) -> Result<String, String> {
    let whole = Limited::new(body, at_most_bytes).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() {
            format!("its answer is longer than {at_most_bytes} bytes")
        } else {
            error.to_string()
        }
    })?;
    String::from_utf8(whole.to_bytes().into()).map_err(|error| error.to_string())
}

/// What the API says of a refusal; where its answer is no such, how that begins.
fn message(text: &str) -> String {
    match serde_json::from_str::<Status>(text) {
        Ok(status) if !status.message.is_empty() => status.message,
        _ => text.trim().chars().take(SHOWN_CHARACTERS).collect(),
    }
}

/// Whether nothing is served at a path, of which the API speaks in one way where it knows the group, and in another where
/// it does not: that an object or its namespace is absent is said with its name.
fn is_unknown_path(code: http::StatusCode, message: &str) -> bool {
    let words = ["page not found", "could not find the requested resource"];
    code == http::StatusCode::NOT_FOUND && words.iter().any(|words| message.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_end_is_not_read_to_its_end() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let read = |length: usize| runtime.block_on(text(Body::from(vec![b'x'; length]), 1000));
        assert_eq!(read(1000).unwrap().len(), 1000);
        assert_eq!(read(1001).unwrap_err(), "its answer is longer than 1000 bytes");
    }

    #[test]
    fn a_refusal_has_the_words_of_the_api_or_of_whoever_answers() {
        let status = r#"{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "no", "code": 403}"#;
        assert_eq!(message(status), "no");
        assert_eq!(message("404 page not found\n"), "404 page not found");
        assert_eq!(message(&"x".repeat(1000)).len(), SHOWN_CHARACTERS);
    }
}
