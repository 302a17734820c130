//! A traffic file in `meshmeter load`: kinds of requests instead of URLs.

use crate::cli::{GivenHeaders, LoadArgs};
use crate::commands::run::files::{FilesBeside, meant, read_text};
use crate::failure::Failure;
use experiment::definition::MAX_RUN_DURATION;
use experiment::topology::distribution::Distribution;
use experiment::traffic::{
    self, AtEnd, Body, Extract, FILLER_SIZES, OnFailure, Piece, RequestKind, Template, Think, TrafficFile,
};
use load::{
    Content, Expectation, Kind, Order, Origin, RangeError, RequestTemplate, Rows, SessionKind, Source, Step,
    TargetError, Targets, Text,
};
use statistics::comparison::normal_quantile;
use std::cell::OnceCell;
use std::io::{ErrorKind, IsTerminal as _, stderr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// The traffic file that is named instead of URLs; `None` for URLs.
pub fn named(args: &LoadArgs) -> Result<Option<TrafficFile>, Failure> {
    let Some(name) = args.urls.iter().find(|argument| is_file(argument)) else {
        refuse_files(args)?;
        return Ok(None);
    };
    if args.urls.len() > 1 {
        let failure = Failure::usage(format!("`{name}` is a traffic file, which has all requests of a load"));
        return Err(failure.with_hint("name it alone, without URLs"));
    }
    refuse_options_of_urls(args)?;
    let text = read_text(Path::new(name)).map_err(|error| {
        let failure = Failure::usage(format!("read the traffic `{name}`: {error}"));
        if error.kind() != ErrorKind::NotFound {
            return failure;
        }
        failure.with_hint(match meant(name, []) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("name a file that exists; a host of this name is http://{name}"),
        })
    })?;
    let file = traffic::read(&text, name, &FilesBeside::data(name));
    file.map(Some).map_err(|error| Failure::usage(error.render(stderr().is_terminal())))
}

/// True for a file's name with an extension of traffic files. A URL without a scheme may end like one.
fn is_file(argument: &str) -> bool {
    let extension = Path::new(argument).extension().and_then(|extension| extension.to_str());
    if argument.contains("://") || !extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) {
        return false;
    }
    let is_of_host = argument.split_once('/').is_some_and(|(first, _)| {
        first == "localhost"
            || first.contains(':')
            || first.contains('.') && !first.trim_matches('.').is_empty()
    });
    !is_of_host || Path::new(argument).exists()
}

/// Rejects a file that is not named as a traffic file is, and would be taken for a host.
fn refuse_files(args: &LoadArgs) -> Result<(), Failure> {
    let is_url = |argument: &str| argument.contains(':');
    let file = args.urls.iter().find(|argument| !is_url(argument) && Path::new(argument).is_file());
    file.map_or(Ok(()), |name| {
        let failure = Failure::usage(format!("`{name}` is a file, without the extension of a traffic file"));
        let names = EXTENSIONS.map(|extension| format!(".{extension}")).join(", ");
        Err(failure.with_hint(format!(
            "a traffic file ends with one of {names}; a host of this name is http://{name}"
        )))
    })
}

/// Rejects options that say what a traffic file says of each kind of request.
fn refuse_options_of_urls(args: &LoadArgs) -> Result<(), Failure> {
    let options = [
        ("--method", args.method != http::Method::GET, "method"),
        ("--body", args.body.is_some(), "body"),
        ("--body-size", args.body_size.is_some(), "body-size"),
        ("--expect-status", !args.expect_status.is_empty(), "expect"),
    ];
    if let Some((option, _, key)) = options.into_iter().find(|(_, is_given, _)| *is_given) {
        let failure = Failure::usage(format!("{option} is for URLs, and a traffic file is given"));
        return Err(failure.with_hint(format!("give it to a request of the file: `{key}`")));
    }
    if args.output.per_url {
        return Err(Failure::usage(
            "--per-url is for URLs: the kinds of a traffic file are always measured apart",
        ));
    }
    Ok(())
}

