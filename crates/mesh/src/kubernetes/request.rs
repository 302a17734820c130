//! One API request, built and sent by kube, with an error that names the operation.

use crate::Result;
use experiment::environment::{EnvironmentError, ErrorContext};
use http_body_util::LengthLimitError;
use kube::Client;
use kube::core::Status;
use kube::core::request::Error as BuildError;
use std::error::Error;

/// Maximum size of a response. Each contains one object, which the API limits to 1.5 MiB; its managed fields
/// may be several times that.
pub(super) const MAX_RESPONSE_BYTES: usize = 16 << 20;
/// Maximum length of an error message that did not come from the API.
const MAX_SHOWN_CHARACTERS: usize = 300;
/// The reason that kube gives for such an error.
const NOT_A_STATUS: &str = "Failed to parse error data";

pub(super) struct ApiRequest {
    pub operation: String,
    pub request: http::Request<Vec<u8>>,
    /// Treats 404 as success.
    pub ignore_not_found: bool,
    /// Explains that nothing is served at this path; absent: the API's own message.
    pub unknown_path: Option<String>,
    /// Sent if the object already exists; absent: that is an error.
    pub on_already_exists: Option<Box<ApiRequest>>,
}

impl ApiRequest {
    pub fn new(operation: String, request: Result<http::Request<Vec<u8>>, BuildError>) -> Result<Self> {
        let request = request.context(operation.clone())?;
        Ok(Self { operation, request, ignore_not_found: false, unknown_path: None, on_already_exists: None })
    }

    pub fn ignoring_not_found(self) -> Self {
        Self { ignore_not_found: true, ..self }
    }

    /// GET of a path that belongs to no object.
    pub fn get(operation: &str, path: &str) -> Self {
        let request = http::Request::get(path).body(Vec::new()).expect("the path is a constant");
        let operation = operation.to_owned();
        Self { operation, request, ignore_not_found: false, unknown_path: None, on_already_exists: None }
    }
}

#[derive(Debug)]
pub(super) struct ApiError {
    pub operation: String,
    pub code: Option<u16>,
    pub reason: String,
}

impl From<ApiError> for EnvironmentError {
    fn from(error: ApiError) -> Self {
        Self::new(error.operation, error.reason)
    }
}

pub(super) async fn send(client: &Client, request: ApiRequest) -> Result<String, ApiError> {
    match request.on_already_exists {
        Some(instead) => match send_one(client, ApiRequest { on_already_exists: None, ..request }).await {
            Err(ApiError { code: Some(409), .. }) => send_one(client, *instead).await,
            response => response,
        },
        None => send_one(client, request).await,
    }
}

async fn send_one(client: &Client, request: ApiRequest) -> Result<String, ApiError> {
    let ApiRequest { operation, request, ignore_not_found, unknown_path, .. } = request;
    let status = match client.request_text(request).await {
        Ok(text) => return Ok(text),
        Err(kube::Error::Api(status)) => status,
        Err(error) => return Err(ApiError { operation, code: None, reason: describe(&error) }),
    };
    let is_not_found = status.code == 404;
    if is_not_found && ignore_not_found {
        return Ok(String::new());
    }
    let is_unknown = is_not_found && is_unknown_path(&status.message);
    let reason = unknown_path.filter(|_| is_unknown).unwrap_or_else(|| message(&status));
    Err(ApiError { operation, code: Some(status.code), reason })
}

/// The API's own message, or the beginning of another server's response.
fn message(status: &Status) -> String {
    if status.reason == NOT_A_STATUS {
        return status.message.chars().take(MAX_SHOWN_CHARACTERS).collect();
    }
    status.message.clone()
}

/// Reason of a failed request: the API's own message, or why there is no response.
pub(super) fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => message(status),
        error => describe(error),
    }
}

/// Reason why there is no response. The root cause, such as `Connection refused`, says more than the library's text.
fn describe(error: &kube::Error) -> String {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    let mut last = error.to_string();
    while let Some(error) = cause {
        if error.is::<LengthLimitError>() {
            return format!("its response is longer than {MAX_RESPONSE_BYTES} bytes");
        }
        last = error.to_string();
        cause = error.source();
    }
    // Message of the timer that kube uses.
    last.replace("deadline has elapsed", "no response in time")
}

/// True if nothing is served at the path, going by the API's messages for known and unknown groups. For an
/// absent object or namespace, the API's message has its name instead.
fn is_unknown_path(message: &str) -> bool {
    ["page not found", "could not find the requested resource"].iter().any(|words| message.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::client::bounded;
    use http::Response;
    use kube::client::{Body, ClientBuilder};
    use std::convert::Infallible;
    use tower::service_fn;
    use tower::util::MapResponseLayer;

    /// Sends a request to an API that responds with this code and body.
    fn respond(code: u16, body: Vec<u8>, change: impl FnOnce(&mut ApiRequest)) -> Result<String, ApiError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let api = service_fn(move |_: http::Request<Body>| {
                let response = Response::builder().status(code).body(Body::from(body.clone()));
                std::future::ready(Ok::<_, Infallible>(response.unwrap()))
            });
            let bound = MapResponseLayer::new(|response: Response<Body>| response.map(bounded));
            let client = ClientBuilder::new(api, "default").with_layer(&bound).build();
            let mut request = ApiRequest::get("ask", "/readyz");
            change(&mut request);
            send(&client, request).await
        })
    }

    #[test]
    fn send_response_too_long_is_error() {
        let read = |length: usize| respond(200, vec![b'x'; length], |_| ());
        assert_eq!(read(MAX_RESPONSE_BYTES).unwrap().len(), MAX_RESPONSE_BYTES);
        let error = read(MAX_RESPONSE_BYTES + 1).unwrap_err();
        assert_eq!(error.reason, format!("its response is longer than {MAX_RESPONSE_BYTES} bytes"));
    }

    #[test]
    fn send_error_quotes_responding_server() {
        let status = r#"{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "no", "code": 403}"#;
        let error = respond(403, status.into(), |_| ()).unwrap_err();
        assert_eq!((error.code, error.reason.as_str()), (Some(403), "no"));
        let error = respond(404, b"404 page not found\n".to_vec(), |_| ()).unwrap_err();
        assert_eq!(error.reason, "404 page not found");
        assert_eq!(respond(502, vec![b'x'; 1000], |_| ()).unwrap_err().reason.len(), MAX_SHOWN_CHARACTERS);
    }

    #[test]
    fn send_not_found_is_ignored_or_explained_for_unknown_kinds() {
        let not_found = || b"404 page not found\n".to_vec();
        assert_eq!(respond(404, not_found(), |request| request.ignore_not_found = true).unwrap(), "");
        let error = respond(404, not_found(), |request| request.unknown_path = Some("no kind".to_owned()));
        assert_eq!(error.unwrap_err().reason, "no kind");
    }
}
