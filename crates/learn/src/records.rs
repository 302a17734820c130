//! Provenance of a learned topology: a record for each service, call and driver, and the findings.

use crate::checks::{self, Findings};
use crate::draft::{Draft, OUTSIDE, scaled};
use crate::fit::{Fit, fit, median};
use crate::mesh::Edge;
use crate::objects::Objects;
use crate::provenance::{
    EdgeRecord, Figure, Provenance, SCHEMA, SIDECAR_CPU_REQUEST, SIDECAR_MEMORY_REQUEST, ServiceRecord,
    SidecarUsage, Source, shown,
};
use crate::scripts::{Script, ScriptCall};
use crate::telemetry::{Reporter, Telemetry};
use crate::traces::{Order, Slot, TracedEndpoint, TracedService};
use experiment::topology::distribution::Distribution;
use experiment::topology::file::MAX_DRIVERS;
use experiment::topology::script::DEFAULT_ENDPOINT;
use results::units::format_fraction;
use std::collections::{BTreeMap, HashSet};

/// Source of figures that traces have.
const TRACES: &str = "traces";
const OWN_TIME: &str = "traces: the time in which no call was under way";

impl Draft<'_> {
    pub(crate) fn provenance(self, telemetry: &Telemetry, mut findings: Findings) -> Provenance {
        let name = |node: usize| self.labels.qualified(node);
        let mut edges = Vec::new();
        for (index, edge) in self.mesh.edges.iter().enumerate() {
            let position = self.drivers.binary_search(&index).ok();
            if position.is_none() && self.driven.contains_key(&index) {
                // A driver beyond the limit.
                continue;
            }
            let from = match (position, edge.from) {
                (Some(position), _) => self.clients[position].clone(),
                (None, Some(from)) => name(from),
                (None, None) => OUTSIDE.to_owned(),
            };
            let to = name(edge.to);
            checks::of_edge(&format!("{from} → {to}"), edge, &mut findings);
            edges.push(EdgeRecord { from, to, figures: self.edge_figures(index, edge, telemetry.period_s) });
        }
        let mut services = Vec::new();
        for (node, script) in &self.scripts {
            checks::of_service(&name(*node), *node, self.mesh, self.flows, script, &mut findings);
            services.push(ServiceRecord { name: name(*node), figures: self.service_figures(*node, script) });
        }
        checks::of_drivers(self.mesh, &self.driven, &name, &mut findings);
        checks::of_flow(self.mesh, self.flows, &self.calls, &self.drivers, &name, &mut findings);
        checks::of_traces(telemetry, self.mesh, (self.traced, &self.calls), &name, &mut findings);
        self.add_general(&mut findings);
        Provenance {
            schema: SCHEMA.to_owned(),
            name: self.options.name.clone(),
            period_s: telemetry.period_s,
            period_end_s: telemetry.at,
            scale: self.options.scale,
            anonymised: telemetry.is_anonymised(),
            sources: sources(telemetry, self.objects),
            services,
            edges,
            drivers: self.records,
            sidecars: sidecars(telemetry),
            findings: findings.done(),
        }
    }

    fn add_general(&self, findings: &mut Findings) {
        if !self.left_out.is_empty() {
            let rate: f64 = self.left_out.iter().map(|edge| self.mesh.edges[*edge].rate).sum();
            let text = format!(
                "{} drivers with {} requests/s in all are left out: a topology has at most {MAX_DRIVERS}",
                self.left_out.len(),
                shown(rate)
            );
            findings.add("left-out", "", text);
        }
        if self.labels.changed > 0 {
            let text =
                format!("{} names are not those of Kubernetes objects and were changed", self.labels.changed);
            findings.add("names", "", text);
        }
        let is_unordered = |(node, calls): (usize, &Vec<ScriptCall>)| {
            calls.len() > 1 && !self.traced.services.contains_key(&node)
        };
        if self.calls.iter().enumerate().any(is_unordered) {
            let text = "metrics have no order of calls: they are in sequence, or in parallel where a sequence would take too long";
            findings.add("order", "", text);
        }
        self.add_objects(findings);
        if self.options.scale < 1.0 {
            findings.add("scale", "", self.loss());
        }
    }

    /// Findings about objects, if there are any.
    fn add_objects(&self, findings: &mut Findings) {
        for (kind, count) in &self.objects.ignored {
            findings.add("ignored-objects", kind, format!("{count} objects of kind {kind} are ignored"));
        }
        if self.objects.is_empty() {
            return;
        }
        let served: HashSet<(&str, &str)> =
            self.mesh.nodes.iter().map(|node| (node.namespace.as_str(), node.name.as_str())).collect();
        let is_idle =
            |(namespace, name): &&(String, String)| !served.contains(&(namespace.as_str(), name.as_str()));
        let idle = self.objects.workloads().filter(is_idle).count();
        if idle > 0 {
            findings.add(
                "idle-workloads",
                "",
                format!("{idle} workloads send and receive nothing: they are left out"),
            );
        }
        for id in self.scripts.keys() {
            if self.mesh.nodes[*id].in_mesh && self.pods[*id].is_none() {
                let name = self.labels.qualified(*id);
                let text = format!("there is no object of `{name}`: it is learned with one pod");
                findings.add("missing-object", name, text);
            }
        }
    }

    /// Sentence on what a smaller scale loses.
    fn loss(&self) -> String {
        let scale = self.options.scale;
        let replicas = |node: usize| self.pods[node].as_ref().map_or(1, |pods| pods.replicas);
        let measured: usize = self.scripts.keys().map(|node| replicas(*node)).sum();
        let scaled: usize = self.scripts.keys().map(|node| scaled(replicas(*node), scale)).sum();
        format!(
            "rates are {} of the measured ones. {scaled} pods instead of {measured}: every service keeps one, so a pod gets {} of \
             the requests that it gets in the mesh. Queues, caches and pools behave as at that rate, and proxies that are rarely \
             used need more CPU per request",
            format_fraction(scale),
            format_fraction((scale * measured as f64 / scaled.max(1) as f64 * 1e4).round() / 1e4)
        )
    }

    fn edge_figures(&self, index: usize, edge: &Edge, period_s: f64) -> BTreeMap<String, Figure> {
        let scale = self.options.scale;
        let (metric, unit) = match (edge.is_tcp, edge.is_traced) {
            (true, _) => (self.mesh.dialect.metrics().connections, "connections/s"),
            (false, false) => (self.mesh.dialect.metrics().requests, "requests/s"),
            (false, true) => (TRACES, "requests/s"),
        };
        let half = if period_s > 0.0 { 1.96 * edge.count.sqrt() / period_s } else { 0.0 };
        let others = Reporter::ALL.into_iter().filter(|one| *one != edge.reporter);
        let others: Vec<String> = others
            .filter_map(|one| Some(format!("{} {}", one.name(), shown(edge.rates[one as usize]?))))
            .collect();
        let source = if edge.is_traced {
            "traces, over the share that is traced".to_owned()
        } else {
            self.mesh.dialect.source(metric, edge.reporter)
        };
        // The interval of a sampled count is that of the sample.
        let half = half * edge.rate * period_s / edge.count.max(1.0);
        let mut note =
            if others.is_empty() { Vec::new() } else { vec![format!("also {}", others.join(", "))] };
        if scale < 1.0 {
            note.push(format!("measured {}, times {}", shown(edge.rate), shown(scale)));
        }
        let mut figures = BTreeMap::new();
        let mut rate = figure(edge.rate * scale, unit, &source, edge.count);
        rate.low = Some((edge.rate - half).max(0.0) * scale);
        rate.high = Some((edge.rate + half) * scale);
        rate.note = (!note.is_empty()).then(|| note.join("; "));
        figures.insert("rate".to_owned(), rate);
        if !edge.is_tcp {
            figures.insert("errors".to_owned(), figure(edge.errors, "fraction", &source, edge.count));
        }
        let call = edge.from.and_then(|from| self.calls[from].iter().find(|call| call.edge == index));
        if let Some(call) = call {
            let source = "rate of the call over the rate of requests to the caller";
            figures.insert(
                "calls per request".to_owned(),
                figure(call.per_request, "calls", source, edge.count),
            );
            if let Some(fit) = &call.request {
                let source = if edge.is_traced { TRACES } else { self.mesh.dialect.metrics().request_bytes };
                figures.insert("request".to_owned(), of_fit(fit, "bytes", source));
            }
        }
        if let Some(traced) = self.traced.edges.get(&index).filter(|traced| traced.requests > 0.0) {
            let calls = figure(traced.per_request, "calls", TRACES, traced.requests);
            figures.insert("calls per traced request".to_owned(), calls);
            if traced.retries > 0 {
                let mut retries = figure(traced.retries as f64, "calls", TRACES, traced.calls as f64);
                retries.note = Some(format!("at most {} of one call", traced.most_retries));
                figures.insert("retries".to_owned(), retries);
            }
        }
        figures
    }

    /// Order of an endpoint's calls as text: `cart; (db | search 35%)`.
    fn order(&self, endpoint: &TracedEndpoint) -> String {
        let shown = |slot: &Slot| {
            let names =
                slot.edges.iter().map(|edge| self.labels.labels[self.mesh.edges[*edge].to].1.as_str());
            let names: Vec<&str> = names.collect();
            let path = if slot.path == DEFAULT_ENDPOINT { "" } else { &slot.path };
            let times = match slot.probability {
                certain if certain > 0.995 && certain < 1.005 => String::new(),
                other => format!(" {}", format_fraction((other * 1e3).round() / 1e3)),
            };
            format!("{}{path}{times}", names.join("/"))
        };
        fn written(order: &Order, shown: &dyn Fn(usize) -> String) -> String {
            let all = |orders: &[Order], between: &str| {
                orders.iter().map(|order| written(order, shown)).collect::<Vec<_>>().join(between)
            };
            match order {
                Order::Call(slot) => shown(*slot),
                Order::Sequence(orders) => all(orders, "; "),
                Order::Parallel(orders) => format!("({})", all(orders, " | ")),
            }
        }
        written(&endpoint.order, &|slot| shown(&endpoint.slots[slot]))
    }

    /// Figures of a service that traces have.
    fn traced_figures(&self, service: &TracedService, figures: &mut BTreeMap<String, Figure>) {
        for endpoint in &service.endpoints {
            let path =
                if service.endpoints.len() == 1 { String::new() } else { format!(" of {}", endpoint.path) };
            let mut requests = figure(endpoint.requests, "requests", TRACES, endpoint.requests);
            let order = self.order(endpoint);
            requests.note = (!order.is_empty()).then(|| format!("calls: {order}"));
            figures.insert(format!("traced requests{path}"), requests);
            if !path.is_empty()
                && let Some(own) = fit(&endpoint.own)
            {
                figures.insert(format!("own time{path}"), of_fit(&own, "s", OWN_TIME));
            }
        }
    }

    fn service_figures(&self, node: usize, script: &Script) -> BTreeMap<String, Figure> {
        let mut figures = BTreeMap::new();
        let count: f64 = self.flows.into[node].iter().map(|edge| self.mesh.edges[*edge].count).sum();
        let scale = self.options.scale;
        let rate = self.flows.arriving[node] * scale;
        figures.insert("rate".to_owned(), figure(rate, "requests/s", "sum of the calls to it", count));
        figures.insert(
            "errors of its own".to_owned(),
            figure(script.endpoints[0].error_fraction, "fraction", "errors less those of its calls", count),
        );
        let is_traced = self.flows.into[node].iter().all(|edge| self.mesh.edges[*edge].is_traced);
        if let Some(response) = &script.response {
            let source = if is_traced { TRACES } else { self.mesh.dialect.metrics().response_bytes };
            figures.insert("response".to_owned(), of_fit(response, "bytes", source));
        }
        if let Some(service) = self.traced.services.get(&node) {
            self.traced_figures(service, &mut figures);
        }
        if let Some((duration, reporter)) = &script.duration {
            let source = match is_traced {
                true => TRACES.to_owned(),
                false => self.mesh.dialect.source(self.mesh.dialect.metrics().duration, *reporter),
            };
            figures.insert("duration".to_owned(), of_fit(duration, "s", &source));
            if let Some(own) = script.own {
                let source = if script.is_own_traced {
                    OWN_TIME
                } else if script.calls_s > 0.0 {
                    "duration less that of its calls"
                } else {
                    "duration: it makes no calls"
                };
                let n = self.traced.services.get(&node).filter(|_| script.is_own_traced);
                let n = n.map_or(duration.values, |service| service.own.values());
                let mut figure = figure(median(&own), "s", source, n);
                figure.p99 = p99(&own);
                figure.note = script.is_parallel.then(|| {
                    format!(
                        "calls in parallel: one after the other they would take {} s",
                        shown(script.calls_s)
                    )
                });
                figures.insert("own time".to_owned(), figure);
            }
        }
        let pods = self.pods[node].as_ref();
        let source = pods.map_or("assumed", |pods| pods.kind.as_str());
        let replicas = pods.map_or(1, |pods| pods.replicas);
        let mut of_pods = figure(scaled(replicas, scale) as f64, "pods", source, 0.0);
        of_pods.note = (scale < 1.0).then(|| format!("{replicas} times {}", shown(scale)));
        figures.insert("replicas".to_owned(), of_pods);
        let resources = pods.map(|pods| pods.resources).unwrap_or_default();
        let sidecar = pods.map(|pods| pods.sidecar).unwrap_or_default();
        let bytes = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64);
        for (name, unit, amount) in [
            ("CPU request", "cores", resources.cpu_request_cores),
            ("CPU limit", "cores", resources.cpu_limit_cores),
            ("memory request", "bytes", bytes(resources.memory_request_bytes)),
            ("memory limit", "bytes", bytes(resources.memory_limit_bytes)),
            (SIDECAR_CPU_REQUEST, "cores", sidecar.cpu_request_cores),
            (SIDECAR_MEMORY_REQUEST, "bytes", bytes(sidecar.memory_request_bytes)),
        ] {
            if let Some(amount) = amount {
                figures.insert(name.to_owned(), figure(amount, unit, source, 0.0));
            }
        }
        figures
    }
}

