//! Sorts cells into answers (mode, proxy, factors other than the size) and options (factors that are the size
//! of a proxy).

use super::SizedRun;
use super::settings::{experiment_of, joined};
use crate::retakes::fills_machine;
use crate::trials::{TrialsByCell, is_limited_by_generator, is_valid, shows_saturation};
use experiment::Experiment;
use results::{
    Cell, ComponentSummary, Estimate, FactorValue, Factors, LoadPoint, Metric, Mode, Role, SizeNote,
    SizeNoteKind, SizeQuestion, TrialRecord, factor_texts, with_factors,
};

/// Factors that determine the size of a proxy.
const SIZE_KEYS: [&str; 5] =
    ["gateway.cpu", "gateway.memory", "gateway.workers", "proxy.cpu", "proxy.workers"];
/// With more proxies than this, a mode's proxies are counted together.
const MAX_SEPARATE_PROXIES: usize = 6;
/// Fraction of the enforcement periods in which a proxy wanted to run. With fewer of them throttled, its CPU
/// limit does not bound its capacity.
const THROTTLED_SHARE: f64 = 0.1;

/// Cells of one answer.
pub(super) struct Group<'a> {
    pub mode: Mode,
    pub component: String,
    /// Number of proxies that make up one replica.
    pub proxies: usize,
    /// Values of the factors other than the size.
    pub factors: Factors,
    /// Sizes in ascending order.
    pub options: Vec<Sized<'a>>,
    /// True if requests of drivers become calls between several services.
    pub has_several_services: bool,
}

/// Cells of one size.
pub(super) struct Sized<'a> {
    pub run: usize,
    /// Further runs that measured the same size at other loads.
    pub further_runs: Vec<usize>,
    /// The experiment with the values of this size's factors.
    pub experiment: &'a Experiment,
    pub size: Factors,
    pub limits: Limits,
    /// Cells by rate or clients, ascending.
    pub cells: Vec<MeasuredCell<'a>>,
}

/// Limits of a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Limits {
    pub cpu_cores: Option<f64>,
    pub memory_bytes: Option<u64>,
    pub workers: usize,
}

/// A cell with what its trials show beyond the summary.
pub(super) struct MeasuredCell<'a> {
    pub cell: &'a Cell,
    pub trials: Vec<&'a TrialRecord>,
    /// True if the generator kept the rate down in a trial.
    pub limited_by_generator: bool,
    /// True if all CPUs of the machine were busy, on average over the valid trials.
    pub fills_machine: bool,
    pub usage: Option<Usage>,
}

/// What an answer's component used in a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    pub cpu_cores: Estimate,
    pub cpu_cores_per_1000_rps: Estimate,
    pub working_set_bytes: Option<Estimate>,
    /// Resident memory or the working set, whichever is larger.
    pub memory_bytes: Option<Estimate>,
    /// True if its CPU limit throttled it in at least a tenth of the periods, in most trials.
    pub throttled: bool,
}

impl Group<'_> {
    pub(super) fn heaviest_load(&self) -> &LoadPoint {
        let cells = self.options.iter().flat_map(|option| &option.cells);
        let heaviest = cells.max_by(|one, other| level(&one.cell.load).total_cmp(&level(&other.cell.load)));
        &heaviest.expect("a group has cells").cell.load
    }

    /// Description such as `gateway in mode ingress, ingress.scenario waf`.
    pub(super) fn place(&self) -> String {
        with_factors(format!("{} in mode {}", self.component, self.mode), &self.factors)
    }
}

impl Sized<'_> {
    /// Name such as `gateway.cpu 2`.
    pub(super) fn name(&self) -> String {
        let values = factor_texts(&self.size);
        if values.is_empty() { "the only size".to_owned() } else { values.join(", ") }
    }

    pub(super) fn is_closed_loop(&self) -> bool {
        self.cells.iter().all(|cell| cell.cell.load.rate.is_none())
    }
}

/// Requests per second or clients.
pub(super) fn level(load: &LoadPoint) -> f64 {
    load.level().unwrap_or(0.0)
}

