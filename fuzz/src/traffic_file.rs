//! Invariants of any traffic file and of any file with its data. Included by the fuzz target and by the test that replays the
//! corpus.

use experiment::Files;
use experiment::traffic::{Body, Data, Piece, RequestKind, Rows, Template, read};
use std::collections::HashSet;
use std::path::PathBuf;

/// Limit on the text of an error, bytes.
const MAX_SHOWN_BYTES: usize = 10_000;
/// Divides an input into the traffic file and the content of every file that it names.
const DIVIDER: &str = "\n%%\n";

struct OneContent<'a>(&'a str);

impl Files for OneContent<'_> {
    fn text(&self, _: &str) -> Result<String, String> {
        Ok(self.0.to_owned())
    }

    fn locate(&self, path: &str) -> Result<PathBuf, String> {
        Ok(path.into())
    }
}

pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (text, content) = text.split_once(DIVIDER).unwrap_or((text, ""));
    match read(text, "file", &OneContent(content)) {
        Ok(file) => {
            let names: HashSet<&str> = file.requests.iter().map(|request| request.name.as_str()).collect();
            assert!(names.len() == file.requests.len() && !names.is_empty());
            for data in &file.data {
                let source = file.sources[data.source];
                if let Some(rows) = data.rows() {
                    assert_eq!(source.count, Some(rows.iter().count() as u64));
                }
                assert!(source.count != Some(0));
            }
            let values: Vec<usize> = file
                .sessions
                .iter()
                .flat_map(|session| session.steps.iter().map(|_| session.values))
                .collect();
            assert!(file.sessions.is_empty() || values.len() == file.requests.len());
            let values = values.into_iter().chain(std::iter::repeat(0));
            for (request, values) in file.requests.iter().zip(values) {
                assert!(request.weight > 0);
                for template in templates(request) {
                    let is_known = |piece: &Piece| match piece {
                        Piece::Data(index) => *index < file.data.len(),
                        Piece::Extracted(value) => *value < values,
                        Piece::Text(_) | Piece::Brace => true,
                    };
                    assert!(template.pieces().iter().all(is_known));
                }
            }
            let rows = file.data.iter().filter_map(Data::rows);
            assert!(rows.map(Rows::count).all(|count| count > 0));
        }
        Err(error) => {
            let shown = error.render(true);
            assert!(!shown.is_empty() && shown.len() < MAX_SHOWN_BYTES, "{} bytes", shown.len());
        }
    }
}

fn templates(request: &RequestKind) -> impl Iterator<Item = &Template> {
    let body = match &request.body {
        Body::Template(body) => Some(body),
        Body::Filler(_) => None,
    };
    let headers = request.headers.iter().map(|header| &header.value);
    headers.chain([&request.path]).chain(body)
}
