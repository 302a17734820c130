//! Simulated runs of a small mesh whose proxies follow a known law, at any scale.

use crate::generated_run::{normal, run_of};
use crate::generated_trial::{proxy, record, times};
use experiment::topology::Topology;
use experiment::topology::file::read;
use experiment::{Experiment, Plan, PlannedTrial};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use results::{ComponentUsage, DriverRecord, EdgeRecord, LoadResult, Mode, Rates, TrialRecord, Verdict};
use statistics::size::MeasuredRun;
use statistics::size::price::FullScale;

/// Requests per second of each driver at full scale.
pub const RATE: f64 = 300.0;
/// Nodes at full scale.
pub const NODES: usize = 3;

/// Memory of a sidecar per pod in the mesh, bytes.
const PER_POD: f64 = 30_000.0;

/// A workload: qualified name, pods at full scale, and requests that pass its sidecars, and that its waypoint sees, per request of
/// each of the two drivers.
struct Member {
    name: &'static str,
    pods: usize,
    passing: f64,
    arriving: f64,
}

/// `one` sends to web, which calls cart twice and pay every other time; cart calls stock; `two` sends to cart.
const MEMBERS: [Member; 6] = [
    Member { name: "shop/client", pods: 1, passing: 2.0, arriving: 0.0 },
    Member { name: "shop/web", pods: 10, passing: 3.5, arriving: 1.0 },
    Member { name: "shop/cart", pods: 16, passing: 6.0, arriving: 3.0 },
    Member { name: "stores/stock", pods: 7, passing: 3.0, arriving: 3.0 },
    Member { name: "stores/pay", pods: 2, passing: 0.5, arriving: 0.5 },
    Member { name: "stores/idle", pods: 4, passing: 0.0, arriving: 0.0 },
];

fn pods_at(member: &Member, scale: f64) -> usize {
    ((member.pods as f64 * scale).round() as usize).max(1)
}

/// The hidden law of a mesh, and its noise.
#[derive(Clone, Debug)]
pub struct Mesh {
    pub repeats: usize,
    /// Standard deviation of the logarithm between trials, between proxies, and of the effect that all trials of a repeat share.
    pub between: f64,
    pub proxies: f64,
    pub repeat: f64,
    /// Standard deviation of the logarithm of the cost per request between workloads.
    pub workloads: f64,
    /// Trials have the sidecars of the workload without requests.
    pub has_idle: bool,
    /// Values of `istio.sidecar-scope`. Scoped sidecars take a tenth less CPU, and memory that does not grow with the mesh.
    pub scope: &'static str,
}

impl Default for Mesh {
    fn default() -> Self {
        Self {
            repeats: 5,
            between: 0.05,
            proxies: 0.03,
            repeat: 0.02,
            workloads: 0.3,
            has_idle: true,
            scope: "off",
        }
    }
}

/// Cores and bytes of the proxies of a workload, of nodes or of a namespace, together.
type Usage = (f64, f64);

impl Mesh {
    fn per_request(&self, seed: u64) -> Vec<f64> {
        let mut random = StdRng::seed_from_u64(seed);
        MEMBERS.iter().map(|_| 0.0004 * (self.workloads * normal(&mut random)).exp()).collect()
    }

    /// Proxies of a mode without noise: names with their usage each.
    fn proxies(&self, mode: Mode, scale: f64, nodes: usize, seed: u64) -> Vec<(String, Usage)> {
        let pods_in_mesh: usize = MEMBERS.iter().map(|member| pods_at(member, scale)).sum();
        let (pods_in_mesh, rate) = (pods_in_mesh as f64, RATE * scale);
        let mut all = Vec::new();
        if mode == Mode::Sidecar {
            for (member, per_request) in MEMBERS.iter().zip(self.per_request(seed)) {
                let pods = pods_at(member, scale);
                let cores = 0.003 + per_request * member.passing * rate / pods as f64;
                let bytes = 40e6 + PER_POD * pods_in_mesh + 1e5 * member.pods as f64;
                let name = |number: usize| {
                    if pods == 1 { member.name.to_owned() } else { format!("{}-{number}", member.name) }
                };
                all.extend((1..=pods).map(|number| (format!("{}-proxy", name(number)), (cores, bytes))));
            }
        }
        if mode.is_ambient() {
            let passing: f64 = MEMBERS.iter().map(|member| member.passing).sum();
            let cores = 0.01 + 0.0001 * passing * rate / nodes as f64;
            all.extend((0..nodes).map(|_| ("ztunnel".to_owned(), (cores, 8e6 + 50_000.0 * pods_in_mesh))));
        }
        if mode == Mode::AmbientWaypoint {
            for namespace in ["shop", "stores"] {
                let own = MEMBERS.iter().filter(|member| member.name.starts_with(namespace));
                let arriving: f64 = own.map(|member| member.arriving).sum();
                let cores = 0.004 + 0.0003 * arriving * rate;
                all.push((format!("{namespace}/waypoint"), (cores, 50e6 + 20_000.0 * pods_in_mesh)));
            }
        }
        all
    }

    fn scoped(&self, (cores, bytes): Usage, scale: f64) -> Usage {
        let pods_in_mesh: usize = MEMBERS.iter().map(|member| pods_at(member, scale)).sum();
        (0.9 * cores, bytes - PER_POD * pods_in_mesh as f64)
    }

