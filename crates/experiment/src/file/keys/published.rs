//! Keys of a source of published figures and of a figure.

use super::modes;
use crate::keys::{Key, Kind};
use results::Metric;

pub(in crate::file) const MAX_CLIENTS: usize = 1_000_000;

/// Kind of a figure.
#[derive(Clone, Copy)]
pub(in crate::file) enum Figure {
    Cpu,
    Memory(Metric),
    Time(Metric),
    Added(Metric),
    Throughput,
    ThroughputPerCpu,
    ReservedCpu,
    ReservedMemory,
    IstiodCpu,
    IstiodMemory,
    IstiodMemoryPerProxy,
}

pub(in crate::file) const FIGURES: [(&str, Figure); 35] = [
    ("cpu", Figure::Cpu),
    ("memory", Figure::Memory(Metric::MemoryWorkingSetBytes)),
    ("memory-resident", Figure::Memory(Metric::MemoryResidentBytes)),
    ("memory-anonymous", Figure::Memory(Metric::MemoryAnonymousBytes)),
    ("mean", Figure::Time(Metric::ResponseTimeMeanUs)),
    ("p50", Figure::Time(Metric::ResponseTimeP50Us)),
    ("p75", Figure::Time(Metric::ResponseTimeP75Us)),
    ("p90", Figure::Time(Metric::ResponseTimeP90Us)),
    ("p95", Figure::Time(Metric::ResponseTimeP95Us)),
    ("p99", Figure::Time(Metric::ResponseTimeP99Us)),
    ("p99.9", Figure::Time(Metric::ResponseTimeP99_9Us)),
    ("p99.99", Figure::Time(Metric::ResponseTimeP99_99Us)),
    ("max", Figure::Time(Metric::ResponseTimeMaxUs)),
    ("service-mean", Figure::Time(Metric::ServiceTimeMeanUs)),
    ("service-p50", Figure::Time(Metric::ServiceTimeP50Us)),
    ("service-p75", Figure::Time(Metric::ServiceTimeP75Us)),
    ("service-p90", Figure::Time(Metric::ServiceTimeP90Us)),
    ("service-p95", Figure::Time(Metric::ServiceTimeP95Us)),
    ("service-p99", Figure::Time(Metric::ServiceTimeP99Us)),
    ("service-p99.9", Figure::Time(Metric::ServiceTimeP99_9Us)),
    ("service-p99.99", Figure::Time(Metric::ServiceTimeP99_99Us)),
    ("service-max", Figure::Time(Metric::ServiceTimeMaxUs)),
    ("first-token-mean", Figure::Time(Metric::FirstEventMeanUs)),
    ("first-token-p50", Figure::Time(Metric::FirstEventP50Us)),
    ("first-token-p99", Figure::Time(Metric::FirstEventP99Us)),
    ("added-p50", Figure::Added(Metric::ResponseTimeP50Us)),
    ("added-p90", Figure::Added(Metric::ResponseTimeP90Us)),
    ("added-p99", Figure::Added(Metric::ResponseTimeP99Us)),
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

pub(super) const FIGURE: [Key; 9] = [
    Key::new("figure", Kind::OneOf(|| FIGURES.map(|(word, _)| word).to_vec()), "the measured figure")
        .required(),
    Key::new("mode", Kind::OneOf(modes), "the mode of the figure").required(),
    Key::new("to", Kind::OneOf(modes), "the reference of a relative `throughput` or `cpu`"),
    Key::new("component", Kind::Text, "the component whose CPU or memory it is; each proxy if absent"),
    Key::new("rate", Kind::Rate, "the rate under which it was measured; the lowest if absent"),
    Key::new("clients", Kind::Whole(1, MAX_CLIENTS as u64), "the clients under which it was measured"),
    Key::new(
        "prompt",
        Kind::Size,
        "the prompts of the streams of which it was measured; the first if absent",
    ),
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
