//! What the page says, section by section, as values for the templates.

mod asked;
mod evidence;
mod factors;
mod holdings;
mod latency;
mod opening;
mod resources;
mod setting;
mod sizes;
mod tables;
mod throughput;
mod trials;

use crate::conditions::ConditionLabels;
use crate::drivers::{DriverTable, ServiceTable};
use crate::run::RunData;
use experiment::Mode;
use experiment::schema::{Cell, Conditions, TrialRecord};
use serde::Serialize;

/// The whole page.
#[derive(Debug, Serialize)]
pub struct Page {
    opening: opening::Opening,
    glance: opening::Glance,
    /// The modes with their looks, for the legend.
    legend: Vec<LegendEntry>,
    percentiles: Option<latency::PercentileSection>,
    throughput: Option<Vec<Figure>>,
    added: Option<Vec<Figure>>,
    resources: Option<resources::ResourceSection>,
    holdings: Option<holdings::HoldingsSection>,
    factors: Option<factors::FactorSection>,
    sizes: Option<sizes::SizeSection>,
    drivers: Option<DriverTable>,
    services: Option<ServiceTable>,
    trials: Option<trials::TrialSection>,
    left_out: trials::LeftOut,
    path: Option<evidence::PathSection>,
    published: Vec<evidence::Published>,
    machine: setting::Machine,
    method: setting::Method,
    repeat: setting::Repeat,
    tables: tables::Tables,
}

/// A chart with its caption.
#[derive(Debug, Serialize)]
pub struct Figure {
    /// Short: such as the load.
    caption: String,
    /// Our own SVG: the templates pass it through.
    svg: String,
}

/// A mode in the legend.
#[derive(Debug, Serialize)]
struct LegendEntry {
    name: &'static str,
    meaning: &'static str,
    svg: String,
}

/// What all sections look at.
struct Context<'a> {
    run: &'a RunData,
    conditions: ConditionLabels,
    /// Modes of the run, in the order in which reports show them.
    modes: Vec<Mode>,
}

impl Page {
    /// The page of a run.
    pub fn new(run: &RunData) -> Self {
        let context = Context::new(run);
        Self {
            opening: opening::Opening::new(&context),
            glance: opening::Glance::new(&context),
            legend: context.modes.iter().map(|mode| LegendEntry::new(*mode)).collect(),
            percentiles: latency::percentiles(&context),
            throughput: throughput::throughput(&context),
            added: latency::added(&context),
            resources: resources::resources(&context),
            holdings: holdings::holdings(&context),
            factors: factors::factors(&context),
            sizes: sizes::sizes(&context),
            drivers: DriverTable::new(&run.summary),
            services: ServiceTable::new(&run.summary),
            trials: trials::trials(&context),
            left_out: trials::LeftOut::new(&context),
            path: evidence::path(&context),
            published: evidence::published(&context),
            machine: setting::Machine::new(&context),
            method: setting::Method::new(&context),
            repeat: setting::Repeat::new(&context),
            tables: tables::Tables::new(&context),
        }
    }
}

impl<'a> Context<'a> {
    fn new(run: &'a RunData) -> Self {
        let cells = &run.summary.cells;
        let conditions = ConditionLabels::new(
            cells.iter().map(Cell::conditions).chain(run.trials.iter().map(TrialRecord::conditions)),
        );
        let modes = Mode::ALL
            .into_iter()
            .filter(|mode| {
                cells.iter().any(|cell| cell.mode == *mode)
                    || run.trials.iter().any(|trial| trial.mode == *mode)
            })
            .collect();
        Self { run, conditions, modes }
    }

    /// The cells of these conditions, by mode.
    fn cells_of(&self, at: Conditions<'_>) -> Vec<&'a Cell> {
        let cells = self.run.summary.cells.iter();
        let mut cells: Vec<&Cell> = cells.filter(|cell| cell.conditions() == at).collect();
        cells.sort_by_key(|cell| cell.mode);
        cells
    }
}

impl LegendEntry {
    fn new(mode: Mode) -> Self {
        let meaning = match mode {
            Mode::None => "client and server talk directly: the floor",
            Mode::Gateway => "one proxy in a pod of its own",
            Mode::Sidecar => "a proxy in the client’s pod and one in the server’s",
            Mode::Ambient => "a node proxy (ztunnel) on both sides",
            Mode::AmbientWaypoint => "node proxies with a waypoint between them",
            Mode::Ingress => "into the mesh through an ingress gateway",
            Mode::EgressBypass => "out of the mesh, past the sidecar",
            Mode::EgressSidecar => "out of the mesh through the sidecar",
            Mode::EgressGateway => "out of the mesh through an egress gateway",
            Mode::EgressGatewayMtls => "through an egress gateway, mutual TLS up to it",
            Mode::EgressSni => "through an egress gateway with an SNI proxy",
        };
        let style = super::style::ModeStyle::of(mode);
        let mut drawing = crate::svg::Drawing::new(28.0, 12.0);
        drawing.line((0.0, 6.0), (28.0, 6.0), &format!("curve {}", style.class));
        drawing.marker(style.marker, (14.0, 6.0), 4.0, &format!("mark {}", style.class), "");
        Self { name: mode.name(), meaning, svg: drawing.finish_decoration("swatch") }
    }
}
