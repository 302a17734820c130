//! Filters of a gateway in a deployment: the services behind them ([`services`]), and what shows in each trial that they act
//! ([`proof`]). Which filters there are, and how they are configured, says [`mesh::filters`].

mod programs;
pub(crate) mod proof;
mod services;

pub(crate) use programs::FilterPrograms;
pub(crate) use services::Filters;
