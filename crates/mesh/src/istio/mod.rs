//! Istio: the objects that settings become, istiod's settings, and what it and the proxies report.
//! Read [`objects`] first. [`configz`] shows which objects istiod has processed, [`xds_status`] what proxies have
//! acknowledged, [`propagation`] when it has reached them, [`nack`] what they rejected.

pub mod background;
pub mod configz;
pub mod control_plane_metrics;
pub mod expected;
pub mod istiod;
pub mod nack;
pub mod objects;
pub mod propagation;
mod shown;
pub mod token;
pub mod validation;
pub mod xds_status;
