//! Brings up a deployment phase by phase, in every mode: pods, services, proxies and objects. Everything that
//! a mode adds is in its [`Part`]s. Each phase starts everything before it waits for anything.

use super::driver::Drivers;
use super::rules::Rules;
use super::{LabDeployment, Trial};
use crate::Result;
use crate::local_lab::LocalLab;
use crate::rollout::Rollout;
use crate::rollout::filters::Filters;
use crate::rollout::part::Part;
use crate::rollout::station::{Destination, Stations};
use crate::running::Proxy;
use crate::{dataplane, entry, exit};
use experiment::dataplane::{DataPlane, ModeParts};
use experiment::environment::{DeploymentSpec, EnvironmentError, ErrorContext};
use experiment::topology::DriverPlacement;
use mesh::dataplane::with_subject;
use mesh::istio::nack::with_objects_behind;
use mesh::istio::propagation::{Awaited, Expected, wait_until_propagated};
use mesh::istio::xds_status::wait_until_acknowledged;
use mesh::kubernetes::admission::name_admission_objects;
use mesh::spans::tracing::Tracing;
use mesh::trial::course::Course;
use mesh::trial::gateways::gateways;
use mesh::trial::place::{Edge, ProxyId, Station};
use results::{ConfigurationPush, Mode};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// A proxy takes about a second to become ready, longer on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Brings up a deployment and waits until everything serves. On an error, whatever has started is dropped and
/// thereby taken down.
pub(crate) fn deploy<'lab>(
    lab: &'lab LocalLab,
    spec: &DeploymentSpec,
    log_dir: &Path,
) -> Result<LabDeployment<'lab>> {
    let deployed = roll_out(lab, spec, log_dir);
    let extra = spec.istio.extra.as_ref();
    deployed.map_err(|error| name_admission_objects(with_objects_behind(error, extra), extra))
}

fn roll_out<'lab>(lab: &'lab LocalLab, spec: &DeploymentSpec, log_dir: &Path) -> Result<LabDeployment<'lab>> {
    let ModeParts { data_plane, entry, exit } = spec.parts();
    exit::check_databases(spec)?;
    let programs = lab.programs_for(&spec.components)?;
    let mut parts: Vec<Box<dyn Part + '_>> =
        vec![entry::part(entry, &programs)?, dataplane::part(data_plane, &programs)?, exit::part(exit)];
    let member = dataplane::membership(data_plane);
    let mut rollout = Rollout::begin(lab, &programs, spec, log_dir, member)?;
    rollout.filters = Filters::start(&mut rollout, lab)?;
    // Without proxies nothing waits for the settings, and they are written with the Services.
    let settings_come_first = rollout.mesh.is_some() && data_plane != DataPlane::None;
    if settings_come_first {
        rollout.write_settings()?;
    }
    for part in &mut parts {
        part.start(&mut rollout)?;
    }
    wait_until_ready(&rollout)?;
    for part in &mut parts {
        part.proxies_are_ready(&mut rollout)?;
    }
    let mut push = None;
    if rollout.mesh.is_some() {
        let mut objects = rollout.service_objects();
        if !settings_come_first {
            objects.extend(rollout.settings_objects());
        }
        objects.extend(parts.iter().flat_map(|part| part.objects(&rollout)));
        push = Some(write(&mut rollout, &objects)?).filter(|_| !rollout.proxies.is_empty());
    }
    dataplane::none::route_services(&mut rollout)?;
    if let Some((push, written_at)) = &mut push {
        let expected = parts.iter().flat_map(|part| part.expected(&rollout)).collect();
        push.in_force_s = wait_until_configured(&rollout, expected, *written_at)?;
    }
    rollout.start_held_services()?;
    rollout.pods.wait_for_services()?;
    wait_until_domains_are_served(&rollout, push.as_mut())?;
    let destinations = rollout.topology().drivers.iter();
    let destinations =
        destinations.map(|driver| destination(&rollout, &parts, driver)).collect::<Result<_, _>>()?;
    let edges = edges(&rollout, &parts);
    let first = rollout.domains.first_key_value().filter(|_| rollout.mesh.is_some());
    let further_domain = first.map(|(target, domains)| {
        with_subject(&rollout, *target, |subject| domains.estate(&rollout, subject).further())
    });
    let Rollout { pods, proxies, mesh, filters, domains, directories: _directories, .. } = rollout;
    let tracing = mesh.as_ref().and_then(|mesh| {
        let fraction = spec.istio.tracing_fraction?;
        Some(Tracing { fraction, collector: mesh.control_plane.trace_collector()? })
    });
    let mut supporting = mesh.as_ref().map(|mesh| mesh.control_plane.supporting()).unwrap_or_default();
    supporting.extend(filters.iter().flat_map(|filters| filters.supporting.iter().cloned()));
    let setup = mesh.as_ref().map(|mesh| mesh.control_plane.plan().proxies);
    let setup = setup.filter(|_| spec.parts().has_envoy() || spec.mode == Mode::ControlPlane);
    let of_workloads: BTreeSet<&str> = pods.of_workloads().map(|running| running.pod.name()).collect();
    Ok(LabDeployment {
        rules: Rules::from_pods(pods.all()),
        order: super::order(proxies.len(), &edges),
        gateways: gateways(&edges, &spec.topology, |id| !of_workloads.contains(proxies[id].pod.as_str())),
        pods,
        proxies,
        edges,
        destinations,
        supporting,
        tracing,
        push: push.map(|(push, _)| push),
        further_domain,
        setup,
        filters,
        domains: domains.into_values().collect(),
        _directories,
        namespaces: mesh.map(|mesh| mesh.namespaces),
        lab,
        spec: spec.clone(),
        drivers: Drivers::default(),
        next_polled: 0,
        course: Course::default(),
        trial: Trial { log_dir: log_dir.to_path_buf(), ..Trial::default() },
    })
}

