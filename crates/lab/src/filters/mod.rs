//! Filters of a gateway in a deployment: the services behind them ([`services`]), and the evidence in each
//! trial that they act ([`proof`]). Their list and their configuration are in [`mesh::filters`].

pub(crate) mod proof;
mod services;

pub(crate) use services::Filters;

use crate::Result;
use components::{Component, Installed, Overrides, find, find_rate_limit_store};

/// Programs of the services behind filters.
#[derive(Clone, Debug)]
pub(crate) struct FilterPrograms {
    /// Program of the authorization and the firewall service.
    pub services: Installed,
    pub rate_limit: Installed,
    /// The store of the rate limit service: its own, or the user's Redis.
    pub store: Installed,
}

impl FilterPrograms {
    pub fn find(overrides: &Overrides) -> Result<Self> {
        Ok(Self {
            services: find(Component::FilterServices, overrides)?,
            rate_limit: find(Component::RateLimit, overrides)?,
            store: find_rate_limit_store(overrides)?,
        })
    }

    pub fn all(&self) -> impl Iterator<Item = &Installed> {
        let own_store = self.store.component == Component::RateLimit;
        [&self.services, &self.rate_limit].into_iter().chain((!own_store).then_some(&self.store))
    }
}
