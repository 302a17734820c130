//! `meshmeter price`: what all proxies of a topology take and cost in every measured mode, from the directories of runs.

use super::learn::provenance_beside;
use super::report::{Files, terminal_options};
use super::size::{measured, prices, status};
use super::topology;
use crate::cli::PriceArgs;
use crate::failure::Failure;
use crate::output;
use experiment::topology::{Resources, Topology};
use learn::{Provenance, ServiceRecord};
use report::price::fill_price;
use report::terminal::price_text;
use results::FactorValue;
use results::units::{parse_cores, parse_size, shortened};
use statistics::size::price::{FullScale, PriceQuestion, Waypoints, WhatIf, price};
use std::path::Path;
use std::process::ExitCode;

pub fn run(args: &PriceArgs) -> Result<ExitCode, Failure> {
    let question = PriceQuestion {
        full: args.topology.as_ref().map(|source| full_scale(source, args.rate)).transpose()?,
        modes: args.mode.clone(),
        nodes: args.nodes.map(|nodes| nodes as usize),
        prices: prices(&args.prices)?,
        what_if: what_if(&args.set)?,
    };
    let runs = args.runs.iter().map(|directory| measured(directory)).collect::<Result<Vec<_>, _>>()?;
    let mut result = price(&question, &runs);
    fill_price(&mut result);
    let mut files = Files::default();
    files.write("page", args.files.output.as_deref(), || report::html::render_price(&result))?;
    files.write("Markdown", args.files.markdown.as_deref(), || report::markdown::render_price(&result))?;
    files
        .print(|| if args.json { output::json(&result) } else { price_text(&result, terminal_options()) })?;
    Ok(status(!result.modes.is_empty(), result.refusals.iter().map(|refusal| &refusal.text)))
}

/// Settings of `--set`.
fn what_if(settings: &[String]) -> Result<Option<WhatIf>, Failure> {
    if settings.is_empty() {
        return Ok(None);
    }
    let mut all = WhatIf::default();
    for setting in settings {
        let refused = |reason: String| Failure::usage(format!("--set {}: {reason}", shortened(setting)));
        let Some((key, value)) =
            setting.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty())
        else {
            return Err(refused("expected KEY=VALUE".to_owned()));
        };
        match key {
            "sidecar.cpu-request" => {
                let cores = parse_cores(value).map_err(|error| refused(error.to_string()))?;
                all.sidecar_requests.cpu_request_cores = Some(cores);
            }
            "sidecar.memory-request" => {
                let bytes = parse_size(value).map_err(|error| refused(error.to_string()))?;
                all.sidecar_requests.memory_request_bytes = Some(bytes);
            }
            "waypoints" => all.waypoints = Some(waypoints(value).map_err(refused)?),
            factor => drop(all.factors.insert(factor.to_owned(), FactorValue::from_typed(value))),
        }
    }
    Ok(Some(all))
}

fn waypoints(value: &str) -> Result<Waypoints, String> {
    match value {
        "namespace" => Ok(Waypoints::PerNamespace),
        "service" => Ok(Waypoints::PerService),
        list => {
            let names = list.strip_prefix('[').and_then(|list| list.strip_suffix(']'));
            let names =
                names.ok_or("expected `namespace`, `service` or a list of namespaces, [shop,stores]")?;
            Ok(Waypoints::Namespaces(names.split(',').map(|name| name.trim().to_owned()).collect()))
        }
    }
}

/// The topology at full scale, with rates from its provenance unless one is given.
fn full_scale(source: &str, rate: Option<f64>) -> Result<FullScale, Failure> {
    let topology = topology::named("--topology", source)?;
    let provenance = provenance_beside(Path::new(source))?;
    match (rate, provenance) {
        (Some(rate), provenance) => {
            let rates = topology.drivers.iter().map(|driver| (driver.name.clone(), rate)).collect();
            Ok(FullScale { rates, ..learned(topology, provenance.as_ref()) })
        }
        (None, Some(provenance)) if provenance.scale < 1.0 => {
            Err(Failure::usage(format!("`{source}` was learned at scale {}, not at full scale", provenance.scale))
                .with_hint("`meshmeter learn` without --scale writes the topology at full scale"))
        }
        (None, Some(provenance)) => {
            let rates = provenance.drivers.iter().map(|driver| (driver.name.clone(), driver.rate)).collect();
            Ok(FullScale { rates, is_learned: true, ..learned(topology, Some(&provenance)) })
        }
        (None, None) => Err(Failure::usage(format!("the rates of the drivers of `{source}` are not known"))
            .with_hint("`--rate 100rps` gives each driver a rate; `meshmeter learn --out FILE` leaves rates beside a topology")),
    }
}

/// A topology with what the telemetry and objects have of its sidecars.
fn learned(topology: Topology, provenance: Option<&Provenance>) -> FullScale {
    let services = provenance.map_or(&[][..], |provenance| provenance.services.as_slice());
    let requests = |service: &ServiceRecord| {
        let figure = |name: &str| Some(service.figures.get(name)?.value);
        let requests = Resources {
            cpu_request_cores: figure(learn::SIDECAR_CPU_REQUEST),
            memory_request_bytes: figure(learn::SIDECAR_MEMORY_REQUEST).map(|bytes| bytes as u64),
            ..Resources::default()
        };
        (requests != Resources::default()).then(|| (service.name.clone(), requests))
    };
    let sidecars = provenance.and_then(|provenance| provenance.sidecars.as_ref());
    FullScale {
        topology,
        sidecar_requests: services.iter().filter_map(requests).collect(),
        sidecar_cpu_cores: sidecars.and_then(|own| Some(own.cpu_cores.as_ref()?.value)),
        sidecar_memory_bytes: sidecars.and_then(|own| Some(own.memory_bytes.as_ref()?.value)),
        ..FullScale::default()
    }
}