/// The servers and requests of a traffic file.
pub fn targets(args: &LoadArgs, file: &TrafficFile) -> Result<Targets, Failure> {
    let data = Values::new(file);
    let kinds =
        file.requests.iter().map(|request| kind(args, &data, request)).collect::<Result<Vec<_>, _>>()?;
    let source = |source: &traffic::Source| Source {
        first: source.first,
        count: source.count,
        order: match source.order {
            traffic::Order::Turn => Order::Turn,
            traffic::Order::Random => Order::Random,
        },
        stops: source.at_end == AtEnd::Stop,
    };
    let sources = file.sources.iter().map(source).collect();
    let targets = load::resolve_kinds(&file.url, &kinds, sources);
    let targets = targets.map(|targets| targets.with_sessions(file.sessions.iter().map(session).collect()));
    targets.map_err(|error| match &error {
        TargetError::Kind { name, cause } => contradiction(file, name, cause)
            .unwrap_or_else(|| Failure::from_usage(&error).with_hint("leave it out of --header")),
        _ => super::targets::failure(&error),
    })
}

/// A header of a kind of the file that cannot be sent, at its place. A kind named in an error is one of the file.
fn contradiction(file: &TrafficFile, name: &str, cause: &TargetError) -> Option<Failure> {
    let (TargetError::HeaderOfBody(header) | TargetError::RepeatedHeader(header)) = cause else {
        return None;
    };
    let request = file.requests.iter().find(|request| request.name == name)?;
    let place = request.headers.iter().rfind(|own| own.name.eq_ignore_ascii_case(header.as_str()))?;
    Some(Failure::usage(place.error(cause.to_string()).render(stderr().is_terminal())))
}

fn kind(args: &LoadArgs, data: &Values<'_>, request: &RequestKind) -> Result<load::RequestKind, Failure> {
    let about = |failure: Failure| failure.about(&format!("the request `{}`", request.name));
    let path = data.path(&request.path).map_err(|error| {
        about(Failure::from_usage(&error))
            .with_hint("a brace that does not belong to a range or to data is written %7B or %7D")
    })?;
    let own = request.headers.iter();
    let own = own.map(|header| load::Header::with_value(&header.name, data.text(&header.value)));
    let mut headers =
        own.collect::<Result<Vec<_>, _>>().map_err(|error| about(Failure::from_usage(&error)))?;
    let common = GivenHeaders::of_requests(&args.header);
    let common: Vec<_> =
        common.filter(|header| !headers.iter().any(|own| own.name() == header.name())).collect();
    headers.extend(common);
    let body = match &request.body {
        Body::Template(template) => load::Body::of_text(data.text(template)),
        Body::Filler(bytes) => super::targets::filler(*bytes)?,
    };
    let method = request.method.parse().map_err(|error| about(Failure::from_usage(&error)))?;
    let expect = &request.expect;
    Ok(load::RequestKind {
        weight: request.weight,
        path,
        template: RequestTemplate {
            method,
            headers,
            body,
            connect_to: args.connect_to.clone(),
            unix_socket: super::connecting::unix_socket(args)?,
            sni: args.sni.clone(),
        },
        kind: Kind {
            name: request.name.clone(),
            shown_path: request.shown_path.clone(),
            expect: Expectation {
                status: expect.status.clone(),
                bytes: (expect.min_bytes.is_some() || expect.max_bytes.is_some())
                    .then(|| expect.min_bytes.unwrap_or(0)..=expect.max_bytes.unwrap_or(u64::MAX)),
                text: expect.text.clone(),
                json: expect.json.clone(),
            },
        },
    })
}

fn session(session: &traffic::SessionKind) -> SessionKind {
    let time = |seconds: f64| Duration::from_secs_f64(seconds.min(MAX_RUN_DURATION.as_secs_f64()));
    let step = |step: &traffic::Step| Step {
        think: match &step.think {
            Think::Drawn(Distribution::Fixed(seconds)) => vec![time(*seconds)],
            Think::Drawn(times) => quantiles(times).map(time).collect(),
            Think::Listed(times) => times.clone(),
        },
        extract: step.extract.iter().map(extract).collect(),
        goes_on: step.on_failure == OnFailure::Continue,
    };
    SessionKind {
        name: session.name.clone(),
        weight: session.weight,
        values: session.values,
        steps: session.steps.iter().map(step).collect(),
    }
}

fn extract(Extract { value, origin }: &Extract) -> load::Extract {
    let origin = match origin {
        traffic::Origin::Json(pointer) => Origin::Json(pointer.clone()),
        traffic::Origin::Header(name) => Origin::Header(name.clone()),
        traffic::Origin::Regex(regex) => Origin::Regex(regex.clone()),
    };
    load::Extract { value: *value, origin }
}

