//! Factors: keys that hold a list although their value is a single one.
//!
//! The tree is expanded: each combination of list elements replaces the lists, and the resulting tree is read
//! by the [`reader`]. So every combination passes the same checks, and errors point at the element.

use super::components;
use super::fleet;
use super::named_files::Files;
use super::overrides::Scale;
use super::reader;
use super::sections::SECTIONS;
use super::topology;
use super::{checks::MAX_TRIALS, overrides::split_key};
use crate::definition::{Combination, Experiment, Factor};
use crate::diagnostic::{ExperimentError, Place};
use crate::keys::MAX_VALUES;
use crate::plan::order::change_cost;
use crate::settings::istio::LuaScript;
use crate::yaml::document::{Entry, Node, Value};
use crate::yaml::section::alternatives;
use results::{FactorValue, Factors, Mode, factor_texts};
use std::sync::Arc;

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

/// Maximum number of cells in an experiment: modes × combinations of factors × loads.
const MAX_CELLS: usize = 10_000;

/// Keys whose value is a list and not a factor: modes, loads, and other lists.
const LISTS: [&str; 10] = [
    "modes",
    "load.rate",
    "load.clients",
    "load.expect-status",
    "fleet.changes",
    "published",
    "published.figures",
    "topology.databases",
    "topology.drivers",
    "topology.clients",
];

const NAMES_A_FILE: &str =
    "it names a file: runs with different files are shown side by side by `meshmeter report --beside`";

/// Keys that apply to the whole run and cannot be factors, with the reason. Sections end with a dot.
const SINGLE: [(&str, &str); 26] = [
    ("name", "an experiment has one name"),
    ("question", "an experiment asks one question"),
    ("headline", "a run has one headline"),
    ("mesh", "runs of different meshes are shown side by side by `meshmeter report --beside`"),
    ("repeats", "every cell is repeated equally often"),
    ("retakes", "one rule holds for the whole run"),
    ("seed", "one seed orders the whole run"),
    ("fresh", "one rule holds for the whole run"),
    ("load.warmup", "all trials are measured alike"),
    ("load.duration", "all trials are measured alike"),
    ("load.timeout", "all trials are measured alike"),
    ("load.threads", "all trials are measured by the same generator"),
    ("load.generators", "all trials are measured by the same generators"),
    ("load.pacing", "all trials are measured by the same generator"),
    ("fleet.between", "all trials are measured alike"),
    ("fleet.duration", "all trials are measured alike"),
    ("fleet.settle", "all trials are measured alike"),
    ("fleet.witnesses", "all trials are measured alike"),
    ("fleet.threads", "all trials are measured by the same fleet"),
    ("istio.wasm", NAMES_A_FILE),
    ("istio.extra", NAMES_A_FILE),
    ("topology", "`topology.shape` takes a list"),
    ("topology.file", NAMES_A_FILE),
    ("topology.name", "a topology has one name"),
    ("objective.", "one objective holds for the whole run"),
    ("resolve.", "it holds for the whole run"),
];

/// List found in the tree.
struct FoundFactor<'a> {
    key: String,
    key_place: &'a Place,
    elements: Vec<(FactorValue, &'a Node)>,
}

