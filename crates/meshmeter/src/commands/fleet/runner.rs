//! Order of a run: check the API and istiod, write the mesh, connect the fleet, make and follow changes.
//! Whatever happens in between, what was written is removed at the end.

use super::asks::EnvironmentLink;
use super::changes::Changing;
use super::conclude;
use super::control_plane::{self, Api};
use super::identities;
use super::links;
use super::live::LiveFleet;
use super::metrics::{MetricsSampler, Phases};
use super::progress::{FleetReporter, Seconds};
use super::remove;
use super::run_id::random_id;
use super::state::{FleetRunner, POLL_INTERVAL};
use super::{show, write_json};
use crate::cli::FleetArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::other_programs::OtherPrograms;
use crate::output::tell;
use experiment::environment::error_chain;
use experiment::settings::fleet::FleetSettings;
use fleet::{Fleet, FleetSpec};
use load::Address;
use population::changes::Change;
use population::{Placement, Population};
use results::{FleetMesh, FleetProgress, FleetResult};
use std::net::ToSocketAddrs as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Timeout for a fleet that has received nothing.
const NOTHING_RECEIVED_TIMEOUT: Duration = Duration::from_secs(30);
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

pub fn run(args: &FleetArgs, settings: &FleetSettings, addresses: &[String]) -> Result<ExitCode, Failure> {
    let run_id = args.mesh.run_id.clone().map_or_else(random_id, Ok)?;
    let removal = remove::command(&run_id, args.control_plane.kubeconfig.as_deref());
    let is_written = Arc::new(AtomicBool::new(false));
    let last_words = {
        let (is_written, run_id, removal) = (Arc::clone(&is_written), run_id.clone(), removal.clone());
        move || {
            let is_written = is_written.load(Ordering::Relaxed);
            is_written.then(|| format!("the mesh of run {run_id} is left behind; remove it with: {removal}"))
        }
    };
    let stop = interrupt::on_signals_with_message(last_words)?;
    let link = EnvironmentLink::open(args.environment_answers)?;
    let api = Api::open(args.control_plane.kubeconfig.as_deref(), &stop)?;
    let targets = control_plane::targets(&args.control_plane, settings.security, addresses, &api.client)?;
    for target in &targets {
        control_plane::probe(target, PROBE_TIMEOUT)?;
    }
    let placement = Placement {
        run_id,
        has_controllers: population::has_controllers(&api.client)?,
        simulate_pods: args.mesh.simulate_pods,
    };
    let population = Population::new(settings, &placement)?;
    let runner = FleetRunner {
        args,
        settings,
        api,
        targets,
        link,
        reporter: FleetReporter::new(args.progress, LiveFleet::start(&args.export)?),
        seconds: Mutex::new(Seconds::new()),
        stop,
        is_written,
    };
    let measured = runner.measure(&population);
    runner.api.ignore_stop();
    let removed = runner.remove(&placement.run_id);
    let removed =
        removed.map_err(|failure| failure.with_hint(format!("remove what is left with: {removal}")));
    let exports = runner.reporter.finish(measured.as_ref().ok());
    let measured = measured.map(|result| FleetResult { exports, ..result });
    let result = match (measured, removed) {
        (Err(failure), Ok(_)) => return Err(failure),
        (Err(failure), Err(removal)) => return Err(failure.and(removal)),
        (Ok(result), Err(failure)) => {
            write_json(args, &result)?;
            return Err(failure);
        }
        (Ok(result), Ok(removed_s)) => conclude::with_removal(result, removed_s),
    };
    write_json(args, &result)?;
    if let Some(failure) = conclude::nothing_received(&result) {
        return Err(failure);
    }
    show(args, &result)
}

