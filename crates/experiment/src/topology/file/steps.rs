//! Reads scripts: from steps as written to steps with resolved callees.

use super::dialect::{Dialect, seconds};
use super::keys;
use super::limits::{MAX_BODY_BYTES, MAX_DOCUMENTS, MAX_NESTING, MAX_RETRIES};
use super::links::{CallSite, Links};
use super::names::{Names, Scope};
use crate::diagnostic::ExperimentError;
use crate::keys::names;
use crate::topology::WorkloadId;
use crate::topology::distribution::Distribution;
use crate::topology::script::{
    CallStep, DEFAULT_CALL_TIMEOUT, DEFAULT_ENDPOINT, QueryOperation, QueryStep, Step,
};
use crate::yaml::document::{Node, Value};
use crate::yaml::section::{Field, Section, alternatives};
use results::units::{UnitError, format_duration, format_size, parse_fraction, parse_size};
use std::collections::BTreeSet;
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

/// Maximum sleep or computation of a step, seconds.
const MAX_STEP_SECONDS: f64 = 3600.0;
/// Maximum number of steps in all scripts; a default script counts once per service that uses it.
const MAX_STEPS: usize = 100_000;
/// Maximum document size: MongoDB's limit is 16 MiB, including fields other than the payload.
const MAX_DOCUMENT_BYTES: u64 = 15 << 20;
const DEFAULT_DOCUMENT_BYTES: u64 = 512;
const MAX_COLLECTION_LENGTH: usize = 100;

/// Reads the scripts of one service.
pub(super) struct Scripts<'r, 'a> {
    pub(super) dialect: Dialect,
    pub(super) names: &'r Names,
    /// Default size of requests.
    pub(super) request_bytes: Distribution,
    /// Service whose scripts are read.
    pub(super) service: WorkloadId,
    pub(super) namespace: &'r str,
    /// Index of the endpoint whose script is read.
    pub(super) endpoint: usize,
    pub(super) links: &'r mut Links<'a>,
    pub(super) notes: &'r mut BTreeSet<String>,
}

