//! The drawing as SVG. Colours and text sizes are classes of `templates/graph.css`, for a page and for a
//! file.

use super::layout::{Area, Edge, Graph, Layout, Node, Route, Size, layout};
use super::{CallFigures, Figures, Folding, Labels, WorkloadFigures};
use crate::svg::{Anchor, Drawing, escape, fitted, short, text_width};
use experiment::Protocol;
use experiment::topology::{Call, Runs, Topology, Workload, WorkloadId};
use std::collections::HashMap;
use std::fmt::Write as _;

const LINE_HEIGHT: f64 = 15.0;
const PADDING: f64 = 10.0;
/// Longer names are cut in the middle; their shapes have them whole as tooltips.
const MAX_TEXT_WIDTH: f64 = 300.0;
const MIN_NODE_WIDTH: f64 = 64.0;
const CAPTION_HEIGHT: f64 = 18.0;
/// Margin around the drawing, for line widths and the frames of copies.
const MARGIN: f64 = 8.0;
/// Offset of the background shapes that indicate replicas or copies.
const BEHIND: f64 = 4.0;
const ARROW: f64 = 7.0;
/// Width of an edge at zero and at full weight.
const EDGE_WIDTH: (f64, f64) = (1.2, 5.0);

const COLOURS: &str = include_str!("../../templates/colours.css");
const STYLE: &str = include_str!("../../templates/graph.css");

/// The drawing as an element, for a page that has the style sheet.
pub(super) fn element(
    topology: &Topology,
    folding: &Folding,
    figures: &Figures,
    labels: Labels<'_>,
) -> String {
    let (size, body) = Picture::new(topology, folding, figures).draw();
    let (id, title) = (escape(labels.id), escape(labels.title));
    let description = escape(&description(topology, folding));
    format!(
        concat!(
            r#"<svg class="graph" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" "#,
            r#"aria-labelledby="{id}-title {id}-description"><title id="{id}-title">{title}</title>"#,
            r#"<desc id="{id}-description">{description}</desc>{body}</svg>"#
        ),
        width = short(size.width),
        height = short(size.height),
        id = id,
        title = title,
        description = description,
        body = body,
    )
}

/// The drawing as a standalone file.
pub(super) fn file(topology: &Topology, folding: &Folding, figures: &Figures) -> String {
    let (size, body) = Picture::new(topology, folding, figures).draw();
    format!(
        concat!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" class="graph" width="{width}" height="{height}" "#,
            r#"viewBox="0 0 {width} {height}"><title>{title}</title><desc>{description}</desc>"#,
            "<style>\n{colours}{style}svg {{ background: var(--page); }}\n</style>\n{body}</svg>\n"
        ),
        width = short(size.width),
        height = short(size.height),
        title = escape(&topology.name),
        description = escape(&description(topology, folding)),
        colours = COLOURS,
        style = STYLE,
        body = body,
    )
}

/// Describes every edge as text.
fn description(topology: &Topology, folding: &Folding) -> String {
    let name = |id: WorkloadId| topology.workloads[id].qualified_name();
    let mut callees: Vec<(WorkloadId, Vec<String>)> = Vec::new();
    for call in folding.calls(topology) {
        match callees.iter_mut().find(|(caller, _)| *caller == call.from) {
            Some((_, names)) => names.push(name(call.to)),
            None => callees.push((call.from, vec![name(call.to)])),
        }
    }
    let sentences: Vec<String> = callees
        .into_iter()
        .map(|(caller, names)| format!("{} calls {}.", name(caller), names.join(", ")))
        .collect();
    sentences.join(" ")
}

struct Picture<'a> {
    topology: &'a Topology,
    folding: &'a Folding,
    figures: &'a Figures,
    /// Workloads that are drawn.
    workloads: Vec<WorkloadId>,
    /// Edges that are drawn, except calls of a workload to itself.
    calls: Vec<Call>,
    /// Workloads that call themselves.
    own_callers: Vec<WorkloadId>,
    namespaces: Vec<&'a str>,
    drawing: Drawing,
}