impl FleetRunner<'_> {
    /// Writes the mesh and connects the fleet to it.
    fn measure(&self, population: &Population) -> Result<FleetResult, Failure> {
        let started_at = jiff::Timestamp::now();
        let interrupted = |mesh| conclude::interrupted(self, &started_at.to_string(), mesh);
        let begun = Instant::now();
        let written = population.write(&self.api.client, &|written, of| {
            if written > 0 {
                self.is_written.store(true, Ordering::Relaxed);
            }
            self.reporter.report(&FleetProgress::Writing { written, of });
        });
        let mesh = match written {
            Ok(written) => FleetMesh {
                run_id: population.run_id().to_owned(),
                topology: self.settings.topology.as_ref().map(|topology| topology.name.clone()),
                objects: written.objects,
                written_s: begun.elapsed().as_secs_f64(),
                removed_s: None,
            },
            Err(_) if self.is_stopped() => return Ok(interrupted(None)),
            Err(error) => return Err(error.into()),
        };
        match self.hold(population) {
            Ok(result) => Ok(FleetResult { mesh: Some(mesh), ..result }),
            Err(_) if self.is_stopped() => Ok(interrupted(Some(mesh))),
            Err(failure) => Err(failure),
        }
    }

    /// Connects the fleet, makes the changes and reads the control plane's own metrics.
    fn hold(&self, population: &Population) -> Result<FleetResult, Failure> {
        let tokens = identities::tokens(self.settings, population, &self.api.client)?;
        let addresses: Vec<String> = self.targets.iter().map(|target| target.address.clone()).collect();
        let pages = control_plane::metrics_pages(&self.args.control_plane, &addresses, &self.api.client);
        let sampler = MetricsSampler::start(pages)?;
        let version = sampler.istiod_version();
        let identities = identities::Identities {
            population,
            tokens,
            on_demand: self.settings.on_demand,
            cluster_id: &self.args.control_plane.cluster_id,
            version,
        };
        let first = self.targets.first().expect("an address was given").clone();
        let spec = FleetSpec {
            targets: self.targets.clone(),
            spread: self.args.control_plane.spread,
            xds: self.settings.xds,
            threads: self.settings.threads,
            connect_rate: self.settings.connect_rate,
            source_addresses: links::source_addresses(self),
            ..FleetSpec::new(first, identities.proxies())
        };
        let mut others = OtherPrograms::new(self.args.progress);
        others.window_opened();
        self.reporter.report(&FleetProgress::WindowOpened);
        let fleet =
            Fleet::start(spec).map_err(|error| Failure::environment(&error).about("start the fleet"))?;
        let mut phases = Phases::default();
        let has_received = self.connect(&fleet);
        phases.connected = Some(sampler.totals());
        let changing = Changing::new(self, &fleet, population, &sampler);
        if has_received && !self.is_stopped() {
            changing.make_all();
            phases.changed = Some(sampler.totals());
        }
        if self.is_stopped() {
            fleet.interrupter().interrupt();
        }
        self.reporter.report(&FleetProgress::WindowClosed);
        others.window_closed();
        let changed = changing.finish();
        let figures = sampler.finish(&phases);
        let result = fleet.finish();
        if self.args.mesh.keep_mesh {
            self.restore_size(&changed.undo);
        }
        let mut result = conclude::measured(result, figures, changed);
        let istiods = self.targets.iter().filter_map(|target| target.address.to_socket_addrs().ok());
        let istiods: Vec<Address> = istiods.flatten().map(Address::from).collect();
        result.verdict.notes.extend(others.note(&istiods, None));
        Ok(result)
    }

    /// Restores a mesh that stays to its original size, so that another run with its name finds the objects
    /// it would write.
    fn restore_size(&self, undo: &[Change]) {
        let failed = undo.iter().find_map(|change| change.perform(&self.api.client).err());
        if let Some(error) = failed {
            tell!("note: the mesh has kept what was added to it: {}", error_chain(&error));
        }
    }

    /// Waits up to `settle` until every proxy has its configuration. Returns true if any proxy received
    /// something.
    fn connect(&self, fleet: &Fleet) -> bool {
        let begun = Instant::now();
        let deadline = begun + self.settings.settle;
        loop {
            let now = fleet.status();
            let (connected, complete, of) = (now.connected, now.complete, now.wanted);
            self.reporter.report(&FleetProgress::Connecting { connected, complete, of });
            self.tick(fleet);
            let is_hopeless = now.bytes == 0 && begun.elapsed() >= NOTHING_RECEIVED_TIMEOUT;
            if complete >= of || is_hopeless || self.is_stopped() || Instant::now() >= deadline {
                return now.bytes > 0;
            }
            fleet.wait_complete(deadline.min(Instant::now() + POLL_INTERVAL));
        }
    }

    /// Removes the mesh. Returns the seconds that this took; `None` if there was no mesh, or it is kept.
    fn remove(&self, run_id: &str) -> Result<Option<f64>, Failure> {
        if self.args.mesh.keep_mesh || !self.is_written.load(Ordering::Relaxed) {
            return Ok(None);
        }
        self.reporter.report(&FleetProgress::Removing);
        let begun = Instant::now();
        let removed = population::remove(&self.api.client, run_id, &|_| ())?;
        self.is_written.store(false, Ordering::Relaxed);
        for remains in &removed.remaining {
            tell!("note: left: {remains}");
        }
        Ok(Some(begun.elapsed().as_secs_f64()))
    }
}
