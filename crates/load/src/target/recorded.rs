//! Requests of a recording: one kind per method, whose path is that of the recorded request.

use super::{
    Body, Content, Kind, Order, RequestKind, RequestTemplate, Rows, Source, TargetError, Targets, Text,
    resolve_kinds,
};
use http::Method;
use std::sync::Arc;

/// Requests of a recording. Requests that are alike stand once.
#[derive(Clone, Debug)]
pub struct RecordedRequests {
    /// Methods that occur, with their numbers of requests; at most 256.
    pub methods: Vec<(Method, u32)>,
    /// Path of each distinct request.
    pub paths: Rows,
    /// Place of the method of each distinct request in `methods`.
    pub choices: Vec<u8>,
    /// Distinct request of each instant; not empty.
    pub rows: Vec<u32>,
}

/// A recorded sequence of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    choices: Arc<[u8]>,
    rows: Arc<[u32]>,
}

impl Recorded {
    /// Choice and row of a slot of the schedule.
    pub(super) fn at(&self, slot: usize) -> (usize, u64) {
        let row = self.rows.get(slot).copied().unwrap_or_default();
        (usize::from(self.choices[row as usize]), u64::from(row))
    }
}

/// Resolves the requests of a recording to the server of one URL, whose path comes before theirs. The template's body is sent with
/// the methods that have one.
///
/// # Errors
/// Returns an error if the URL is not one that paths can follow, or if it has ranges: a recording says what is requested.
pub fn resolve_recording(
    url: &str,
    template: &RequestTemplate,
    requests: RecordedRequests,
) -> Result<Targets, TargetError> {
    let mut path = Text::default();
    path.push_data(0, Content::Rows(Arc::new(requests.paths)));
    let kind = |(method, weight): (Method, u32)| RequestKind {
        weight,
        path: path.clone(),
        kind: Kind { name: method.to_string(), shown_path: String::new(), ..Kind::default() },
        template: RequestTemplate {
            body: if has_body(&method) { template.body.clone() } else { Body::default() },
            method,
            ..template.clone()
        },
    };
    let kinds: Vec<RequestKind> = requests.methods.into_iter().map(kind).collect();
    // A row per distinct request, which the sequence names.
    let rows = Source { first: 0, count: None, order: Order::Turn, stops: false };
    let mut targets = resolve_kinds(url, &kinds, vec![rows])?;
    let has_ranges = |targets: &Targets| targets.servers[0].requests[0].path.ranges().next().is_some();
    if targets.servers.len() > 1 || has_ranges(&targets) {
        return Err(TargetError::RangeOfRecording(super::shown_url(url)));
    }
    targets.recorded = Some(Recorded { choices: requests.choices.into(), rows: requests.rows.into() });
    Ok(targets)
}

/// True for methods whose requests have bodies.
#[must_use]
pub fn has_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Assignment, Chosen, Selector, Values};

    fn requests(paths: &[&str], choices: &[u8], rows: &[u32]) -> RecordedRequests {
        RecordedRequests {
            methods: vec![(Method::GET, 3), (Method::POST, 2)],
            paths: Rows::new(paths.iter().copied()),
            choices: choices.to_vec(),
            rows: rows.to_vec(),
        }
    }

    fn resolved(url: &str) -> Result<Targets, TargetError> {
        let template = RequestTemplate { body: b"hello".as_slice().into(), ..RequestTemplate::default() };
        resolve_recording(url, &template, requests(&["/a?b", "/c", "/a?b"], &[0, 1, 1], &[0, 1, 0, 2, 0]))
    }

    /// Method, path and body of a request.
    fn text(targets: &Targets, chosen: &Chosen) -> String {
        let request = &targets.servers[chosen.server].requests[chosen.request];
        let mut text = format!("{} ", request.method).into_bytes();
        request.path.write(&chosen.numbers, &mut text);
        text.push(b' ');
        text.extend_from_slice(&request.body.bytes(Values::default()));
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn threads_take_turns_in_the_sequence_and_skip_what_is_dropped() {
        let targets = resolved("http://127.0.0.1:81/base/").unwrap();
        let all = [
            "GET /base/a?b ",
            "POST /base/c hello",
            "GET /base/a?b ",
            "POST /base/a?b hello",
            "GET /base/a?b ",
        ];
        let selector = |thread, threads| {
            let assignment = Assignment::new(&targets, 4, thread, threads);
            Selector::new(&targets, 1, (thread, threads), &assignment)
        };
        let mut next = selector(0, 1);
        for expected in all {
            assert_eq!(text(&targets, &next.choose()), expected);
        }
        let mut of_two = selector(1, 2);
        assert_eq!([0, 1].map(|_| text(&targets, &of_two.choose())), [all[1], all[3]]);
        let mut late = selector(1, 2);
        late.skip(1);
        assert_eq!(text(&targets, &late.choose_of(0)), all[3]);
    }

    #[test]
    fn url_names_one_server_of_http() {
        let error = |url| resolved(url).unwrap_err();
        for url in ["http://127.0.0.{1..2}:81/", "http://127.0.0.1:81/{1..2}"] {
            assert!(matches!(error(url), TargetError::RangeOfRecording(_)), "{url}");
        }
        assert!(matches!(error("http://127.0.0.1:81/?a=b"), TargetError::Base(_)));
        assert!(matches!(error("grpc://127.0.0.1:81"), TargetError::KindsOfHttp(_)));
    }
}