/// Reads and validates the tree with every combination of its factors.
pub(super) fn experiment(root: &Node, scale: &Scale, files: &dyn Files) -> Result<Experiment> {
    let graph = topology::graph(root, files)?;
    let graph = graph.as_ref();
    let mut lists = Vec::new();
    collect(root, "", scale, files, &mut lists)?;
    let mut tree = root.clone();
    let mut factors = Vec::new();
    for list in lists {
        match list.elements.as_slice() {
            [(_, only)] => *at(&mut tree, &list.key) = (*only).clone(),
            _ => factors.push(list),
        }
    }
    // Stable sort: equal costs keep the order of the key table, whatever the order in the file.
    factors.sort_by_key(|factor| std::cmp::Reverse(change_cost(&factor.key)));
    let Some(last) = factors.last() else { return reader::experiment(&tree, &[], graph, scale, files) };
    let product = |total: usize, factor: &FoundFactor<'_>| total.saturating_mul(factor.elements.len());
    let count = factors.iter().fold(1, product);
    let keys: Vec<&str> = factors.iter().map(|factor| factor.key.as_str()).collect();
    let mut read = |number: usize| {
        combination(number, &factors, &mut tree, |tree| reader::experiment(tree, &keys, graph, scale, files))
    };
    let mut base = read(0)?.experiment;
    let cells = count.saturating_mul(base.modes.len() * base.load.levels.count());
    check_limit(cells, MAX_CELLS, "cells", last.key_place)?;
    check_limit(cells * base.repeats, MAX_TRIALS, "trials", last.key_place)?;
    let mut combinations: Vec<Combination> = (0..count).map(&mut read).collect::<Result<_>>()?;
    check_distinct(&factors, &combinations, scale)?;
    factors.iter().try_for_each(|factor| check_touches(factor, &base, &combinations))?;
    for one in &mut combinations {
        if one.experiment.istio == base.istio {
            one.experiment.istio = Arc::clone(&base.istio);
        }
        if one.experiment.ingress == base.ingress {
            one.experiment.ingress = Arc::clone(&base.ingress);
        }
    }
    let values = |found: &FoundFactor<'_>| found.elements.iter().map(|(value, _)| value.clone()).collect();
    base.factors =
        factors.iter().map(|found| Factor { key: found.key.clone(), values: values(found) }).collect();
    base.combinations = combinations;
    Ok(base)
}

