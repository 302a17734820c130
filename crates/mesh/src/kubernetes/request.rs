//! One API request, built and sent by kube, with an error that names the operation.

use crate::Result;
use experiment::environment::{EnvironmentError, ErrorContext};
use http_body_util::LengthLimitError;
use kube::Client;
use std::error::Error;
use std::time::Instant;

/// Maximum size of a response. Each contains one object, which the API limits to 1.5 MiB; its managed fields
/// may be several times that.
pub(super) const MAX_RESPONSE_BYTES: usize = 16 << 20;
/// Maximum length of an error message that did not come from the API.
const MAX_SHOWN_CHARACTERS: usize = 300;
/// The reason that kube gives for such an error.
const NOT_A_STATUS: &str = "Failed to parse error data";

#[derive(Debug)]
pub struct ApiRequest {
    pub(super) operation: String,
    pub(super) request: http::Request<Vec<u8>>,
    pub(super) absent_on: &'static [u16],
    /// Explains that nothing is served at this path; absent: the API's own message.
    pub(super) unknown_path: Option<String>,
    /// Sent if the object already exists; absent: that is an error.
    pub(super) on_already_exists: Option<Box<ApiRequest>>,
}

impl ApiRequest {
    pub fn new(
        operation: impl Into<String>,
        request: Result<http::Request<Vec<u8>>, impl Into<Box<dyn Error + Send + Sync>>>,
    ) -> Result<Self> {
        let operation = operation.into();
        let request = request.context(operation.clone())?;
        Ok(Self { operation, request, absent_on: &[], unknown_path: None, on_already_exists: None })
    }

    pub fn get(operation: impl Into<String>, path: &str) -> Result<Self> {
        Self::new(operation, http::Request::get(path).body(Vec::new()))
    }

    /// Responses with one of these statuses are not errors but empty.
    pub fn absent_on(self, statuses: &'static [u16]) -> Self {
        Self { absent_on: statuses, ..self }
    }
}

#[derive(Debug)]
pub struct ApiError {
    pub operation: String,
    /// Status of the response; absent if there was none.
    pub code: Option<u16>,
    pub reason: String,
}

impl From<ApiError> for EnvironmentError {
    fn from(error: ApiError) -> Self {
        Self::new(error.operation, error.reason)
    }
}

/// A response with the times around its exchange.
#[derive(Debug)]
pub struct Response {
    pub text: String,
    pub sent: Instant,
    pub received: Instant,
}

pub(super) async fn send(client: &Client, mut request: ApiRequest) -> Result<Response, ApiError> {
    let instead = request.on_already_exists.take();
    let sent = Instant::now();
    let mut text = send_one(client, request).await;
    if let (Some(instead), Err(ApiError { code: Some(409), .. })) = (instead, &text) {
        text = send_one(client, *instead).await;
    }
    Ok(Response { text: text?, sent, received: Instant::now() })
}

async fn send_one(client: &Client, request: ApiRequest) -> Result<String, ApiError> {
    let error = match client.request_text(request.request).await {
        Ok(text) => return Ok(text),
        Err(error) => error,
    };
    let code = match &error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    };
    if code.is_some_and(|code| request.absent_on.contains(&code)) {
        return Ok(String::new());
    }
    let reason = reason(&error);
    let is_unknown = code == Some(404) && is_unknown_path(&reason);
    let reason = request.unknown_path.filter(|_| is_unknown).unwrap_or(reason);
    Err(ApiError { operation: request.operation, code, reason })
}

/// Reason of a failed request: the message of the API, the beginning of another server's response, or why there
/// is no response.
pub fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.reason == NOT_A_STATUS => {
            status.message.chars().take(MAX_SHOWN_CHARACTERS).collect()
        }
        kube::Error::Api(status) => status.message.clone(),
        error => connection_failure(error),
    }
}

/// Reason why there is no response. The root cause, such as `Connection refused`, says more than the library's text.
fn connection_failure(error: &kube::Error) -> String {
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
            let mut request = ApiRequest::get("ask", "/readyz").unwrap();
            change(&mut request);
            send(&client, request).await.map(|response| response.text)
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
        assert_eq!(respond(404, not_found(), |request| request.absent_on = &[404]).unwrap(), "");
        let error = respond(404, not_found(), |request| request.unknown_path = Some("no kind".to_owned()));
        assert_eq!(error.unwrap_err().reason, "no kind");
    }
}