    /// True cores and bytes of all proxies of a mode at full scale, and their number.
    pub fn truth(&self, mode: Mode, seed: u64) -> (f64, f64, u64) {
        let all = self.proxies(mode, 1.0, NODES, seed);
        let sum = |read: fn(&Usage) -> f64| all.iter().map(|(_, usage)| read(usage)).sum();
        (sum(|usage| usage.0), sum(|usage| usage.1), all.len() as u64)
    }

    /// A run at a scale, with drivers at this rate.
    pub fn run(&self, scale: f64, seed: u64) -> MeasuredRun {
        let experiment = self.experiment(scale);
        let mut random = StdRng::seed_from_u64(seed.wrapping_mul(1000) + (scale * 100.0) as u64);
        let repeats: Vec<f64> = (0..self.repeats).map(|_| self.repeat * normal(&mut random)).collect();
        let plan = Plan::new(&experiment, seed);
        let trials = plan.trials.iter().map(|planned| {
            let noise = (repeats[planned.repeat] + self.between * normal(&mut random)).exp();
            self.trial(planned, scale, noise, seed, &mut random)
        });
        let trials = trials.collect();
        MeasuredRun { directory: format!("run-{scale}"), ..run_of(&experiment, trials) }
    }

    fn trial(
        &self,
        planned: &PlannedTrial,
        scale: f64,
        noise: f64,
        seed: u64,
        random: &mut StdRng,
    ) -> TrialRecord {
        let mode = planned.mode();
        let components: Vec<ComponentUsage> = self
            .proxies(mode, scale, 1, seed)
            .into_iter()
            .filter(|(name, _)| self.has_idle || !name.contains("idle"))
            .map(|(name, usage)| match planned.spec.istio.sidecar_scope && name.ends_with("-proxy") {
                true => (name, self.scoped(usage, scale)),
                false => (name, usage),
            })
            .map(|(name, (cores, bytes))| {
                let own = (self.proxies * normal(random)).exp();
                let memory_noise = (0.2 * self.proxies * normal(random)).exp();
                ComponentUsage {
                    memory_working_set_bytes: Some((bytes * memory_noise) as u64),
                    ..proxy(&name, cores * noise * own)
                }
            })
            .collect();
        let added = if mode == Mode::None { 0.0 } else { 400.0 };
        let rate = RATE * scale;
        let rates = Rates { offered: Some(rate), sent: rate, completed: rate };
        let percentiles = [1000.0 + added, 2000.0 + added, 3000.0 + 2.0 * added].map(|us| us * noise);
        let whole = record(planned, &Verdict::usable(), times(percentiles, rate * 10.0), rates, components);
        let driver = |name: &str, target: &str| DriverRecord {
            name: name.to_owned(),
            target: target.to_owned(),
            result: whole.result.clone().map(|result| LoadResult { rate: rates, ..result }),
            verdict: Verdict::usable(),
            ..DriverRecord::default()
        };
        let drivers = vec![driver("one", "shop/web"), driver("two", "shop/cart")];
        let edge = |from: &str, to: &str, requests: f64| EdgeRecord {
            from: from.to_owned(),
            to: to.to_owned(),
            response_time_us: Some(times([500.0 + 0.75 * added; 3], rate * requests * 10.0)),
            ..EdgeRecord::default()
        };
        // The last one is called too rarely for a percentile.
        let edges = vec![
            edge("shop/web", "shop/cart", 2.0),
            edge("shop/cart", "stores/stock", 3.0),
            edge("shop/web", "stores/pay", 0.005),
        ];
        TrialRecord { drivers, edges, ..whole }
    }

    fn experiment(&self, scale: f64) -> Experiment {
        let text = format!(
            "{{name: t, mesh: istio, modes: [none, sidecar, ambient, ambient-waypoint], load: {{rate: {}, duration: 10s}}, \
             repeats: {}, istio: {{sidecar-scope: {}}}, topology: {}}}",
            RATE * scale,
            self.repeats,
            self.scope,
            topology_text(scale)
        );
        Experiment::parse(&text, "test").expect("a good experiment")
    }
}

fn topology_text(scale: f64) -> String {
    let pods = |index: usize| pods_at(&MEMBERS[index], scale);
    format!(
        "{{name: mesh, services: [{{name: web, namespace: shop, replicas: {}, script: [{{call: cart}}, {{call: cart}}, \
         {{call: {{service: stores/pay, probability: 50%}}}}]}}, \
         {{name: cart, namespace: shop, replicas: {}, script: [{{call: stores/stock}}]}}, \
         {{name: stock, namespace: stores, replicas: {}}}, {{name: pay, namespace: stores, replicas: {}}}, \
         {{name: idle, namespace: stores, replicas: {}}}], clients: [{{name: client, namespace: shop}}], \
         drivers: [{{name: one, in: shop/client, target: shop/web}}, {{name: two, in: shop/client, target: shop/cart}}]}}",
        pods(1),
        pods(2),
        pods(3),
        pods(4),
        pods(5)
    )
}

fn topology(scale: f64) -> Topology {
    read(&topology_text(scale), "mesh").expect("a good topology")
}

/// The mesh at full scale.
pub fn full() -> FullScale {
    let rates = [("one".to_owned(), RATE), ("two".to_owned(), RATE)].into();
    FullScale { topology: topology(1.0), rates, is_learned: true, ..FullScale::default() }
}
