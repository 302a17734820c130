//! A trial of `emojivoto` in memory, with one proxy in front of everything.

use super::course::{Course, KeepsCourse};
use super::place::{Edge, Pace, Place, ProxyId, Readings, RunningProxy, Station};
use crate::admin::error::{AdminCause, AdminError};
use crate::config_dump::DumpCopy;
use crate::proof::{CallCounters, CountedService, Evidence, Seen, StreamCounters};
use crate::proxy::CounterSource;
use crate::service::{CallReading, ServiceReading};
use experiment::environment::deploy::TrialEvidence;
use experiment::environment::{ComponentMemory, DeploymentSpec, error_chain};
use experiment::topology::{Call, WorkloadId};
use experiment::{Experiment, Plan};
use results::{LatencyHistogram, ProxyConfiguration, ProxyHeap};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const EXPERIMENT: &str = "name: course\nquestion: What is recorded?\ntopology: emojivoto\nmesh: istio\n\
                          modes: [none]\nload: {rate: 100}\n";
/// Response times of the warm-up and of the window, milliseconds.
const WARMUP_MS: [u64; 2] = [900, 800];
const WINDOW_MS: [u64; 3] = [3, 3, 3];

#[derive(Clone, Copy, PartialEq)]
enum Moment {
    Before,
    Opening,
    After,
}

#[derive(Debug)]
struct FakeProxy {
    is_gone: bool,
}

impl CounterSource for FakeProxy {
    fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError> {
        match self.is_gone {
            true => Err(AdminError {
                proxy: "web-proxy".to_owned(),
                path: "/stats".to_owned(),
                cause: AdminCause::Status(503),
            }),
            false => Ok(["connections", "received", "sent"].map(|name| (name.to_owned(), 7)).into()),
        }
    }

    fn heap(&self) -> Result<Option<ProxyHeap>, AdminError> {
        Ok(Some(ProxyHeap { allocated_bytes: 1, heap_bytes: 2 }))
    }

    fn configuration(&self, copy: &mut dyn DumpCopy) -> Result<Option<ProxyConfiguration>, AdminError> {
        copy.push(b"{}");
        Ok(Some(ProxyConfiguration { size_bytes: 2, ..ProxyConfiguration::default() }))
    }
}

impl RunningProxy for FakeProxy {
    fn name(&self) -> &str {
        "web-proxy"
    }

    fn source(&self) -> &dyn CounterSource {
        self
    }
}

struct FakePlace {
    spec: DeploymentSpec,
    edges: Vec<Edge>,
    proxy: FakeProxy,
    moment: Cell<Moment>,
    course: Course,
    logs: tempfile::TempDir,
}

impl FakePlace {
    fn new() -> Self {
        let experiment = Experiment::parse(EXPERIMENT, "course.yaml").unwrap();
        let spec = Plan::new(&experiment, 1).trials[0].spec.clone();
        let [connections, received_bytes, sent_bytes] =
            ["connections", "received", "sent"].map(str::to_owned);
        let seen = Seen::Streams(StreamCounters { connections, received_bytes, sent_bytes });
        let station = Station {
            name: "web-proxy".to_owned(),
            proxies: vec![0],
            side: None,
            evidence: Evidence::new(seen),
        };
        let topology = &spec.topology;
        let edge = |call: Call| Edge {
            counted_as: format!("perf-{}", topology.workloads[call.to].name),
            ..Edge::new(topology, call, vec![station.clone()])
        };
        let edges = topology.calls.iter().copied().map(edge).collect();
        Self {
            edges,
            spec,
            proxy: FakeProxy { is_gone: false },
            moment: Cell::new(Moment::Before),
            course: Course::default(),
            logs: tempfile::tempdir().unwrap(),
        }
    }

    fn run(mut self) -> TrialEvidence {
        self.in_course(Course::begin).unwrap();
        self.moment.set(Moment::Opening);
        self.in_course(Course::open_window);
        self.moment.set(Moment::After);
        // The window's end.
        self.in_course(Course::open_window);
        self.in_course(|course, place| course.end(place, &[], &[], |_, _, _| ()))
    }

