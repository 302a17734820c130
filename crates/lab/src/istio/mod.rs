//! `mesh: istio`.

pub mod objects;
pub mod token;
