//! The topology as text for other drawing programs: Mermaid and DOT.

use super::Folding;
use experiment::topology::{Runs, Topology, Workload, WorkloadId};
use results::is_acting;
use std::fmt::Write as _;

/// The topology as a Mermaid flowchart.
#[must_use]
pub fn mermaid(topology: &Topology, folding: &Folding) -> String {
    let mut text = String::from("flowchart LR\n");
    for (index, (namespace, workloads)) in by_namespace(topology, folding).into_iter().enumerate() {
        let indent = if namespace.is_empty() { "  " } else { "    " };
        if !namespace.is_empty() {
            let _ = writeln!(text, "  subgraph ns{index}[\"{}\"]", in_mermaid(&folding.caption(namespace)));
        }
        for id in workloads {
            let workload = &topology.workloads[id];
            let (open, close) = match workload.runs {
                Runs::Drivers => ("([", "])"),
                Runs::Database => ("[(", ")]"),
                Runs::ExternalService(_) => ("{{", "}}"),
                Runs::Service(_) | Runs::Scripted(_) => ("[", "]"),
            };
            let _ = writeln!(text, "{indent}w{id}{open}\"{}\"{close}", in_mermaid(&label(workload)));
        }
        if !namespace.is_empty() {
            text.push_str("  end\n");
        }
    }
    for call in folding.calls(topology) {
        let _ = writeln!(text, "  w{} --> w{}", call.from, call.to);
    }
    text
}

/// The topology as a Graphviz digraph.
#[must_use]
pub fn dot(topology: &Topology, folding: &Folding) -> String {
    let mut text = format!("digraph {} {{\n  rankdir=LR;\n  node [shape=box];\n", in_dot(&topology.name));
    for (index, (namespace, workloads)) in by_namespace(topology, folding).into_iter().enumerate() {
        let indent = if namespace.is_empty() { "  " } else { "    " };
        if !namespace.is_empty() {
            let caption = in_dot(&folding.caption(namespace));
            let _ = writeln!(text, "  subgraph cluster_{index} {{\n    label={caption};");
        }
        for id in workloads {
            let workload = &topology.workloads[id];
            let shape = match workload.runs {
                Runs::Drivers => ", shape=oval",
                Runs::Database => ", shape=cylinder",
                Runs::ExternalService(_) => ", shape=hexagon",
                Runs::Service(_) | Runs::Scripted(_) => "",
            };
            let outside = if workload.in_mesh { "" } else { ", style=dashed" };
            let _ = writeln!(text, "{indent}w{id} [label={}{shape}{outside}];", in_dot(&label(workload)));
        }
        if !namespace.is_empty() {
            text.push_str("  }\n");
        }
    }
    for call in folding.calls(topology) {
        let _ = writeln!(text, "  w{} -> w{};", call.from, call.to);
    }
    text + "}\n"
}

/// Namespaces that are drawn, with their workloads.
fn by_namespace<'a>(topology: &'a Topology, folding: &Folding) -> Vec<(&'a str, Vec<WorkloadId>)> {
    let mut namespaces: Vec<(&str, Vec<WorkloadId>)> = Vec::new();
    let mut index = std::collections::HashMap::new();
    for id in folding.workloads() {
        let namespace = topology.workloads[id].namespace.as_str();
        let place = *index.entry(namespace).or_insert(namespaces.len());
        if place == namespaces.len() {
            namespaces.push((namespace, Vec::new()));
        }
        namespaces[place].1.push(id);
    }
    namespaces
}

fn label(workload: &Workload) -> String {
    if workload.replicas > 1 {
        format!("{} × {}", workload.name, workload.replicas)
    } else {
        workload.name.clone()
    }
}

/// Text for use within quotes; Mermaid writes entities with `#`.
fn in_mermaid(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '"' => escaped.push_str("#quot;"),
            '#' => escaped.push_str("#35;"),
            '<' => escaped.push_str("#lt;"),
            '>' => escaped.push_str("#gt;"),
            '`' => escaped.push_str("#96;"),
            other if is_acting(other) => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Quoted text.
fn in_dot(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            other if is_acting(other) => quoted.push(' '),
            other => quoted.push(other),
        }
    }
    quoted + "\""
}