    /// Counters of a pod, which has called everything that it calls.
    fn reading(&self) -> ServiceReading {
        let mut times = LatencyHistogram::default();
        let mut record =
            |times_ms: &[u64]| times_ms.iter().for_each(|ms| times.record(Duration::from_millis(*ms)));
        if self.moment.get() != Moment::Before {
            record(&WARMUP_MS);
        }
        if self.moment.get() == Moment::After {
            record(&WINDOW_MS);
        }
        let answered = times.count();
        let counters = CallCounters { sent: answered, answered, ..CallCounters::default() };
        let calls = self.edges.iter().map(|edge| {
            (edge.counted_as.clone(), CallReading { counters, response_time_us: times.encode() })
        });
        let counters = [(CountedService::REQUESTS.to_owned(), answered)].into();
        ServiceReading { counters, calls: calls.collect() }
    }
}

impl Place for FakePlace {
    fn spec(&self) -> &DeploymentSpec {
        &self.spec
    }

    fn edges(&self) -> &[Edge] {
        &self.edges
    }

    fn proxies(&self) -> Vec<&dyn RunningProxy> {
        vec![&self.proxy]
    }

    fn read_services(&self) -> Readings {
        let workloads = self.spec.topology.workloads.iter().filter(|workload| workload.serves());
        workloads.flat_map(|workload| workload.pod_names()).map(|name| (name, Ok(self.reading()))).collect()
    }

    fn read_in_window(&self, workloads: &[WorkloadId]) -> BTreeMap<String, ServiceReading> {
        let workloads = workloads.iter().map(|id| &self.spec.topology.workloads[*id]);
        workloads.flat_map(|workload| workload.pod_names()).map(|name| (name, self.reading())).collect()
    }

    fn pods_behind(&self, _proxy: ProxyId, _service: WorkloadId) -> Vec<(&str, &str)> {
        Vec::new()
    }

    fn memory(&self) -> BTreeMap<String, ComponentMemory> {
        BTreeMap::new()
    }

    fn pace(&self) -> Pace {
        let none = Duration::ZERO;
        Pace { settled_timeout: none, settled_interval: none, rest_interval: none }
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn log_dir(&self) -> &Path {
        self.logs.path()
    }
}

impl KeepsCourse for FakePlace {
    fn course(&mut self) -> &mut Course {
        &mut self.course
    }
}

#[test]
fn calls_between_services_are_recorded_with_the_times_of_the_window() {
    let evidence = FakePlace::new().run();
    let ends: Vec<(&str, &str)> =
        evidence.edges.iter().map(|edge| (edge.from.as_str(), edge.to.as_str())).collect();
    assert_eq!(ends, [("web", "emoji"), ("web", "voting")]);
    for edge in &evidence.edges {
        assert_eq!((edge.requests, edge.answered), (5, 5));
        let times = edge.response_time_us.as_ref().unwrap();
        assert_eq!(times.count, 3);
        assert!(times.max.is_some_and(|max| max < 4000.0), "{times:?}");
    }
    let requests: Vec<_> = evidence.services.iter().map(|service| service.requests).collect();
    assert_eq!(requests, [Some(5); 3]);
}

#[test]
fn proxies_have_footprints_and_their_configuration_is_kept() {
    let mut place = FakePlace::new();
    place.in_course(Course::begin).unwrap();
    let evidence = place.in_course(|course, place| course.end(place, &[], &[], |_, _, _| ()));
    assert!(place.logs.path().join("web-proxy.configuration.json.gz").is_file());
    let held = evidence.footprints["web-proxy"].holdings.as_ref().unwrap();
    assert_eq!(held.configuration.as_ref().map(|read| read.size_bytes), Some(2));
    assert_eq!(held.heap_before_load, Some(ProxyHeap { allocated_bytes: 1, heap_bytes: 2 }));
    assert_eq!(held.heap_after_load, held.heap_before_load);
}

#[test]
fn trial_does_not_begin_without_a_proxys_counters() {
    let mut place = FakePlace::new();
    place.proxy.is_gone = true;
    let error = place.in_course(Course::begin).unwrap_err();
    assert!(error_chain(&error).starts_with("read the counters of web-proxy before the trial: "), "{error}");
}

#[test]
fn proxy_that_is_gone_after_the_load_leaves_its_paths_unproven() {
    let mut place = FakePlace::new();
    place.in_course(Course::begin).unwrap();
    place.proxy.is_gone = true;
    let evidence = place.in_course(|course, place| course.end(place, &[], &[], |_, _, _| ()));
    assert!(!evidence.path.proven);
    assert!(
        evidence.path.reasons.iter().any(|reason| reason.contains("web-proxy did not report its counters")),
        "{:?}",
        evidence.path.reasons
    );
    let held = evidence.footprints["web-proxy"].holdings.as_ref().unwrap();
    assert!(held.unread.iter().all(|reason| reason.contains("not repeated")), "{:?}", held.unread);
}
