//! Keys of a source of published figures and of a figure.

use super::modes;
use crate::file::published::{FIGURES, MAX_CLIENTS};
use crate::keys::{Key, Kind};

pub(super) const SOURCE: [Key; 4] = [
    Key::new("source", Kind::Text, "who published the figures, and of which version").required(),
    Key::new("differs", Kind::Text, "what differs between their set-up and this one"),
    Key::new("margin", Kind::Fraction, "how far a figure may lie from the published one to agree")
        .default("20%"),
    Key::new("figures", Kind::OneOrSeveral(0, &Kind::Named("published.figures")), "the figures").required(),
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