impl<'a> Scripts<'_, 'a> {
    /// Steps of a list that run sequentially.
    pub(super) fn sequence(&mut self, node: &'a Node, path: &str, depth: usize) -> Result<Vec<Step>> {
        let nodes = self.list(node, path, depth)?;
        nodes
            .iter()
            .map(|node| match &node.value {
                Value::List(_) => Ok(Step::Parallel(self.branches(node, path, depth + 1)?)),
                _ => self.step(node, path, depth),
            })
            .collect()
    }

    /// Steps of a list that run in parallel. A nested list is a branch with several steps.
    fn branches(&mut self, node: &'a Node, path: &str, depth: usize) -> Result<Vec<Step>> {
        let nodes = self.list(node, path, depth)?;
        if nodes.is_empty() {
            return Err(node
                .place
                .error(format!("`{path}` has an empty list"), "expected at least one step"));
        }
        nodes
            .iter()
            .map(|node| match &node.value {
                Value::List(steps) if steps.is_empty() => {
                    Err(node.place.error(format!("`{path}` has an empty list"), "expected at least one step"))
                }
                // isotope has no sequences inside a list of its scripts: such a list is parallel too.
                Value::List(_) if self.dialect == Dialect::Isotope => {
                    Ok(Step::Parallel(self.branches(node, path, depth + 1)?))
                }
                Value::List(_) => Ok(Step::Sequence(self.sequence(node, path, depth + 1)?)),
                _ => self.step(node, path, depth),
            })
            .collect()
    }

    fn list(&self, node: &'a Node, path: &str, depth: usize) -> Result<&'a [Node]> {
        match &node.value {
            Value::List(_) if depth > MAX_NESTING => Err(node
                .place
                .error(format!("`{path}` nests too deep"), format!("expected at most {MAX_NESTING} levels"))),
            Value::List(nodes) => Ok(nodes),
            _ => Err(node.place.error(
                format!("`{path}` is not a list"),
                "expected a list of steps, such as `- call: other`",
            )),
        }
    }

    fn step(&mut self, node: &'a Node, path: &str, depth: usize) -> Result<Step> {
        self.links.steps += 1;
        if self.links.steps > MAX_STEPS {
            return Err(node
                .place
                .error("the scripts have too many steps", format!("expected at most {MAX_STEPS} in all")));
        }
        let keys = self.dialect.step_keys();
        let expected = || format!("expected a step: {}", alternatives(keys));
        let Value::Map(entries) = &node.value else {
            return Err(node.place.error(format!("`{path}` has something that is not a step"), expected()));
        };
        let section = Section::new(node, path, keys, node.place.clone())?;
        let [entry] = entries.as_slice() else {
            return Err(node
                .place
                .error(format!("a step of `{path}` has {} keys", entries.len()), "expected one key per step")
                .with_hint("steps that follow each other are items of the list"));
        };
        let field = section.required(&entry.key, "- call: other")?;
        match entry.key.as_str() {
            "call" => self.call(&field).map(Step::Call),
            "query" => self.query(&field).map(Step::Query),
            "parallel" => Ok(Step::Parallel(self.branches(field.node, &field.path, depth + 1)?)),
            "sleep" => Ok(Step::Sleep(amount(&field, seconds, MAX_STEP_SECONDS, "1h")?)),
            "cpu" => Ok(Step::Compute(amount(&field, seconds, MAX_STEP_SECONDS, "1h")?)),
            _ => Ok(Step::Hold(size(&field, self.dialect)?)),
        }
    }

    fn call(&mut self, field: &Field<'a>) -> Result<CallStep> {
        let is_map = field.is_map();
        let section = is_map.then(|| {
            Section::new(field.node, &field.path, self.dialect.call_keys(), field.key_place.clone())
        });
        let section = section.transpose()?;
        let given = |key: &'static str| section.as_ref().map_or(Ok(None), |section| section.field(key));
        let service = match &section {
            Some(section) => section.required("service", "service: other")?,
            None => Field::new(&field.path, field.key_place, field.node),
        };
        for key in ["hostname", "extra-header"] {
            if self.dialect == Dialect::Isotope && given(key)?.is_some() {
                self.notes.insert(format!(
                    "`{key}` of calls has no effect: a service is reached by its own name, without further headers"
                ));
            }
        }
        let size_field = match self.dialect {
            Dialect::Native => given("size")?,
            Dialect::Isotope => given("size")?.or(given("payloadSize")?),
        };
        let native = |key| if self.dialect == Dialect::Native { given(key) } else { Ok(None) };
        let endpoint = native("endpoint")?;
        let call = CallStep {
            to: self.callee(&service, "expected a service that is called by name")?,
            endpoint: endpoint.as_ref().map_or(Ok(DEFAULT_ENDPOINT), Field::text)?.to_owned(),
            request_bytes: size_field
                .as_ref()
                .map_or(Ok(self.request_bytes), |field| size(field, self.dialect))?,
            probability: given("probability")?
                .map_or(Ok(1.0), |field| field.quantity(|text| self.dialect.probability(text)))?,
            retries: native("retries")?.map_or(Ok(0), |field| field.whole(0..=MAX_RETRIES))? as u32,
            timeout: native("timeout")?
                .map_or(Ok(DEFAULT_CALL_TIMEOUT), |field| field.positive_duration())?,
        };
        self.links.calls.push(CallSite {
            from: self.service,
            from_endpoint: self.endpoint,
            to: call.to,
            endpoint: call.endpoint.clone(),
            is_certain: call.probability >= 1.0,
            place: service.place(),
            endpoint_place: endpoint.map_or(service.place(), |field| field.place()),
            size_place: size_field.map(|field| field.place()),
        });
        Ok(call)
    }

    fn query(&mut self, field: &Field<'a>) -> Result<QueryStep> {
        const KEYS: [&str; keys::QUERY.len()] = names(&keys::QUERY);
        let section = Section::new(field.node, &field.path, &KEYS, field.key_place.clone())?;
        let database = section.required("database", "database: db")?;
        let mut operations = Vec::new();
        for operation in QueryOperation::ALL {
            if let Some(collection) = section.field(operation.name())? {
                operations.push((operation, collection));
            }
        }
        let (operation, collection) = match operations.as_slice() {
            [] => return Err(section.missing("`find`, `insert` or `update`", "find: flights")),
            [(operation, collection)] => (*operation, collection),
            [_, (_, other), ..] => {
                return Err(other.key_place.error(
                    "a query has one operation",
                    "expected `find`, `insert` or `update`, and one of them",
                ));
            }
        };
        let size_field = section.field("size")?;
        let document_bytes =
            size_field.as_ref().map_or(Ok(DEFAULT_DOCUMENT_BYTES), |f| f.quantity(parse_size))?;
        if let Some(field) = size_field.filter(|_| document_bytes > MAX_DOCUMENT_BYTES) {
            return Err(field.place().error(
                "the documents are too large",
                "expected at most 15MiB: MongoDB takes no larger ones",
            ));
        }
        let query = QueryStep {
            to: self.callee(&database, "expected a database of this file")?,
            operation,
            collection: collection_name(collection)?,
            documents: section.field("documents")?.map_or(Ok(1), |field| field.whole(1..=MAX_DOCUMENTS))?
                as u32,
            document_bytes: document_bytes as u32,
            probability: section
                .field("probability")?
                .map_or(Ok(1.0), |field| field.quantity(parse_fraction))?,
            timeout: section
                .field("timeout")?
                .map_or(Ok(DEFAULT_CALL_TIMEOUT), |field| field.positive_duration())?,
        };
        self.links.queries.push((query.to, database.place()));
        Ok(query)
    }

    fn callee(&self, field: &Field<'a>, expected: &str) -> Result<WorkloadId> {
        let scope = match self.dialect {
            Dialect::Native => Scope::Namespace(self.namespace),
            Dialect::Isotope => Scope::Anywhere(self.namespace),
        };
        self.names.find(field.text()?, scope, field.place(), expected)
    }
}

