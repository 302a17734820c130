//! What runs in a deployment: pods of workloads, proxies, and components next to them.

pub(crate) mod database;
mod pods;
mod proxy;
pub(crate) mod service;
mod static_envoy;
mod supporting;

pub(crate) use mesh::proxy::CounterSource;
pub(crate) use pods::{PodIdentity, PodPlace, Pods, RunningPod, RunningWorkload};
pub(crate) use proxy::{Proxy, failure};
pub(crate) use service::RunningService;
pub(crate) use static_envoy::StaticEnvoyFactory;
pub(crate) use supporting::Supporting;
