//! Histograms, intervals, comparison and findings: from trials to answers.

pub mod histogram;

pub use histogram::{DecodeError, LatencyHistogram};