impl<'a> Picture<'a> {
    fn new(topology: &'a Topology, folding: &'a Folding, figures: &'a Figures) -> Self {
        let (own, calls): (Vec<Call>, Vec<Call>) =
            folding.calls(topology).into_iter().partition(|call| call.from == call.to);
        Self {
            topology,
            folding,
            figures,
            workloads: folding.workloads().collect(),
            calls,
            own_callers: own.into_iter().map(|call| call.from).collect(),
            namespaces: topology.namespaces(),
            drawing: Drawing::new(0.0, 0.0),
        }
    }

    /// Returns the size of the drawing and its elements.
    fn draw(mut self) -> (Size, String) {
        let graph = self.graph();
        let Layout { size, nodes, routes, bands } = layout(&graph);
        if graph.caption_height > 0.0 {
            self.draw_bands(&bands);
        }
        for (call, route) in self.calls.clone().iter().zip(&routes) {
            self.draw_edge(*call, route);
        }
        for (id, area) in self.workloads.clone().into_iter().zip(&nodes) {
            self.draw_workload(id, *area);
        }
        let size = Size { width: size.width + 2.0 * MARGIN, height: size.height + 2.0 * MARGIN };
        (size, self.drawing.into_body())
    }

    fn graph(&self) -> Graph {
        let band: HashMap<&str, usize> =
            self.namespaces.iter().enumerate().map(|(index, name)| (*name, index)).collect();
        let index: HashMap<WorkloadId, usize> =
            self.workloads.iter().enumerate().map(|(index, id)| (*id, index)).collect();
        let nodes = self.workloads.iter().map(|id| Node {
            size: self.workload_size(*id),
            band: band[self.topology.workloads[*id].namespace.as_str()],
            is_source: !self.topology.workloads[*id].serves(),
        });
        let edges = self.calls.iter().map(|call| Edge {
            from: index[&call.from],
            to: index[&call.to],
            label: self.figures.calls.get(call).map_or_else(Size::default, label_size),
        });
        let is_framed = self.namespaces.iter().any(|name| !name.is_empty());
        Graph {
            nodes: nodes.collect(),
            edges: edges.collect(),
            caption_height: if is_framed { CAPTION_HEIGHT } else { 0.0 },
        }
    }

    fn workload_size(&self, id: WorkloadId) -> Size {
        let workload = &self.topology.workloads[id];
        let figures = self.figures.workloads.get(&id).map_or(&[][..], |figures| &figures.lines);
        let detail = detail(workload);
        let lines = [workload.name.as_str(), &detail].into_iter().chain(figures.iter().map(String::as_str));
        let width = lines.map(|line| text_width(line).min(MAX_TEXT_WIDTH)).fold(MIN_NODE_WIDTH, f64::max);
        let count = 1 + usize::from(!detail.is_empty()) + figures.len();
        let is_cylinder = matches!(workload.runs, Runs::Database);
        let extra = if is_cylinder { 8.0 } else { 0.0 };
        Size {
            width: width + 2.0 * PADDING,
            height: count as f64 * LINE_HEIGHT + 2.0 * PADDING - 4.0 + extra,
        }
    }

    fn draw_bands(&mut self, bands: &[Option<Area>]) {
        for (namespace, area) in self.namespaces.clone().iter().zip(bands) {
            let Some(area) = area.map(with_margin) else { continue };
            if self.folding.count(namespace) > 1 {
                let behind = Area { left: area.left + BEHIND, top: area.top + BEHIND, ..area };
                self.drawing.path(&rounded(behind, 6.0), "band", "");
            }
            self.drawing.path(&rounded(area, 6.0), "band", "");
            let caption = fitted(&self.folding.caption(namespace), area.width - 2.0 * PADDING);
            self.drawing.text((area.left + PADDING, area.top + 17.0), Anchor::Start, "soft", &caption);
        }
    }

    fn draw_edge(&mut self, call: Call, route: &Route) {
        let none = CallFigures::default();
        let figures = self.figures.calls.get(&call).unwrap_or(&none);
        let weight = if figures.weight.is_finite() { figures.weight.clamp(0.0, 1.0) } else { 0.0 };
        let width = EDGE_WIDTH.0 + (EDGE_WIDTH.1 - EDGE_WIDTH.0) * weight;
        let emphasis = if figures.emphasised { " flagged" } else { "" };
        let arrow = ARROW + width;
        let (path, tip) = edge_paths(route, arrow);
        let names = [call.from, call.to].map(|id| self.topology.workloads[id].qualified_name());
        let title = std::iter::once(names.join(" → ")).chain(figures.lines.iter().cloned());
        let title = title.collect::<Vec<_>>().join(", ");
        self.drawing.stroke(&path, &format!("edge{emphasis}"), width, &title);
        self.drawing.path(&tip, &format!("arrow{emphasis}"), "");
        if let Some(area) = route.label.map(with_margin) {
            let centre = area.left + area.width / 2.0;
            for (index, line) in figures.lines.iter().enumerate() {
                let y = area.top + 11.0 + index as f64 * LINE_HEIGHT;
                let class = format!("figure{emphasis}");
                self.drawing.text((centre, y), Anchor::Middle, &class, &fitted(line, MAX_TEXT_WIDTH));
            }
        }
    }

