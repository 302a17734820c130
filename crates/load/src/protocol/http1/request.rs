//! A request in HTTP/1.1 form.

use crate::target::{Request, Text};
use http::Method;
use http::header::{CONTENT_LENGTH, HOST, HeaderName};
use std::sync::Arc;

/// Serialized head and body, with gaps for numbers in the path.
pub(crate) struct Http1Request {
    head: Text,
    body: Arc<[u8]>,
    /// The response has no body because the method is `HEAD`.
    pub(super) head_only: bool,
}

impl Http1Request {
    pub(crate) fn new(request: &Request) -> Self {
        let given = |name: HeaderName| request.headers.iter().any(|(given, _)| *given == name);
        let mut head = Text::from(format!("{} ", request.method));
        head.append(&request.path);
        head.push(b" HTTP/1.1\r\n");
        let mut header = |name: &str, value: &[u8]| {
            for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                head.push(part);
            }
        };
        if !given(HOST) {
            header("Host", request.authority.as_bytes());
        }
        for (name, value) in &request.headers {
            header(name.as_str(), value.as_bytes());
        }
        if request.may_have_body() && !given(CONTENT_LENGTH) {
            header("Content-Length", request.body.len().to_string().as_bytes());
        }
        head.push(b"\r\n");
        Self { head, body: Arc::clone(&request.body), head_only: request.method == Method::HEAD }
    }

    pub(super) fn write(&self, numbers: &[u64], out: &mut Vec<u8>) {
        self.head.write(numbers, out);
        out.extend_from_slice(&self.body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{RequestTemplate, resolve};
    use http::HeaderValue;

    fn written(url: &str, template: &RequestTemplate) -> String {
        let servers = resolve(&[url.to_owned()], template).unwrap().servers;
        let mut bytes = Vec::new();
        Http1Request::new(&servers[0].requests[0]).write(&[], &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn request_has_host_and_user_agent() {
        let request = written("http://127.0.0.1:81/b?c=d", &RequestTemplate::default());
        assert!(request.starts_with("GET /b?c=d HTTP/1.1\r\nHost: 127.0.0.1:81\r\n"), "{request}");
        assert!(request.to_ascii_lowercase().contains("\r\nuser-agent: meshmeter/"), "{request}");
        assert!(request.ends_with("\r\n\r\n"), "{request}");
    }

    #[test]
    fn given_headers_replace_defaults_and_bodies_have_length() {
        let template = RequestTemplate {
            method: Method::POST,
            headers: vec![(HOST, HeaderValue::from_static("shop.example"))],
            body: b"hello".as_slice().into(),
            connect_to: Some("127.0.0.1:9".into()),
            sni: None,
        };
        let request = written("http://elsewhere.invalid/x", &template);
        assert_eq!(request.matches("ost: ").count(), 1, "{request}");
        assert!(request.contains("host: shop.example\r\n"), "{request}");
        assert!(request.ends_with("Content-Length: 5\r\n\r\nhello"), "{request}");
    }
}
