//! Filters of a gateway in a deployment: the services behind them ([`services`]), and the evidence in each
//! trial that they act ([`proof`]). Their list and their configuration are in [`mesh::filters`].

pub(crate) mod proof;
mod services;
