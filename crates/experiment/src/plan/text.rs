//! Output of `--dry-run`.

use super::Plan;
use crate::file::label::setting;
use crate::settings::fleet::FleetSettings;
use crate::topology::Topology;
use results::units::{format_duration, format_rate};
use results::{BACKGROUND_SERVICES, Conditions, LoadPoint};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of topologies listed with their sizes.
const MAX_TOPOLOGIES: usize = 20;

/// Value of a factor in a trial that it cannot touch.
const ANY_VALUE: &str = "any";

/// Output of `--dry-run`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let repeats = self.trials.last().map_or(0, |trial| trial.repeat + 1);
        writeln!(
            f,
            "{}: {} trials in {repeats} {}, about {}, seed {}",
            self.name,
            self.trials.len(),
            if repeats == 1 { "repeat" } else { "repeats" },
            rounded(self.estimated_time()),
            self.seed
        )?;
        if let Some(trial) = self.trials.first().filter(|trial| trial.fleet.is_none()) {
            writeln!(
                f,
                "each: {} warm-up, {} measured, {} {} on {} connections{}{}",
                format_duration(trial.warmup),
                format_duration(trial.duration),
                self.any_of(|load| load.protocol.clone()),
                self.responses(),
                self.any_of(|load| load.connections),
                self.requests_per_connection(),
                self.arrivals()
            )?;
        }
        if self.trials.iter().any(|trial| trial.fleet.is_some()) {
            self.write_fleets(f)?;
        } else {
            self.write_topologies(f)?;
        }
        self.write_components(f)?;
        if self.retakes > 0 {
            writeln!(
                f,
                "disturbed trials are rerun after their repeat: each at most {}, at most {} in all; the run then takes \
                 about {}",
                if self.retakes == 1 { "once".to_owned() } else { format!("{} times", self.retakes) },
                self.max_reruns(),
                rounded(self.longest_time())
            )?;
        }
        self.write_trials(f)
    }
}

impl Plan {
    /// Every distinct value of a load parameter, ascending: `4`, or `2, 4 or 8`.
    fn any_of<T: Ord + fmt::Display>(&self, value: impl Fn(&LoadPoint) -> T) -> String {
        listed(&self.trials.iter().map(|trial| value(&trial.load)).collect())
    }

    /// Sizes of the responses; of streams those of the prompts, and the numbers of tokens.
    fn responses(&self) -> String {
        let mut streams = self.trials.iter().filter_map(|trial| trial.load.stream.as_ref()).peekable();
        if streams.peek().is_none() {
            return format!("of {} bytes", self.any_of(|load| load.payload_bytes));
        }
        let (prompts, tokens): (BTreeSet<u64>, BTreeSet<usize>) =
            streams.map(|stream| (stream.prompt_bytes, stream.tokens)).unzip();
        let noun = if tokens.iter().eq([&1]) { "token" } else { "tokens" };
        format!("with {} {noun} for prompts of {} bytes", listed(&tokens), listed(&prompts))
    }

    /// After how many requests connections are replaced; empty if they stay open.
    fn requests_per_connection(&self) -> String {
        let each: BTreeSet<usize> =
            self.trials.iter().filter_map(|trial| trial.load.requests_per_connection).collect();
        match each.last() {
            None => String::new(),
            Some(1) => ", 1 request per connection".to_owned(),
            Some(_) => format!(", {} requests per connection", listed(&each)),
        }
    }

    /// Spacing of the requests; empty if all loads are closed loops, which send when a response has come.
    fn arrivals(&self) -> String {
        let open = self.trials.iter().map(|trial| &trial.load).filter(|load| load.clients.is_none());
        let distinct: BTreeSet<_> = open.map(|load| load.arrival.clone()).collect();
        if distinct.is_empty() { String::new() } else { format!(", {} arrivals", listed(&distinct)) }
    }