fn wait_until_ready(rollout: &Rollout<'_>) -> Result<()> {
    let give_up_at = Instant::now() + READY_TIMEOUT;
    let mut waiting: Vec<&Proxy> = rollout.proxies.iter().collect();
    loop {
        let look = Instant::now();
        let mut still_waiting = Vec::new();
        for proxy in waiting {
            rollout.check_goes_on()?;
            proxy.check(&format!("start {}", proxy.name))?;
            let ready = proxy.counters.is_ready().context(format!("wait until {} is ready", proxy.name))?;
            if ready { proxy.watch_envoy()? } else { still_waiting.push(proxy) }
        }
        waiting = still_waiting;
        let Some(first) = waiting.first() else { return Ok(()) };
        if Instant::now() >= give_up_at {
            let waited = format!("timed out after {:.1} s", READY_TIMEOUT.as_secs_f64());
            return Err(EnvironmentError::new(format!("wait until {} is ready", first.name), waited));
        }
        thread::sleep(POLL_INTERVAL.max(look.elapsed()));
    }
}

/// Waits until all gateways serve their domains, and adds to the push when each did. All have their
/// configuration already: they proceed in parallel while this waits for one of them.
fn wait_until_domains_are_served(
    rollout: &Rollout<'_>,
    mut push: Option<&mut (ConfigurationPush, Instant)>,
) -> Result<()> {
    for domains in rollout.domains.values() {
        domains.wait_until_served(|| rollout.check_goes_on())?;
        domains.check_others_are_refused()?;
        if let Some((push, written_at)) = push.as_deref_mut() {
            push.in_force_s.insert(domains.gateway.clone(), written_at.elapsed().as_secs_f64());
        }
    }
    Ok(())
}

/// Writes objects while the proxies are connected, and makes the names of Services among them resolve. Returns
/// the push and the time of the API's response to the last object.
fn write(rollout: &mut Rollout<'_>, objects: &[Value]) -> Result<(ConfigurationPush, Instant)> {
    let begun_at = Instant::now();
    let made = rollout.mesh_mut().namespaces.objects.apply(objects)?;
    let written_at = Instant::now();
    rollout.resolve_services(&made)?;
    let written_s = (written_at - begun_at).as_secs_f64();
    Ok((ConfigurationPush { objects: objects.len(), written_s, in_force_s: BTreeMap::new() }, written_at))
}

/// Waits until every proxy shows its expected configuration and has acknowledged everything that istiod sent.
/// This includes the experiment's own objects. Returns the seconds until each proxy showed its expected
/// configuration.
fn wait_until_configured(
    rollout: &Rollout<'_>,
    expected: Vec<(ProxyId, Vec<Expected>)>,
    written_at: Instant,
) -> Result<BTreeMap<String, f64>> {
    let proxies: Vec<&Proxy> = expected.iter().map(|(id, _)| &rollout.proxies[*id]).collect();
    let check = || {
        rollout.check_goes_on()?;
        proxies
            .iter()
            .try_for_each(|proxy| proxy.check(&format!("wait until {} has its configuration", proxy.name)))
    };
    let awaited = expected.into_iter().filter_map(|(id, expected)| {
        let proxy = &rollout.proxies[id];
        Some(Awaited::new(&proxy.name, proxy.counters.admin()?, expected))
    });
    let propagated = wait_until_propagated(awaited.collect(), written_at, check)?;
    // A ztunnel shows all of its configuration; istiod does not track what it has acknowledged.
    let known = proxies.iter().filter_map(|proxy| Some((proxy.name.as_str(), proxy.known_as.as_deref()?)));
    let known: Vec<(&str, &str)> = known.collect();
    wait_until_acknowledged(&rollout.mesh().control_plane.istiod(), &known, check)?;
    Ok(propagated)
}

/// URL that a driver requests, with the headers that the mesh requires.
fn destination(
    rollout: &Rollout<'_>,
    parts: &[Box<dyn Part + '_>],
    driver: &DriverPlacement,
) -> Result<Destination> {
    let own = match rollout.domains.get(&driver.target) {
        Some(domains) => Some(domains.destination(rollout, driver)),
        None => parts.iter().find_map(|part| part.destination(rollout, driver)),
    };
    let mut destination = own.unwrap_or_else(|| Destination {
        url: rollout.url(driver, &rollout.authority_of(driver.target), false),
        arguments: Vec::new(),
    });
    for header in rollout.request_headers()? {
        destination.arguments.extend(["--header".to_owned(), header]);
    }
    Ok(destination)
}

fn edges(rollout: &Rollout<'_>, parts: &[Box<dyn Part + '_>]) -> Vec<Edge> {
    let edges = rollout.calls.iter().map(|&call| {
        let mut stations: Vec<Station> = Vec::new();
        let mut at_callee: Vec<Station> = Vec::new();
        for part in parts {
            let Stations { at_caller, at_callee: mut behind } = part.stations(rollout, call);
            stations.extend(at_caller);
            behind.append(&mut at_callee);
            at_callee = behind;
        }
        stations.extend(at_callee);
        Edge::new(rollout.topology(), call, stations)
    });
    edges.collect()
}
