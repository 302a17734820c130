//! Istio: the objects for an experiment's settings, istiod's settings, and the state that istiod and the
//! proxies report.
//! Read [`objects`] first. [`configz`] shows which objects istiod has processed, [`xds_status`] what proxies
//! have acknowledged, [`propagation`] when the configuration has reached them, and [`nack`] what they rejected.

pub mod agent;
pub mod background;
pub mod configz;
pub mod istiod;
pub mod nack;
pub mod objects;
pub mod propagation;
pub(crate) mod shown;
pub mod token;
pub mod validation;
pub mod xds_status;