    /// Common and differing settings of the trials' fleets.
    fn write_fleets(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fleets: Vec<&FleetSettings> =
            self.trials.iter().filter_map(|trial| trial.fleet.as_deref()).collect();
        let number = |value: &dyn Fn(&FleetSettings) -> usize| {
            listed(&fleets.iter().map(|fleet| value(fleet)).collect())
        };
        let word = |value: &dyn Fn(&FleetSettings) -> String| {
            listed(&fleets.iter().map(|fleet| value(fleet)).collect())
        };
        writeln!(
            f,
            "fleet: {} proxies ({}) by {} xDS, {}",
            number(&|fleet| fleet.proxies),
            word(&|fleet| fleet.kinds.to_string()),
            word(&|fleet| fleet.xds.name().to_owned()),
            word(&|fleet| fleet.security.name().to_owned())
        )?;
        writeln!(
            f,
            "mesh: {} services, {} pods, {} objects in {} namespaces{}",
            number(&|fleet| fleet.services),
            number(&|fleet| fleet.pods),
            number(&FleetSettings::objects),
            number(&|fleet| fleet.namespaces),
            if fleets.iter().all(|fleet| fleet.scope) { ", scoped" } else { "" }
        )?;
        let changes = |fleet: &FleetSettings| {
            fleet.changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let window = fleets.iter().map(|fleet| fleet.window()).max().unwrap_or_default();
        writeln!(
            f,
            "changes: {}; churn {}; for {} at least",
            word(&changes),
            word(&|fleet| fleet.churn.to_string()),
            format_duration(window)
        )
    }

    /// Versions and programs named by the experiment; those that vary also have a column.
    fn write_components(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut named: Vec<(&str, Vec<String>)> = Vec::new();
        for components in self.trials.iter().map(|trial| &trial.spec.components) {
            let version = components.istio.iter().map(|version| ("istio", version.clone()));
            let programs = components.programs().map(|(key, path)| (key, path.display().to_string()));
            for (key, value) in version.chain(programs) {
                match named.iter_mut().find(|(name, _)| *name == key) {
                    Some((_, values)) if values.contains(&value) => {}
                    Some((_, values)) => values.push(value),
                    None => named.push((key, vec![value])),
                }
            }
        }
        if named.is_empty() {
            return Ok(());
        }
        let text = |(key, mut values): (&str, Vec<String>)| {
            values.sort();
            format!("{key} {}", values.join(" or "))
        };
        writeln!(f, "components: {}", named.into_iter().map(text).collect::<Vec<_>>().join("; "))
    }

    /// One line per topology with its size.
    fn write_topologies(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut topologies: Vec<&Arc<Topology>> = Vec::new();
        for trial in &self.trials {
            let one = &trial.spec.topology;
            let same = |other: &&Arc<Topology>| {
                Arc::ptr_eq(other, one) || other.name == one.name && other.size() == one.size()
            };
            if !topologies.iter().any(same) {
                topologies.push(&trial.spec.topology);
            }
        }
        topologies.sort_by_key(|topology| (topology.pods(), topology.calls.len()));
        for topology in topologies.iter().take(MAX_TOPOLOGIES) {
            writeln!(f, "topology {}: {}", topology.name, topology.size())?;
        }
        if topologies.len() > MAX_TOPOLOGIES {
            writeln!(f, "and {} more sizes of topology", topologies.len() - MAX_TOPOLOGIES)?;
        }
        Ok(())
    }

    /// One row per trial, with a column per factor, and the deployment if trials share one.
    fn write_trials(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: BTreeSet<&String> = self.trials.iter().flat_map(|trial| trial.factors.keys()).collect();
        let factors: Vec<(&String, usize)> = keys
            .into_iter()
            .map(|key| {
                let values = self.trials.iter().filter_map(|trial| trial.factors.get(key));
                let widest = values.map(|value| value.to_string().chars().count()).max().unwrap_or(0);
                (key, widest.max(key.chars().count()))
            })
            .collect();
        let shares = self.trials.windows(2).any(|pair| pair[0].deployment == pair[1].deployment);
        write!(f, "\n{:>5}  {:>6}  ", "trial", "repeat")?;
        if shares {
            write!(f, "{:>10}  ", "deployment")?;
        }
        write!(f, "{:<20}  ", "mode")?;
        for (key, width) in &factors {
            write!(f, "{key:<width$}  ")?;
        }
        writeln!(f, "load")?;
        for trial in &self.trials {
            write!(f, "{:>5}  {:>6}  ", trial.index + 1, trial.repeat + 1)?;
            if shares {
                write!(f, "{:>10}  ", trial.deployment + 1)?;
            }
            write!(f, "{:<20}  ", trial.mode())?;
            for (key, width) in &factors {
                match trial.factors.get(*key) {
                    Some(value) => write!(f, "{value:<width$}  ")?,
                    None => write!(f, "{ANY_VALUE:<width$}  ")?,
                }
            }
            writeln!(f, "{}", strength(&trial.load))?;
        }
        Ok(())
    }
}

/// Formats distinct values: `4`, or `2, 4 or 8`.
fn listed<T: fmt::Display>(distinct: &BTreeSet<T>) -> String {
    let texts: Vec<String> = distinct.iter().map(ToString::to_string).collect();
    match texts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => texts.concat(),
    }
}

/// Describes a load, such as `1000 requests/s` or `8 clients`; if mesh sizes are compared, such as `1000
/// requests/s among 200 background services`.
#[must_use]
pub fn offered(load: &LoadPoint) -> String {
    let offered = strength(load);
    match load.surrounding_services {
        None => offered,
        Some(0) => format!("{offered} among no background services"),
        Some(1) => format!("{offered} among 1 background service"),
        Some(services) => format!("{offered} among {services} background services"),
    }
}

/// Describes a cell's load and factors, such as `1000 requests/s, 2 workers`; background services as in [`offered`].
#[must_use]
pub fn described(conditions: Conditions<'_>) -> String {
    let others = conditions.factors.iter().filter(|(key, _)| *key != BACKGROUND_SERVICES);
    others.fold(offered(conditions.load), |text, (key, value)| format!("{text}, {}", setting(key, value)))
}

/// Like [`described`], as short as in a table: `1000/s, 2 workers`.
#[must_use]
pub fn brief(conditions: Conditions<'_>) -> String {
    described(conditions).replacen(" requests/s", "/s", 1)
}

fn strength(load: &LoadPoint) -> String {
    match (load.rate, load.clients) {
        (Some(rate), _) => format!("{} requests/s", format_rate(rate)),
        (None, Some(clients)) => {
            let what = if load.stream.is_some() { "stream" } else { "client" };
            format!("{clients} {what}{}", if clients == 1 { "" } else { "s" })
        }
        (None, None) if load.is_fleet() => "a fleet".into(),
        (None, None) => "no load".into(),
    }
}

/// Formats a duration rounded to seconds, or to minutes above ten minutes.
fn rounded(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().ceil() as u64;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        600..3600 => format!("{}m", seconds.div_ceil(60)),
        _ => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}
