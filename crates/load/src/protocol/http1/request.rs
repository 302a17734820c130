//! A request in HTTP/1.1 form.

use crate::protocol::Keep;
use crate::target::{Body, Request, Text, Values};
use http::Method;
use http::header::{CONTENT_LENGTH, HOST};
use std::io::Write as _;

/// Serialized head and body, with gaps for numbers.
pub(crate) struct Http1Request {
    /// Ends before the length of a body that varies.
    head: Text,
    /// Number of gaps in the head.
    head_gaps: usize,
    body: Body,
    /// The response has no body because the method is `HEAD`.
    pub(super) head_only: bool,
    pub(super) keep: Keep,
}

impl Http1Request {
    pub(crate) fn new(request: &Request) -> Self {
        let mut head = Text::from(format!("{} ", request.method));
        head.append(&request.path);
        head.push(b" HTTP/1.1\r\n");
        if request.header(&HOST).is_none() {
            head.push(format!("Host: {}\r\n", request.authority).as_bytes());
        }
        for header in &request.headers {
            head.push(format!("{}: ", header.written()).as_bytes());
            head.append(header.value());
            head.push(b"\r\n");
        }
        if request.sends_cookies {
            head.push_cookie_line();
        }
        if let Body::Constant(body) = &request.body {
            if request.may_have_body() && request.header(&CONTENT_LENGTH).is_none() {
                head.push(format!("Content-Length: {}\r\n", body.len()).as_bytes());
            }
            head.push(b"\r\n");
        }
        Self {
            head_gaps: head.places().count(),
            head,
            body: request.body.clone(),
            head_only: request.method == Method::HEAD,
            keep: request.keep,
        }
    }

    pub(in crate::protocol) fn write(&self, values: Values<'_>, out: &mut Vec<u8>) {
        self.head.write_with(values, out);
        match &self.body {
            Body::Constant(body) => out.extend_from_slice(body),
            Body::Varying(body) => {
                let values = values.after(self.head_gaps);
                // Writing to memory cannot fail.
                let _ = write!(out, "Content-Length: {}\r\n\r\n", body.length(values));
                body.write_with(values, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Header, RequestTemplate, resolve};

    fn written(url: &str, template: &RequestTemplate) -> String {
        written_with(url, template, &[])
    }

    fn written_with(url: &str, template: &RequestTemplate, numbers: &[u64]) -> String {
        let servers = resolve(&[url.to_owned()], template).unwrap().servers;
        let mut bytes = Vec::new();
        Http1Request::new(&servers[0].requests[0]).write(numbers.into(), &mut bytes);
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
            headers: vec![Header::new("HOST", "shop.example").unwrap()],
            body: b"hello".as_slice().into(),
            connect_to: Some("127.0.0.1:9".into()),
            unix_socket: None,
            sni: None,
        };
        let request = written("http://elsewhere.invalid/x", &template);
        assert_eq!(request.to_lowercase().matches("host: ").count(), 1, "{request}");
        assert!(request.contains("HOST: shop.example\r\n"), "{request}");
        assert!(request.ends_with("Content-Length: 5\r\n\r\nhello"), "{request}");
    }

    #[test]
    fn ranges_in_path_headers_and_body_have_numbers_of_their_own() {
        let template = RequestTemplate {
            method: Method::POST,
            headers: vec![Header::new("X-User", "u{1..1000}").unwrap().with_ranges()],
            body: Body::with_ranges(b"{\"id\": {1..1000}}"),
            ..RequestTemplate::default()
        };
        let request = written_with("http://127.0.0.1:81/{1..9}", &template, &[7, 42, 1000]);
        assert!(request.starts_with("POST /7 HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("\r\nX-User: u42\r\n"), "{request}");
        assert!(request.ends_with("Content-Length: 12\r\n\r\n{\"id\": 1000}"), "{request}");
    }
}