    fn draw_workload(&mut self, id: WorkloadId, area: Area) {
        let area = with_margin(area);
        let workload = &self.topology.workloads[id];
        let none = WorkloadFigures::default();
        let figures = self.figures.workloads.get(&id).unwrap_or(&none);
        let kind = match workload.runs {
            Runs::Drivers => "driver",
            Runs::Database => "database",
            Runs::ExternalService(_) => "external",
            Runs::Service(_) | Runs::Scripted(_) => "service-box",
        };
        let outside = if workload.in_mesh { "" } else { " outside" };
        let emphasis = if figures.emphasised { " flagged" } else { "" };
        let class = format!("node {kind}{outside}{emphasis}");
        if self.own_callers.contains(&id) {
            self.draw_own_call(area);
        }
        if workload.replicas > 1 {
            let behind = Area { left: area.left + BEHIND, top: area.top - BEHIND, ..area };
            self.drawing.path(&shape(&workload.runs, behind), &class, "");
        }
        self.drawing.path(&shape(&workload.runs, area), &class, &self.tip(workload));
        let is_cylinder = matches!(workload.runs, Runs::Database);
        let mut y = area.top + PADDING + 9.0 + if is_cylinder { 8.0 } else { 0.0 };
        let centre = area.left + area.width / 2.0;
        let figure_class = format!("figure{emphasis}");
        let detail = detail(workload);
        let mut lines = vec![("name", workload.name.as_str())];
        lines.extend(Some(("soft", detail.as_str())).filter(|_| !detail.is_empty()));
        lines.extend(figures.lines.iter().map(|line| (figure_class.as_str(), line.as_str())));
        for (class, text) in lines {
            self.drawing.text((centre, y), Anchor::Middle, class, &fitted(text, MAX_TEXT_WIDTH));
            y += LINE_HEIGHT;
        }
    }

    fn draw_own_call(&mut self, area: Area) {
        let (x, y) = (area.left + area.width - 22.0, area.top);
        let path = format!(
            "M{},{}C{},{} {},{} {},{}",
            short(x - 14.0),
            short(y),
            short(x - 14.0),
            short(y - 16.0),
            short(x + 6.0),
            short(y - 16.0),
            short(x + 6.0),
            short(y)
        );
        self.drawing.stroke(&path, "edge", EDGE_WIDTH.0, "calls itself");
    }

    fn tip(&self, workload: &Workload) -> String {
        let mut tip = workload.qualified_name();
        let _ = match workload.runs {
            Runs::Drivers => write!(tip, ": drivers"),
            Runs::Database => write!(tip, ": database"),
            Runs::ExternalService(_) => write!(tip, ": external service, {}", workload.protocol),
            Runs::Service(_) | Runs::Scripted(_) => write!(tip, ": {}", workload.protocol),
        };
        if workload.replicas > 1 {
            let _ = write!(tip, ", {} replicas", workload.replicas);
        }
        if !workload.in_mesh {
            tip.push_str(", outside the mesh");
        }
        for endpoint in workload.script().map_or(&[][..], |script| &script.endpoints) {
            let _ = write!(tip, ", {}", endpoint.path);
        }
        tip
    }
}

/// Second line of a workload: its distinguishing properties.
fn detail(workload: &Workload) -> String {
    let kind = match workload.runs {
        Runs::Drivers => Some("drivers"),
        Runs::Database => Some("database"),
        Runs::ExternalService(_) => Some("external"),
        Runs::Service(_) | Runs::Scripted(_) => None,
    };
    let speaks = workload.serves() && !matches!(workload.runs, Runs::Database);
    let protocol =
        Some(workload.protocol).filter(|protocol| speaks && *protocol != Protocol::Http1).map(Protocol::name);
    let replicas = (workload.replicas > 1).then(|| format!("× {}", workload.replicas));
    let parts: Vec<&str> = kind.into_iter().chain(protocol).chain(replicas.as_deref()).collect();
    parts.join(" · ")
}