fn collection_name(field: &Field<'_>) -> Result<String> {
    let text = field.text()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = !text.is_empty() && text.len() <= MAX_COLLECTION_LENGTH && text.chars().all(fits);
    if !is_name || text.starts_with("system.") || text.starts_with('.') || text.ends_with('.') {
        return Err(field.place().error(
            "this is not a valid name of a collection",
            "expected at most 100 letters, digits, `-`, `_` and `.`, for example `flights`",
        ));
    }
    Ok(text.to_owned())
}

/// Constant or random size, within the limit of bodies.
pub(super) fn size(field: &Field<'_>, dialect: Dialect) -> Result<Distribution> {
    amount(field, |text| dialect.size(text), MAX_BODY_BYTES as f64, "1GiB")
}

/// Constant or random size of at most this many bytes.
pub(crate) fn size_up_to(field: &Field<'_>, max_bytes: u64) -> Result<Distribution> {
    amount(field, |text| Dialect::Native.size(text), max_bytes as f64, &format_size(max_bytes))
}

/// Constant or random time of at most this long, seconds.
pub(crate) fn time_up_to(field: &Field<'_>, max: Duration) -> Result<Distribution> {
    amount(field, seconds, max.as_secs_f64(), &format_duration(max))
}

/// Amount: a quantity, or a map with one distribution.
fn amount(
    field: &Field<'_>,
    parse: impl Fn(&str) -> std::result::Result<f64, UnitError>,
    max: f64,
    max_shown: &str,
) -> Result<Distribution> {
    let within = |place: &crate::diagnostic::Place, value: f64| {
        if value > max {
            return Err(
                place.error(format!("`{}` is too much", field.path), format!("expected at most {max_shown}"))
            );
        }
        Ok(value)
    };
    if !field.is_map() {
        return Ok(Distribution::Fixed(within(field.place(), field.quantity(&parse)?)?));
    }
    let section =
        Section::new(field.node, &field.path, &names(&keys::DISTRIBUTION), field.key_place.clone())?;
    let given = (section.field("uniform")?, section.field("exponential")?, section.field("log-normal")?);
    match given {
        (Some(uniform), None, None) => {
            let bounds = uniform.one_or_list()?;
            let [low, high] = bounds.as_slice() else {
                return Err(uniform.place().error(
                    format!("`{}` does not have two bounds", uniform.path),
                    "expected the lower and the upper, such as `[1ms, 5ms]`",
                ));
            };
            let low_amount = within(low.place, low.quantity(&uniform.path, &parse)?)?;
            let high_amount = within(high.place, high.quantity(&uniform.path, &parse)?)?;
            if low_amount > high_amount {
                return Err(high.place.error(
                    "the upper bound is below the lower",
                    "expected the lower first, then the upper",
                ));
            }
            Ok(Distribution::Uniform { low: low_amount, high: high_amount })
        }
        (None, Some(exponential), None) => {
            let mean = within(exponential.place(), exponential.quantity(&parse)?)?;
            Ok(Distribution::Exponential { mean })
        }
        (None, None, Some(log_normal)) => {
            let section = Section::new(
                log_normal.node,
                &log_normal.path,
                &names(&keys::LOG_NORMAL),
                log_normal.key_place.clone(),
            )?;
            let median_field = section.required("median", "median: 1ms")?;
            let p99_field = section.required("p99", "p99: 20ms")?;
            let median = within(median_field.place(), median_field.quantity(&parse)?)?;
            let p99 = within(p99_field.place(), p99_field.quantity(&parse)?)?;
            if median <= 0.0 {
                return Err(median_field.place().error("the median is 0", "expected more than 0"));
            }
            if p99 < median {
                return Err(p99_field
                    .place()
                    .error("the p99 is below the median", "expected at least the median"));
            }
            Ok(Distribution::LogNormal { median, p99 })
        }
        _ => Err(field.place().error(
            format!("`{}` does not have one distribution", field.path),
            "expected `uniform`, `exponential` or `log-normal`, and one of them",
        )),
    }
}
