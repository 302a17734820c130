//! Reads sessions: their steps, the values that these extract, and the times between them.

use super::data::{check_pointer, text_of};
use super::keys::{EXTRACT, MAX_KINDS, MAX_NAME_LENGTH, MAX_REGEX_BYTES, SESSION, STEP, THINK};
use super::reader::{Bodies, Templates, entries, name, name_of, request_sections, weight};
use super::template::is_name;
use super::{Extract, OnFailure, Origin, RequestKind, SessionKind, Step, Think};
use crate::diagnostic::ExperimentError;
use crate::keys::words::Words as _;
use crate::keys::{MAX_RUN_DURATION, names};
use crate::topology::file::time_up_to;
use crate::yaml::document::{Entry, Node, Value};
use crate::yaml::section::{Field, Section, alternatives};
use crate::yaml::suggestion::nearest;
use regex::bytes::RegexBuilder;
use results::units::{parse_duration, shortened};
use std::collections::HashSet;

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

const SESSION_KEYS: [&str; SESSION.len()] = names(&SESSION);
const STEP_KEYS: [&str; STEP.len()] = names(&STEP);
const EXTRACT_KEYS: [&str; EXTRACT.len()] = names(&EXTRACT);
const THINK_KEYS: [&str; THINK.len()] = names(&THINK);
/// Keys of a step beside its request.
const OWN_KEYS: [&str; 4] = ["request", "extract", "think", "on-failure"];

/// The requests of all steps, session by session, and the sessions. `requests`: those that steps name.
pub(super) fn read(
    field: &Field<'_>,
    requests: Option<&Field<'_>>,
    templates: &mut Templates<'_>,
) -> Result<(Vec<RequestKind>, Vec<SessionKind>)> {
    let named = Named::read(requests)?;
    let nodes = field.nodes("expected a list of maps, such as `- {name: buy, steps: [{path: /}]}`")?;
    if nodes.is_empty() {
        return Err(field.place().error("there are no sessions", "expected at least one"));
    }
    let mut reader = Reader { named, templates, bodies: Bodies::default(), requests: Vec::new() };
    let (mut sessions, mut known) = (Vec::new(), HashSet::new());
    for node in nodes {
        let section = Section::new(node, "traffic.sessions", &SESSION_KEYS, node.place.clone())?;
        let name_field = section.required("name", "name: buy")?;
        let session = reader.session(&section, name(&name_field)?)?;
        if !known.insert(session.name.clone()) {
            return Err(name_field.place().error(
                format!("there are two sessions `{}`", shortened(&session.name)),
                "expected a `name` of its own for each",
            ));
        }
        if reader.requests.len() > MAX_KINDS {
            let text = format!("the sessions have more than {MAX_KINDS} steps");
            return Err(node.place.error(text, "expected fewer: each is measured apart"));
        }
        sessions.push(session);
    }
    reader.named.all_used()?;
    Ok((reader.requests, sessions))
}

/// Requests that steps name.
struct Named<'a>(Vec<(String, Section<'a>, bool)>);