/// The groups that a question is about, or why there are none.
pub(super) fn groups<'a>(question: &SizeQuestion, runs: &'a [SizedRun]) -> (Vec<Group<'a>>, Vec<SizeNote>) {
    let cells = || runs.iter().flat_map(|run| &run.summary.cells);
    let refused = |detail: String| (Vec::new(), vec![SizeNote::naming(SizeNoteKind::NotMeasured, detail)]);
    let with_proxies = || cells().filter(|cell| cell.mode.floor().is_some());
    if cells().all(|cell| cell.trials == 0) {
        return (Vec::new(), vec![SizeNote::naming(SizeNoteKind::NoValidTrial, "no trial was recorded")]);
    }
    if let Some(mode) = question.mode.filter(|mode| with_proxies().all(|cell| cell.mode != *mode)) {
        let modes = listed(with_proxies().map(|cell| cell.mode.name().to_owned()));
        return refused(format!("mode {mode}; modes with proxies: {modes}"));
    }
    let is_asked = |cell: &&'a Cell| question.mode.is_none_or(|mode| mode == cell.mode);
    let has_payload =
        |cell: &Cell| question.payload_bytes.is_none_or(|payload| payload == cell.load.payload_bytes);
    let asked: Vec<&Cell> = with_proxies().filter(is_asked).collect();
    if asked.is_empty() {
        return refused("proxies: the runs have no mode with any".to_owned());
    }
    // The rate is per driver, but responses and CPU are totals over all drivers.
    if let Some(several) = asked.iter().map(|cell| cell.drivers.len()).find(|drivers| *drivers > 1) {
        return refused(format!(
            "what one proxy carries: {several} drivers offered load at once (run it with one)"
        ));
    }
    if let Some(payload) = question.payload_bytes.filter(|_| !asked.iter().any(|cell| has_payload(cell))) {
        let payloads = listed(asked.iter().map(|cell| cell.load.payload_bytes.to_string()));
        return refused(format!("responses of {payload} bytes; measured: {payloads} bytes"));
    }
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let trials = TrialsByCell::new(&run.trials);
        let cells = run.summary.cells.iter().filter(|cell| cell.mode.floor().is_some() && !bypasses(cell));
        for cell in cells.filter(is_asked).filter(|cell| has_payload(cell)) {
            for component in components(question, run, cell) {
                add(&mut groups, (index, run), cell, &component, &trials);
            }
        }
    }
    if groups.is_empty() {
        let names = asked.iter().flat_map(|cell| proxies(cell)).map(|proxy| proxy.name.clone());
        let wanted = question.component.as_deref().unwrap_or("proxies");
        return refused(format!("component {wanted}; proxies: {}", listed(names)));
    }
    for group in &mut groups {
        group.options = joined(std::mem::take(&mut group.options));
    }
    for option in groups.iter_mut().flat_map(|group| &mut group.options) {
        option.cells.sort_by(|one, other| level(&one.cell.load).total_cmp(&level(&other.cell.load)));
    }
    for group in &mut groups {
        group.options.sort_by(|one, other| order(one).partial_cmp(&order(other)).expect("no NaN"));
    }
    (groups, Vec::new())
}

/// Sort key: sizes in ascending order.
fn order(option: &Sized<'_>) -> (f64, usize, u64, usize) {
    let Limits { cpu_cores, memory_bytes, workers } = option.limits;
    (cpu_cores.unwrap_or(f64::INFINITY), workers, memory_bytes.unwrap_or(u64::MAX), option.run)
}

fn listed(names: impl Iterator<Item = String>) -> String {
    let mut known: Vec<String> = Vec::new();
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
}

/// True if the cell's path bypasses the gateway.
fn bypasses(cell: &Cell) -> bool {
    cell.factors.get("ingress.scenario") == Some(&FactorValue::Text("direct".to_owned()))
}

fn proxies(cell: &Cell) -> impl Iterator<Item = &ComponentSummary> {
    cell.components.iter().filter(|component| component.role == Role::Proxy)
}

pub(super) fn is_gateway(name: &str) -> bool {
    name.ends_with("gateway")
}

/// A proxy, or all proxies of a cell together.
struct Component {
    name: String,
    proxies: usize,
    is_total: bool,
}

/// The components of a cell that are counted: the one in question, the gateways of a mode that has any, or
/// else every proxy.
fn components(question: &SizeQuestion, run: &SizedRun, cell: &Cell) -> Vec<Component> {
    let one = |name: &str| Component { name: name.to_owned(), proxies: 1, is_total: false };
    // A cell without a usable trial is taken to have the proxies of the mode's other cells.
    let has_own = proxies(cell).next().is_some();
    let of_mode = run.summary.cells.iter().filter(|other| other.mode == cell.mode);
    let cells: Vec<&Cell> = if has_own { vec![cell] } else { of_mode.collect() };
    let mut names: Vec<&str> = Vec::new();
    for proxy in cells.into_iter().flat_map(proxies) {
        if !names.contains(&proxy.name.as_str()) {
            names.push(&proxy.name);
        }
    }
    if let Some(wanted) = &question.component {
        return names.into_iter().filter(|name| name == wanted).map(one).collect();
    }
    let gateways: Vec<Component> =
        names.iter().filter(|name| is_gateway(name)).map(|name| one(name)).collect();
    match names.len() {
        _ if !gateways.is_empty() => gateways,
        0 => vec![one(if has_gateway(cell.mode) { "gateway" } else { "proxy" })],
        count if count > MAX_SEPARATE_PROXIES => {
            vec![Component { name: "all proxies".to_owned(), proxies: count, is_total: true }]
        }
        _ => names.into_iter().map(one).collect(),
    }
}