/// Data of a file in the form of the engine.
struct Values<'f> {
    file: &'f TrafficFile,
    plain: Vec<Content>,
    /// As paths can have them, for those that paths have.
    in_paths: Vec<OnceCell<Content>>,
}

/// Content of the placeholders for data.
fn content(values: &traffic::Values) -> Content {
    match values {
        traffic::Values::Numbers => Content::Number,
        traffic::Values::Rows(rows) => Content::Rows(Arc::new(Rows::new(rows.iter()))),
        traffic::Values::Filler(sizes) => Content::Filler(quantiles(sizes).map(size).collect()),
    }
}

/// Evenly spaced quantiles, which have the distribution if they are drawn equally often.
fn quantiles(distribution: &Distribution) -> impl Iterator<Item = f64> {
    let fractions = (0..FILLER_SIZES).map(|step| (step as f64 + 0.5) / FILLER_SIZES as f64);
    fractions.map(|fraction| distribution.draw(fraction, normal_quantile(fraction)))
}

fn size(bytes: f64) -> usize {
    bytes.round().min(load::MAX_BODY_BYTES as f64) as usize
}

impl<'f> Values<'f> {
    fn new(file: &'f TrafficFile) -> Self {
        let plain = file.data.iter().map(|data| content(&data.values)).collect();
        Self { file, plain, in_paths: vec![OnceCell::new(); file.data.len()] }
    }

    /// Text of a header or body, in which braces may be of JSON.
    fn text(&self, template: &Template) -> Text {
        let mut text = Text::default();
        for piece in template.pieces() {
            match piece {
                Piece::Text(part) => text.append(&Text::from(part.clone()).with_ranges()),
                Piece::Brace => text.push(b"{"),
                Piece::Extracted(value) => text.push_of_session(*value, false),
                Piece::Data(index) => {
                    text.push_data(self.file.data[*index].source, self.plain[*index].clone());
                }
            }
        }
        text
    }

    fn path(&self, template: &Template) -> Result<Text, RangeError> {
        let mut text = Text::default();
        for piece in template.pieces() {
            match piece {
                Piece::Text(part) => text.append(&Text::parse(part)?),
                Piece::Brace => text.push(b"{"),
                Piece::Extracted(value) => text.push_of_session(*value, true),
                Piece::Data(index) => {
                    let encoded = || match &self.plain[*index] {
                        Content::Rows(rows) => Content::Rows(Arc::new(rows.in_path())),
                        other => other.clone(),
                    };
                    let content = self.in_paths[*index].get_or_init(encoded).clone();
                    text.push_data(self.file.data[*index].source, content);
                }
            }
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filler_has_the_sizes_of_its_distribution() {
        let sizes = |distribution: Distribution| quantiles(&distribution).map(size).collect::<Vec<_>>();
        let all = sizes(Distribution::LogNormal { median: 1000.0, p99: 20_000.0 });
        let count =
            |below: usize| all.iter().filter(|size| **size < below).count() as f64 / FILLER_SIZES as f64;
        assert!((count(1000) - 0.5).abs() < 0.002 && (count(20_000) - 0.99).abs() < 0.002, "{:?}", &all[..9]);
        assert!(sizes(Distribution::Fixed(7.0)).iter().all(|size| *size == 7));
        let uniform = sizes(Distribution::Uniform { low: 10.0, high: 20.0 });
        assert!(uniform.iter().all(|size| (10..=20).contains(size)));
        let mean = uniform.iter().sum::<usize>() as f64 / FILLER_SIZES as f64;
        assert!((mean - 15.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn name_of_a_file_is_told_from_a_url() {
        for name in ["traffic.yaml", "./a.yml", "../b/c.json", "/tmp/x.json", "folder/t.yaml"] {
            assert!(is_file(name), "{name}");
        }
        for url in [
            "localhost:8080",
            "http://a/b.json",
            "localhost/b.json",
            "10.0.0.1:80/b.yaml",
            "a.example/b.json",
            "a.example",
            "3=http://a/x.yaml",
        ] {
            assert!(!is_file(url), "{url}");
        }
    }
}