impl<'a> Named<'a> {
    fn read(requests: Option<&Field<'a>>) -> Result<Self> {
        let sections = requests.map_or(Ok(Vec::new()), request_sections)?;
        let mut named: Vec<(String, Section<'a>, bool)> = Vec::new();
        for section in sections {
            if let Some(weight) = section.field("weight")? {
                return Err(weight.key_place.error(
                    format!("`{}` has no effect beside `sessions`", weight.path),
                    "expected to be left out: sessions have weights",
                ));
            }
            let name = name_of(&section)?;
            if named.iter().any(|(known, ..)| *known == name) {
                return Err(section.place().error(
                    format!("there are two requests `{}`", shortened(&name)),
                    "expected a `name` of its own for each",
                ));
            }
            named.push((name, section, false));
        }
        Ok(Self(named))
    }

    /// The request that a step names.
    fn find(&mut self, field: &Field<'_>) -> Result<&Section<'a>> {
        let text = field.text()?;
        let Some(place) = self.0.iter().position(|(name, ..)| name == text) else {
            let names: Vec<&str> = self.0.iter().map(|(name, ..)| name.as_str()).take(20).collect();
            let expected = match &names[..] {
                [] => "expected a map, such as `{path: /}`: there are no `requests`".to_owned(),
                names => format!("expected {}", shortened(&alternatives(names))),
            };
            let error = field.place().error(format!("`{}` is not in `requests`", shortened(text)), expected);
            return Err(error.did_you_mean(nearest(text, names.iter().copied())));
        };
        let (_, section, is_used) = &mut self.0[place];
        *is_used = true;
        Ok(section)
    }

    fn all_used(&self) -> Result<()> {
        match self.0.iter().find(|(.., is_used)| !is_used) {
            None => Ok(()),
            Some((name, section, _)) => Err(section.place().error(
                format!("no session has the request `{}` as a step", shortened(name)),
                "expected its name among the `steps`",
            )),
        }
    }
}

/// Reads session after session.
struct Reader<'r, 'a, 'd> {
    named: Named<'a>,
    templates: &'r mut Templates<'d>,
    bodies: Bodies,
    /// Requests of the steps so far.
    requests: Vec<RequestKind>,
}

impl Reader<'_, '_, '_> {
    fn session(&mut self, section: &Section<'_>, name: String) -> Result<SessionKind> {
        let field = section.required("steps", "steps: [{path: /}]")?;
        let nodes = field.nodes("expected a list of requests, such as `- path: /`")?;
        if nodes.is_empty() {
            return Err(field.place().error("the session has no steps", "expected at least one"));
        }
        self.templates.values = Some(Vec::new());
        let usual = Step {
            think: self.think(section)?.unwrap_or_default(),
            extract: Vec::new(),
            on_failure: on_failure(section)?.unwrap_or_default(),
        };
        let mut steps = Vec::new();
        for node in nodes {
            let (mut request, step) = self.step(node, &usual, steps.is_empty())?;
            self.bodies.add(&request, &node.place)?;
            request.name = self.unused_name(&format!("{name}/{}", request.name));
            self.requests.push(request);
            steps.push(step);
        }
        let values = self.templates.values.take().map_or(0, |values| values.len());
        Ok(SessionKind { name, weight: weight(section)?, values, steps })
    }

    /// The name, with a number behind it if a step before has it.
    fn unused_name(&self, name: &str) -> String {
        let is_unused = |name: &String| self.requests.iter().all(|request| request.name != *name);
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        names.find(is_unused).expect("one of all numbers is unused")
    }

    /// A step: the name of a request, or a map. `usual`: settings of the session's steps.
    fn step(&mut self, node: &Node, usual: &Step, is_first: bool) -> Result<(RequestKind, Step)> {
        let path = "traffic.sessions.steps";
        if let Value::Scalar(_) = node.value {
            let named = self.named.find(&Field::new(path, &node.place, node))?;
            return Ok((self.templates.request(named)?, usual.clone()));
        }
        let section = Section::new(node, path, &STEP_KEYS, node.place.clone())?;
        let request = match section.field("request")? {
            None => self.templates.request(&section)?,
            Some(field) => {
                for key in STEP_KEYS.into_iter().filter(|key| !OWN_KEYS.contains(key)) {
                    if let Some(other) = section.field(key)? {
                        return Err(other.key_place.error(
                            format!("`{}` has no effect beside `request`", other.path),
                            "expected to be left out: the request has it",
                        ));
                    }
                }
                self.templates.request(self.named.find(&field)?)?
            }
        };
        if let Some(think) = section.field("think")?.filter(|_| is_first) {
            return Err(think.key_place.error(
                format!("`{}` is before the first step", think.path),
                "expected to be left out: the first step is due when its session is",
            ));
        }
        let step = Step {
            think: self.think(&section)?.unwrap_or_else(|| usual.think.clone()),
            extract: self.extracts(&section)?,
            on_failure: on_failure(&section)?.unwrap_or(usual.on_failure),
        };
        Ok((request, step))
    }