/// Usage of the mesh's own sidecars.
fn sidecars(telemetry: &Telemetry) -> Option<SidecarUsage> {
    let source = "cAdvisor, containers `istio-proxy` of pods other than gateways and waypoints";
    let of_all = |value: Option<f64>, unit: &str| value.map(|value| figure(value, unit, source, 0.0));
    let usage = SidecarUsage {
        cpu_cores: of_all(telemetry.sidecar_cpu_cores, "cores"),
        memory_bytes: of_all(telemetry.sidecar_memory_bytes, "bytes"),
    };
    (usage != SidecarUsage::default()).then_some(usage)
}

fn sources(telemetry: &Telemetry, objects: &Objects) -> Vec<Source> {
    let rows = telemetry.rows.iter().map(|(name, rows)| Source { name: (*name).to_owned(), rows: *rows });
    let traces =
        telemetry.traces.iter().flat_map(|traces| [(TRACES, traces.complete), ("spans", traces.spans)]);
    let traces = traces.map(|(name, rows)| Source { name: name.to_owned(), rows });
    let objects = objects.read.iter().map(|(kind, read)| Source { name: kind.clone(), rows: *read });
    rows.chain(traces).chain(objects).collect()
}

fn figure(value: f64, unit: &str, source: &str, n: f64) -> Figure {
    Figure {
        value,
        unit: unit.to_owned(),
        source: source.to_owned(),
        n,
        low: None,
        high: None,
        p99: None,
        note: None,
    }
}

/// Median of a fit, with the bounds of its bucket.
fn of_fit(fit: &Fit, unit: &str, source: &str) -> Figure {
    let (low, high) = fit.median_within;
    let finite = |bound: f64| Some(bound).filter(|bound| bound.is_finite());
    Figure {
        low: finite(low),
        high: finite(high),
        p99: p99(&fit.distribution),
        ..figure(median(&fit.distribution), unit, source, fit.values)
    }
}

fn p99(distribution: &Distribution) -> Option<f64> {
    match distribution {
        Distribution::LogNormal { p99, .. } => Some(*p99),
        Distribution::Fixed(_) => None,
        other => Some(other.draw(0.99, 0.0)),
    }
}
