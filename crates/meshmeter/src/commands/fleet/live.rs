//! Live metrics of a fleet.

use super::run_id::random_id;
use crate::cli::ExportArgs;
use crate::commands::metric_labels;
use crate::failure::Failure;
use crate::output::tell;
use export::{Exporter, Families, FleetFigures, Labels, Settings, add_fleet_result};
use results::{ExportRecord, FleetProgress, FleetResult};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Sends the fleet's figures until [`Self::finish`].
pub(super) struct LiveFleet {
    state: Mutex<State>,
    interval: Duration,
}

struct State {
    exporter: Exporter,
    figures: FleetFigures,
    published_at: Instant,
}

impl LiveFleet {
    /// Starts to send, from the network of the calling thread. `None` if no export is requested.
    pub fn start(args: &ExportArgs) -> Result<Option<Self>, Failure> {
        if !args.is_asked_for() {
            return Ok(None);
        }
        let destinations = args.destinations().map_err(Failure::usage)?;
        let labels = metric_labels::of_process(&random_id()?, &args.label);
        let exporter = Exporter::start(Settings { destinations, labels }, |text| tell!("{text}"))
            .map_err(|error| Failure::environment(&error).about("start to send metrics"))?;
        let state = State { exporter, figures: FleetFigures::starting_now(), published_at: Instant::now() };
        Ok(Some(Self { state: Mutex::new(state), interval: args.export_interval }))
    }

    pub fn add(&self, progress: &FleetProgress) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = state.figures.add(progress);
        // The fleet's seconds are not exactly wall-clock seconds.
        let is_second = matches!(progress, FleetProgress::Second(_));
        let slack = Duration::from_millis(500);
        if is_news && (!is_second || state.published_at.elapsed() + slack >= self.interval) {
            state.publish(None);
        }
    }

    /// Sends the result and ends all series, with a timeout.
    pub fn finish(self, result: Option<&FleetResult>) -> Vec<ExportRecord> {
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.publish(result);
        state.exporter.finish()
    }
}

impl State {
    fn publish(&mut self, result: Option<&FleetResult>) {
        let mut families = Families::default();
        let labels = Labels::new();
        self.figures.add_to(&mut families, &labels);
        if let Some(result) = result {
            add_fleet_result(result, &mut families, &labels);
        }
        self.exporter.publish(families);
        self.published_at = Instant::now();
    }
}