    /// Time before a step.
    fn think(&self, section: &Section<'_>) -> Result<Option<Think>> {
        let Some(field) = section.field("think")? else { return Ok(None) };
        if !field.node.entries().iter().any(|entry| entry.key == "file") {
            return Ok(Some(Think::Drawn(time_up_to(&field, MAX_RUN_DURATION)?)));
        }
        let section = Section::new(field.node, &field.path, &THINK_KEYS, field.key_place.clone())?;
        let file = section.required("file", "file: times.txt")?;
        let text = text_of(&file, self.templates.files)?;
        let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
        let times = lines.map(|(line, number)| {
            let time = parse_duration(line.trim()).ok().filter(|time| *time <= MAX_RUN_DURATION);
            time.ok_or_else(|| {
                let text = format!(
                    "`{}`, line {number}: it is not a time up to 24h",
                    shortened(file.text().unwrap_or(""))
                );
                file.place().error(text, "expected one such as `1.5s` on each line of this file")
            })
        });
        let times = times.collect::<Result<Vec<_>>>()?;
        if times.is_empty() {
            return Err(file
                .place()
                .error(format!("`{}` has no times", file.path), "expected at least one in this file"));
        }
        Ok(Some(Think::Listed(times)))
    }

    /// Values that a step extracts. Later steps know their names.
    fn extracts(&mut self, section: &Section<'_>) -> Result<Vec<Extract>> {
        let Some(field) = section.field("extract")? else { return Ok(Vec::new()) };
        let mut extracts = Vec::new();
        for entry in entries(&field)? {
            let (name, place) = (entry.key.as_str(), &entry.key_place);
            if !is_name(name) || name.len() > MAX_NAME_LENGTH {
                return Err(place.error(
                    format!("`{}` is not a name of a value", shortened(name)),
                    format!(
                        "expected at most {MAX_NAME_LENGTH} letters, digits, `-` and `_`, a letter first"
                    ),
                ));
            }
            if self.templates.is_data(name) {
                return Err(place.error(format!("`{name}` is a name of data"), "expected another name"));
            }
            let origin = origin(entry, &format!("{}.{name}", field.path))?;
            let values = self.templates.values.get_or_insert_default();
            let value = values.iter().position(|known| known == name).unwrap_or_else(|| {
                values.push(name.to_owned());
                values.len() - 1
            });
            extracts.push(Extract { value, origin });
        }
        Ok(extracts)
    }
}

fn on_failure(section: &Section<'_>) -> Result<Option<OnFailure>> {
    section.field("on-failure")?.map(|field| field.choice(OnFailure::WORDS)).transpose()
}

/// The part of a response that a value is.
fn origin(entry: &Entry, path: &str) -> Result<Origin> {
    let section = Section::new(&entry.node, path, &EXTRACT_KEYS, entry.key_place.clone())?;
    let given = (section.field("json")?, section.field("header")?, section.field("regex")?);
    match given {
        (Some(pointer), None, None) => {
            check_pointer(pointer.text()?, pointer.place())?;
            Ok(Origin::Json(pointer.text()?.to_owned()))
        }
        (None, Some(header), None) => Ok(Origin::Header(header.text()?.to_ascii_lowercase())),
        (None, None, Some(regex)) => pattern(&regex),
        _ => Err(section.place().error(
            format!("`{path}` does not have one origin"),
            format!("expected one of {}", alternatives(&EXTRACT_KEYS)),
        )),
    }
}

/// A regular expression. Its classes are of ASCII.
fn pattern(field: &Field<'_>) -> Result<Origin> {
    let built = RegexBuilder::new(field.text()?).unicode(false).size_limit(MAX_REGEX_BYTES).build();
    let regex = built.map_err(|error| {
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        field.place().error(format!("`{}` is not a regular expression", field.path), reason)
    })?;
    if regex.captures_len() > 2 {
        return Err(field.place().error(
            format!("`{}` has several groups", field.path),
            "expected one at most, which is the value; others are `(?:…)`",
        ));
    }
    Ok(Origin::Regex(regex))
}