fn label_size(figures: &CallFigures) -> Size {
    if figures.lines.is_empty() {
        return Size::default();
    }
    let width = figures.lines.iter().map(|line| text_width(line).min(MAX_TEXT_WIDTH)).fold(0.0, f64::max);
    Size { width: width + 4.0, height: figures.lines.len() as f64 * LINE_HEIGHT + 2.0 }
}

fn with_margin(area: Area) -> Area {
    Area { left: area.left + MARGIN, top: area.top + MARGIN, ..area }
}

/// Path data of an edge's line and of its arrowhead.
fn edge_paths(route: &Route, arrow: f64) -> (String, String) {
    let last = route.stops.len() - 1;
    let mut path = String::new();
    let mut tip = (0.0, 0.0, 1.0);
    let mut from = (0.0, 0.0);
    for (index, stop) in route.stops.iter().enumerate() {
        let (mut left, mut right, y) = (stop.left + MARGIN, stop.right + MARGIN, stop.y + MARGIN);
        if index == 0 {
            if route.reversed {
                tip = (right, y, -1.0);
                right += arrow;
            }
            let _ = write!(path, "M{},{}", short(right), short(y));
        } else {
            if index == last && !route.reversed {
                tip = (left, y, 1.0);
                left -= arrow;
            }
            let middle = f64::midpoint(from.0, left);
            let _ = write!(
                path,
                "C{},{} {},{} {},{}",
                short(middle),
                short(from.1),
                short(middle),
                short(y),
                short(left),
                short(y)
            );
            if index < last {
                let _ = write!(path, "H{}", short(right));
            }
        }
        from = (right, y);
    }
    let (x, y, direction) = tip;
    let back = x - direction * (arrow + 1.0);
    let half = arrow * 0.45;
    let tip = format!(
        "M{},{}L{},{}L{},{}Z",
        short(x),
        short(y),
        short(back),
        short(y - half),
        short(back),
        short(y + half)
    );
    (path, tip)
}

fn shape(runs: &Runs, area: Area) -> String {
    match runs {
        Runs::Drivers => rounded(area, area.height / 2.0),
        Runs::Database => cylinder(area),
        Runs::ExternalService(_) => hexagon(area),
        Runs::Service(_) | Runs::Scripted(_) => rounded(area, 4.0),
    }
}

fn rounded(area: Area, radius: f64) -> String {
    let radius = radius.min(area.height / 2.0).min(area.width / 2.0);
    let r = short(radius);
    let (across, down) = (short(area.width - 2.0 * radius), short(area.height - 2.0 * radius));
    format!(
        "M{},{}h{across}a{r},{r} 0 0 1 {r},{r}v{down}a{r},{r} 0 0 1 -{r},{r}h-{across}a{r},{r} 0 0 1 -{r},-{r}v-{down}a{r},{r} 0 0 1 {r},-{r}z",
        short(area.left + radius),
        short(area.top),
    )
}

fn hexagon(area: Area) -> String {
    let (right, bottom) = (area.left + area.width, area.top + area.height);
    let (middle, point) = (area.top + area.height / 2.0, 9.0);
    format!(
        "M{},{}L{},{}L{},{}L{},{}L{},{}L{},{}Z",
        short(area.left + point),
        short(area.top),
        short(right - point),
        short(area.top),
        short(right),
        short(middle),
        short(right - point),
        short(bottom),
        short(area.left + point),
        short(bottom),
        short(area.left),
        short(middle),
    )
}

fn cylinder(area: Area) -> String {
    let (half, lid) = (short(area.width / 2.0), "6");
    let (left, right) = (short(area.left), short(area.left + area.width));
    let (top, bottom) = (short(area.top + 6.0), short(area.top + area.height - 6.0));
    format!(
        "M{left},{top}a{half},{lid} 0 0 1 {width},0V{bottom}a{half},{lid} 0 0 1 -{width},0V{top}a{half},{lid} 0 0 0 {width},0M{right},{top}",
        width = short(area.width),
    )
}