/// Collects every list below a map that is a factor, in the order of [`SECTIONS`].
fn collect<'a>(
    node: &'a Node,
    section: &str,
    scale: &Scale,
    files: &dyn Files,
    lists: &mut Vec<FoundFactor<'a>>,
) -> Result<()> {
    let Value::Map(entries) = &node.value else { return Ok(()) };
    let keys = SECTIONS.iter().find(|(name, _)| *name == section).map_or(&[][..], |(_, keys)| keys);
    // `topology.services` is either a number of services or the list of services itself.
    let is_graph = |key: &str, items: &[Node]| {
        key == "topology.services" && items.iter().any(|item| !matches!(item.value, Value::Scalar(_)))
    };
    for entry in keys.iter().filter_map(|key| entries.iter().find(|entry| entry.key == *key)) {
        let key = if section.is_empty() { entry.key.clone() } else { format!("{section}.{}", entry.key) };
        let is_section = SECTIONS.iter().any(|(name, _)| *name == key);
        match &entry.node.value {
            Value::Map(_) if is_section => collect(&entry.node, &key, scale, files, lists)?,
            Value::List(items)
                if !LISTS.contains(&key.as_str())
                    && (!is_section || key == "topology")
                    && !is_graph(&key, items) =>
            {
                check_may_vary(&key, &entry.node.place)?;
                lists.push(found(key, entry, items, scale, files)?);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reason why a key is not a factor; absent if it may be one.
fn reason_for_one_value(key: &str) -> Option<&'static str> {
    let holds = |name: &str| key == name || name.ends_with('.') && key.starts_with(name);
    SINGLE.iter().find(|(name, _)| holds(name)).map(|(_, reason)| *reason)
}

/// True if the key is a factor when it holds a list.
pub(super) fn may_be_factor(key: &str) -> bool {
    let is_section = key != "topology" && SECTIONS.iter().any(|(name, _)| *name == key);
    !is_section && !LISTS.contains(&key) && reason_for_one_value(key).is_none()
}

fn check_may_vary(key: &str, place: &Place) -> Result<()> {
    match reason_for_one_value(key) {
        Some(reason) => {
            Err(place.error(format!("`{key}` takes one value"), format!("expected no list: {reason}")))
        }
        None => Ok(()),
    }
}

/// Rejects a factor that can touch none of the modes: its values would be measured once, and never compared.
fn check_touches(
    factor: &FoundFactor<'_>,
    experiment: &Experiment,
    combinations: &[Combination],
) -> Result<()> {
    let FoundFactor { key, key_place, .. } = factor;
    let touches = |Combination { factors, experiment }: &Combination| {
        experiment.modes.iter().any(|mode| experiment.touches_cells(*mode, factors, key))
    };
    if combinations.iter().any(touches) {
        return Ok(());
    }
    let touched =
        experiment.mesh.modes().filter(|mode| mode.has_requests() && experiment.touches(*mode, key));
    let touched: Vec<&str> = touched.map(Mode::name).collect();
    let error = |expected| key_place.error(format!("`{key}` is a list and has no effect here"), expected);
    Err(if experiment.touches_any_mode(key) {
        error("expected a scenario with a gateway".to_owned())
            .with_hint("the path of `ingress.scenario: direct` has none: give one value, or leave it out")
    } else if touched.is_empty() {
        error(format!("mesh {} has no mode that it can touch", experiment.mesh))
    } else {
        error(format!("expected {} among the `modes`", alternatives(&touched)))
            .with_hint("without such a mode give one value, or leave it out")
    })
}

fn found<'a>(
    key: String,
    entry: &'a Entry,
    items: &'a [Node],
    scale: &Scale,
    files: &dyn Files,
) -> Result<FoundFactor<'a>> {
    if items.is_empty() {
        return Err(entry.node.place.error(format!("`{key}` is empty"), "expected at least one value"));
    }
    check_limit(items.len(), MAX_VALUES, &format!("values of `{key}`"), &entry.node.place)?;
    let elements = items.iter().map(|item| {
        let text = match &item.value {
            Value::Scalar(text) => text.as_str(),
            // The reader of the key reports what is wrong with it.
            _ => "",
        };
        let value = match key.strip_prefix("components.") {
            Some(component) => components::factor_value(component, text, files),
            None => fleet::scaled_factor(&key, text, scale).unwrap_or_else(|| FactorValue::from_typed(text)),
        };
        (value, item)
    });
    if key == "fleet.churn" {
        fleet::check_churn_factor(items)?;
    }
    Ok(FoundFactor { key_place: &entry.key_place, elements: elements.collect(), key })
}

fn check_limit(count: usize, max: usize, what: &str, place: &Place) -> Result<()> {
    if count > max {
        return Err(place.error(format!("there would be {count} {what}"), format!("expected at most {max}")));
    }
    Ok(())
}

/// Combination with this number: the last factor varies fastest.
fn combination(
    number: usize,
    factors: &[FoundFactor<'_>],
    tree: &mut Node,
    read: impl Fn(&Node) -> Result<Experiment>,
) -> Result<Combination> {
    let (mut rest, mut values) = (number, Factors::new());
    for factor in factors.iter().rev() {
        let (value, node) = &factor.elements[rest % factor.elements.len()];
        rest /= factor.elements.len();
        *at(tree, &factor.key) = (*node).clone();
        values.insert(factor.key.clone(), value.clone());
    }
    let experiment = read(tree).map_err(|error| match factors {
        [_, _, ..] if error.hint.is_none() => {
            error.with_hint(format!("in the combination {}", named(&values)))
        }
        _ => error,
    })?;
    if let (Some(lua), Some(LuaScript::Inline(_))) =
        (factors.iter().find(|factor| factor.key == "istio.lua"), &experiment.istio.lua)
    {
        return Err(lua.key_place.error("`istio.lua` is a list with a script in it", "expected `[off, on]`"));
    }
    Ok(Combination { factors: values, experiment })
}

/// Formats factors, such as `load.connections 8, proxy.workers 2`.
fn named(factors: &Factors) -> String {
    factor_texts(factors).join(", ")
}

/// Node at a key that exists.
fn at<'a>(tree: &'a mut Node, dotted: &str) -> &'a mut Node {
    let (section, key) = split_key(dotted);
    let names = section.split('.').filter(|name| !name.is_empty()).chain([key]);
    names.fold(tree, |node, name| {
        let Value::Map(entries) = &mut node.value else { unreachable!("{dotted} was found below a map") };
        let found = entries.iter_mut().find(|entry| entry.key == name);
        &mut found.expect("the key was found in this tree").node
    })
}

/// Rejects two values of a factor that mean the same, such as `500m` and `0.5`: they would measure one cell
/// twice.
fn check_distinct(factors: &[FoundFactor<'_>], combinations: &[Combination], scale: &Scale) -> Result<()> {
    let mut step = combinations.len();
    for factor in factors {
        step /= factor.elements.len();
        for (later, (_, node)) in factor.elements.iter().enumerate() {
            let means_same = |earlier: usize| {
                combinations[earlier * step].experiment == combinations[later * step].experiment
            };
            if (0..later).any(means_same) {
                let error = node
                    .place
                    .error(format!("`{}` has the same value twice", factor.key), "expected each value once");
                return Err(scale.explain(error));
            }
        }
    }
    Ok(())
}
