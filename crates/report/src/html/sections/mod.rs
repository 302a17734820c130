//! Content of the page, section by section, as values for the templates.

mod against;
mod asked;
mod context;
mod control_plane_model;
mod corrected;
mod differences;
mod domains;
mod edges;
mod evidence;
mod factors;
mod filters;
mod findings;
mod fleets;
mod footprint;
mod gateways;
mod graph;
mod latency;
mod lateness;
mod legend;
mod nodes;
mod opening;
mod profiles;
mod rates;
mod resources;
mod scaling;
mod setting;
mod sizes;
mod tables;
mod throughput;
mod timelines;
mod trials;

use crate::disturbed::{self, DisturbedTable, MEANING};
use crate::drivers::DriverTable;
use crate::edges::EdgeTable;
use crate::reservations::ReservationTable;
use crate::run::RunData;
use crate::services::ServiceTable;
use crate::streams::StreamTable;
use context::Context;
use legend::LegendEntry;
use serde::Serialize;
use std::collections::BTreeMap;

pub(super) use context::Chart;
pub(crate) use profiles::{ProfileSection, profiles};
pub(super) use timelines::{MAX_SPANS_PER_TRIAL, charts as timeline_charts};

/// The whole page.
#[derive(Debug, Serialize)]
pub struct Page {
    opening: opening::Opening,
    findings: BTreeMap<&'static str, Vec<findings::FindingText>>,
    glance: opening::Glance,
    /// The modes with their markers, for the legend.
    legend: Vec<LegendEntry>,
    percentiles: Option<latency::PercentileSection>,
    corrected: Option<corrected::CorrectedSection>,
    streams: Option<StreamTable>,
    rates: Option<rates::RateSection>,
    throughput: Option<Vec<Chart>>,
    added: Option<Vec<Chart>>,
    resources: Option<resources::ResourceSection>,
    profiles: Option<ProfileSection>,
    gateways: Option<gateways::GatewaySection>,
    fleets: Option<fleets::FleetSection>,
    differences: Option<differences::DifferenceSection>,
    holdings: Option<footprint::FootprintSection>,
    factors: Option<factors::FactorSection>,
    scaling: Option<scaling::ScalingSection>,
    control_plane_model: Option<control_plane_model::ControlPlaneModelSection>,
    sizes: Option<sizes::SizeSection>,
    domains: Option<domains::DomainSection>,
    graph: Option<graph::GraphSection>,
    drivers: Option<DriverTable>,
    services: Option<ServiceTable>,
    edges: Option<EdgeTable>,
    edge_charts: Vec<Chart>,
    reservations: Option<ReservationTable>,
    trials: Option<trials::TrialSection>,
    left_out: trials::LeftOut,
    disturbed: Disturbed,
    path: Option<evidence::PathSection>,
    published: Vec<evidence::Published>,
    machine: setting::Machine,
    method: setting::Method,
    repeat: setting::Repeat,
    tables: tables::Tables,
}

/// Figures that noise of the machine keeps out of the estimates.
#[derive(Debug, Serialize)]
struct Disturbed {
    tables: Vec<DisturbedTable>,
    meaning: &'static str,
}

impl Page {
    /// The page of a run.
    pub fn new(run: &RunData) -> Self {
        let context = Context::new(run);
        let is_graph = run.summary.cells.iter().any(|cell| !cell.edges.is_empty());
        Self {
            opening: opening::Opening::new(&context),
            findings: findings::findings(&context),
            glance: opening::Glance::new(&context),
            legend: context.modes.iter().map(|mode| LegendEntry::new(*mode, is_graph)).collect(),
            percentiles: latency::percentiles(&context),
            corrected: corrected::corrected(&context),
            streams: StreamTable::new(&run.summary),
            rates: rates::rates(&context),
            throughput: throughput::throughput(&context),
            added: latency::added(&context),
            resources: resources::resources(&context),
            profiles: profiles::profiles(&run.profiles),
            gateways: gateways::gateways(&context),
            fleets: fleets::fleets(&context),
            differences: differences::differences(&context),
            holdings: footprint::footprint(&context),
            factors: factors::factors(&context),
            scaling: scaling::scaling(&context),
            control_plane_model: control_plane_model::control_plane_model(&context),
            sizes: sizes::sizes(&context),
            domains: domains::domains(&context),
            graph: graph::graph(&context),
            drivers: DriverTable::new(&run.summary),
            services: ServiceTable::new(&run.summary),
            edges: EdgeTable::new(&run.summary),
            edge_charts: edges::charts(&context),
            reservations: ReservationTable::new(&run.summary),
            trials: trials::trials(&context),
            left_out: trials::LeftOut::new(&context),
            disturbed: Disturbed { tables: disturbed::tables(&run.summary), meaning: MEANING },
            path: evidence::path(&context),
            published: evidence::published(&context),
            machine: setting::Machine::new(&context),
            method: setting::Method::new(&context),
            repeat: setting::Repeat::new(&context),
            tables: tables::Tables::new(&context),
        }
    }
}