fn has_gateway(mode: Mode) -> bool {
    matches!(mode, Mode::Gateway | Mode::Ingress)
}

fn add<'a>(
    groups: &mut Vec<Group<'a>>,
    (index, run): (usize, &'a SizedRun),
    cell: &'a Cell,
    component: &Component,
    trials: &TrialsByCell<'a>,
) {
    let (mut size, mut factors) = (Factors::new(), Factors::new());
    for (key, value) in &cell.factors {
        let part = if SIZE_KEYS.contains(&key.as_str()) { &mut size } else { &mut factors };
        part.insert(key.clone(), value.clone());
    }
    let load = &cell.load;
    let is_same = |group: &Group<'_>| {
        let known = &group.options[0].cells[0].cell.load;
        (group.mode, &group.component, &group.factors) == (cell.mode, &component.name, &factors)
            && (&known.protocol, known.payload_bytes) == (&load.protocol, load.payload_bytes)
    };
    let is_same_size = |option: &Sized<'_>| (option.run, &option.size) == (index, &size);
    let measured = MeasuredCell::new(cell, component, trials);
    let group = match groups.iter().position(is_same) {
        Some(position) => &mut groups[position],
        None => {
            groups.push(Group {
                mode: cell.mode,
                component: component.name.clone(),
                proxies: component.proxies,
                factors,
                options: Vec::new(),
                has_several_services: cell.services.len() > 1,
            });
            groups.last_mut().expect("just added")
        }
    };
    match group.options.iter().position(is_same_size) {
        Some(position) => group.options[position].cells.push(measured),
        None => {
            let experiment = experiment_of(&run.experiment, cell);
            let limits = Limits::new(experiment, cell, component);
            let cells = vec![measured];
            group.options.push(Sized {
                run: index,
                further_runs: Vec::new(),
                experiment,
                size,
                limits,
                cells,
            });
        }
    }
}

impl Limits {
    fn new(experiment: &Experiment, cell: &Cell, component: &Component) -> Self {
        let proxy = &experiment.proxy;
        if has_gateway(cell.mode) && is_gateway(&component.name) {
            let limits = experiment.gateway.limits(proxy);
            return Self {
                cpu_cores: limits.cpu_limit_cores,
                memory_bytes: limits.memory_limit_bytes,
                workers: experiment.gateway.workers(proxy),
            };
        }
        let proxies = component.proxies;
        Self {
            cpu_cores: proxy.cpu_limit_cores.map(|cores| cores * proxies as f64),
            memory_bytes: None,
            workers: proxy.workers * proxies,
        }
    }
}

impl<'a> MeasuredCell<'a> {
    fn new(cell: &'a Cell, component: &Component, trials: &TrialsByCell<'a>) -> Self {
        let trials = trials.of(cell.key()).to_vec();
        let valid = || trials.iter().filter(|trial| is_valid(trial) || shows_saturation(&trial.verdict));
        let is_throttled = |trial: &&&TrialRecord| {
            let own = |name: &str| component.is_total || name == component.name;
            let of_role =
                trial.components.iter().filter(|usage| usage.role == Role::Proxy && own(&usage.name));
            let mut throttling = of_role.filter_map(|usage| usage.throttling);
            throttling.any(|throttling| {
                let wanted = throttling.of_periods.unwrap_or(throttling.periods) as f64;
                throttling.periods > 0 && throttling.periods as f64 >= THROTTLED_SHARE * wanted
            })
        };
        let throttled = valid().filter(is_throttled).count() * 2 > valid().count();
        Self {
            cell,
            limited_by_generator: trials.iter().any(|trial| is_limited_by_generator(trial)),
            fills_machine: fills_machine(valid().copied()),
            usage: Usage::new(cell, component, throttled),
            trials,
        }
    }
}

impl Usage {
    fn new(cell: &Cell, component: &Component, throttled: bool) -> Option<Self> {
        if component.is_total {
            let total = cell.total(Role::Proxy)?;
            return Some(Self {
                cpu_cores: total.cpu_cores,
                cpu_cores_per_1000_rps: total.cpu_cores_per_1000_rps,
                working_set_bytes: total.memory_working_set_bytes,
                memory_bytes: total.memory_bytes,
                throttled,
            });
        }
        let used = proxies(cell).find(|proxy| proxy.name == component.name)?;
        Some(Self {
            cpu_cores: used.cpu_cores,
            cpu_cores_per_1000_rps: used.cpu_cores_per_1000_rps,
            working_set_bytes: used.estimate(Metric::MemoryWorkingSetBytes),
            memory_bytes: used.estimate(Metric::MemoryBytes),
            throttled,
        })
    }
}
