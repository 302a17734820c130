//! Keys of a source of published figures and of a figure.

use super::modes;
use crate::keys::{Key, Kind};
use crate::published::{Clock, MemoryKind, PublishedPercentile};
use Clock::{Response, Service};
use PublishedPercentile::{P50, P90, P99};
use TimeFigure::{Max, Mean, P75, P95, P99_9, P99_99};
use results::TimeFigure;

pub(in crate::file) const MAX_CLIENTS: usize = 1_000_000;

/// Kind of a figure.
#[derive(Clone, Copy)]
pub(in crate::file) enum Figure {
    Cpu,
    Memory(MemoryKind),
    Time(Clock, TimeFigure),
    Added(PublishedPercentile),
    Throughput,
    ThroughputPerCpu,
    ReservedCpu,
    ReservedMemory,
    IstiodCpu,
    IstiodMemory,
    IstiodMemoryPerProxy,
}

pub(in crate::file) const FIGURES: [(&str, Figure); 32] = [
    ("cpu", Figure::Cpu),
    ("memory", Figure::Memory(MemoryKind::WorkingSet)),
    ("memory-resident", Figure::Memory(MemoryKind::Resident)),
    ("memory-anonymous", Figure::Memory(MemoryKind::Anonymous)),
    ("mean", Figure::Time(Response, Mean)),
    ("p50", Figure::Time(Response, TimeFigure::P50)),
    ("p75", Figure::Time(Response, P75)),
    ("p90", Figure::Time(Response, TimeFigure::P90)),
    ("p95", Figure::Time(Response, P95)),
    ("p99", Figure::Time(Response, TimeFigure::P99)),
    ("p99.9", Figure::Time(Response, P99_9)),
    ("p99.99", Figure::Time(Response, P99_99)),
    ("max", Figure::Time(Response, Max)),
    ("service-mean", Figure::Time(Service, Mean)),
    ("service-p50", Figure::Time(Service, TimeFigure::P50)),
    ("service-p75", Figure::Time(Service, P75)),
    ("service-p90", Figure::Time(Service, TimeFigure::P90)),
    ("service-p95", Figure::Time(Service, P95)),
    ("service-p99", Figure::Time(Service, TimeFigure::P99)),
    ("service-p99.9", Figure::Time(Service, P99_9)),
    ("service-p99.99", Figure::Time(Service, P99_99)),
    ("service-max", Figure::Time(Service, Max)),
    ("added-p50", Figure::Added(P50)),
    ("added-p90", Figure::Added(P90)),
    ("added-p99", Figure::Added(P99)),
    ("throughput", Figure::Throughput),
    ("throughput-per-cpu", Figure::ThroughputPerCpu),
    ("reserved-cpu", Figure::ReservedCpu),
    ("reserved-memory", Figure::ReservedMemory),
    ("istiod-cpu", Figure::IstiodCpu),
    ("istiod-memory", Figure::IstiodMemory),
    ("istiod-memory-per-proxy", Figure::IstiodMemoryPerProxy),
];

pub(super) const SOURCE: [Key; 4] = [
    Key::new("source", Kind::Text, "who published the figures, and of which version").required(),
    Key::new("differs", Kind::Text, "what differs between their set-up and this one"),
    Key::new("margin", Kind::Fraction, "how far a figure may lie from the published one to agree")
        .default("20%"),
    Key::new("figures", Kind::OneOrSeveral(&Kind::Named("published.figures")), "the figures").required(),
];

pub(super) const FIGURE: [Key; 8] = [
    Key::new("figure", Kind::OneOf(|| FIGURES.map(|(word, _)| word).to_vec()), "the measured figure")
        .required(),
    Key::new("mode", Kind::OneOf(modes), "the mode of the figure").required(),
    Key::new("to", Kind::OneOf(modes), "the reference of a relative `throughput` or `cpu`"),
    Key::new("component", Kind::Text, "the component whose CPU or memory it is; each proxy if absent"),
    Key::new("rate", Kind::Rate, "the rate under which it was measured; the lowest if absent"),
    Key::new("clients", Kind::Whole(1, MAX_CLIENTS as u64), "the clients under which it was measured"),
    Key::new(
        "gateway-cpu",
        Kind::Cores,
        "the gateway's CPU limit under which it was measured; the lowest if absent",
    ),
    Key::new(
        "value",
        Kind::Text,
        "the figure: cores, a size, a duration or a rate; with `to` a percentage or a word",
    )
    .required(),
];
