//! The course of a trial, the same wherever it runs: which counters are read before and after the load, when
//! they have settled, what they prove, and what is recorded.
//!
//! [`place`] is what a trial needs of where it runs: a lab or a cluster. [`course`] reads and proves;
//! `readings.rs` has the counters of services, `calls.rs` the calls between them, `footprint.rs` memory and
//! configuration of proxies, and [`gateways`] the requests at gateways.

mod calls;
pub mod course;
mod footprint;
pub mod gateways;
mod kept_configuration;
pub mod place;
mod readings;
#[cfg(test)]
mod tests;
