//! The control plane for a fleet: istiods in pods of their own that are killed, added and removed when the
//! fleet requests it, links that go down, and limits. This program is also the fleet (`fleet`).

use crate::cases::LogFolder;
use experiment::MeshKind;
use experiment::environment::deploy::{Deployment, DriverEventKind, DriverStart, DriverVerb, HealthProbe};
use experiment::environment::{DeploymentSpec, Snapshot, WindowUsage, error_chain};
use experiment::settings::istio::IstiodSettings;
use lab::Lab;
use lab::environment::LocalLab;
use results::{FleetAnswer, FleetAsk, FleetProgress, FleetResult, Happening, Mode, Role, Throttling};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const FLEET: &str = "fleet";
/// Nothing in these tests takes longer.
const TEST_TIMEOUT: Duration = Duration::from_secs(300);
/// A connection through a link that is up takes microseconds.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// Less than istiod needs to start.
const TOO_LITTLE_MEMORY_BYTES: u64 = 24 << 20;

fn spec(istiod: IstiodSettings) -> DeploymentSpec {
    let mut spec = DeploymentSpec::new(MeshKind::Istio, Mode::ControlPlane);
    Arc::make_mut(&mut spec.istio).istiod = istiod;
    spec
}

/// `fleet … --istiod=HOST:PORT …`: requests every change that a fleet may request, and fails if one does not
/// take effect.
pub fn fleet(arguments: &[String]) -> ExitCode {
    let values = |name: &str| -> Vec<String> {
        let prefix = format!("--{name}=");
        arguments.iter().filter_map(|argument| argument.strip_prefix(&prefix)).map(str::to_owned).collect()
    };
    let kubeconfig = std::fs::read_to_string(&values("kubeconfig")[0]).expect("a kubeconfig is given");
    assert!(kubeconfig.contains("certificate-authority-data"), "{kubeconfig}");
    let source: Ipv4Addr = values("source-address")[0].parse().expect("an address of the pod's own");
    let istiods = values("istiod");
    assert_eq!((istiods.len(), values("spread")), (2, vec!["shared".to_owned()]));
    assert!(istiods.iter().all(|istiod| connects(istiod, source)), "{istiods:?}");
    report(&FleetProgress::WindowOpened);
    let mut happened = Vec::new();
    let mut ask = |ask| {
        let answer = ask_environment(ask);
        assert_eq!(answer.failure, None);
        happened.extend(answer.happened.clone());
        answer
    };
    let restarted = ask(FleetAsk::IstiodRestart);
    assert_eq!(restarted.istiods, istiods, "they come back where they were");
    assert!(istiods.iter().all(|istiod| connects(istiod, source)), "{istiods:?}");
    let added = ask(FleetAsk::IstiodAdded).istiods;
    assert!(added.len() == 3 && connects(&added[2], source), "{added:?}");
    assert_eq!(ask(FleetAsk::IstiodRemoved).istiods, istiods);
    assert!(!connects(&added[2], source), "{added:?}");
    ask(FleetAsk::LinkDown { addresses: vec![source] });
    assert!(!connects(&istiods[0], source) && connects(&istiods[0], Ipv4Addr::UNSPECIFIED), "only that link");
    ask(FleetAsk::LinkUp { addresses: vec![source] });
    assert!(connects(&istiods[0], source));
    report(&FleetProgress::WindowClosed);
    let events = happened.into_iter().map(|happening: Happening| happening.since(0.0)).collect();
    let result = serde_json::to_vec(&FleetResult { events, ..FleetResult::default() }).expect("it is JSON");
    std::fs::write(&values("json")[0], result).expect("results can be written");
    ExitCode::SUCCESS
}

fn connects(to: &str, from: Ipv4Addr) -> bool {
    let connect = || -> io::Result<()> {
        let to: SocketAddr = to.parse().map_err(io::Error::other)?;
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.bind(&SockAddr::from(SocketAddr::from((from, 0))))?;
        socket.connect_timeout(&to.into(), CONNECT_TIMEOUT)
    };
    connect().is_ok()
}

fn report(progress: &FleetProgress) {
    let line = serde_json::to_string(progress).expect("it is JSON");
    writeln!(io::stderr(), "{line}").expect("the test reads it");
}

fn ask_environment(ask: FleetAsk) -> FleetAnswer {
    report(&FleetProgress::Ask(ask));
    let mut line = String::new();
    io::stdin().read_line(&mut line).expect("there is an answer");
    serde_json::from_str(&line).expect("an answer is JSON")
}

pub fn istiods_are_killed_added_and_removed(_lab: &Lab, local_lab: &LocalLab) {
    let logs = LogFolder::create();
    let limited = IstiodSettings {
        replicas: 2,
        cpu_limit_cores: Some(1.5),
        memory_limit_bytes: Some(1 << 30),
        debounce_after: Some(Duration::from_millis(250)),
        debounce_max: Some(Duration::from_secs(3)),
    };
    let deployment = local_lab.bring_up(&spec(limited), logs.path());
    let mut deployment = deployment.unwrap_or_else(|error| panic!("{}", error_chain(&error)));
    deployment.begin_trial(&logs.path().to_string_lossy()).expect("every component is there");
    let fleet = DriverStart {
        driver: FLEET.to_owned(),
        generator: FLEET.to_owned(),
        verb: DriverVerb::Fleet,
        ..DriverStart::default()
    };
    deployment.start(&[fleet]).expect("the fleet starts");
    let mut snapshots: Vec<Snapshot> = Vec::new();
    let mut messages = Vec::new();
    let end = loop {
        match deployment.next_event(TEST_TIMEOUT).expect("the fleet ends by itself").kind {
            DriverEventKind::Fleet(FleetProgress::WindowOpened | FleetProgress::WindowClosed) => {
                snapshots.push(deployment.snapshot().expect("every component is there"));
            }
            DriverEventKind::Fleet(FleetProgress::Ask(ask)) => {
                deployment.act(FLEET, &ask);
                assert_eq!(deployment.health(HealthProbe::Processes), None, "after {ask:?}");
            }
            DriverEventKind::Ended(end) => break end,
            other => messages.push(format!("{other:?}")),
        }
    };
    assert_eq!(end.exit_code, Some(0), "{messages:?}");
    let evidence = deployment.end_trial(&[]);
    assert!(evidence.path.proven, "{:?}", evidence.path.reasons);
    check_events(end.result.expect("it has a result").fleet().expect("that of a fleet"));
    check_usage(&snapshots[1].usage_since(&snapshots[0]));
    let answered = Box::new(deployment).finish();
    assert!(answered.is_ok(), "{answered:?}");
    // Another deployment starts with a control plane of its own, with its own settings.
    let error = local_lab.bring_up(
        &spec(IstiodSettings {
            memory_limit_bytes: Some(TOO_LITTLE_MEMORY_BYTES),
            ..IstiodSettings::default()
        }),
        LogFolder::create().path(),
    );
    let error = error_chain(&error.expect_err("istiod needs more memory"));
    assert!(error.contains("istiod/istiod has died: it reached its memory limit"), "{error}");
    assert!(local_lab.running_control_plane().is_none());
}

fn check_events(result: &FleetResult) {
    let events: Vec<(&str, &str)> =
        result.events.iter().map(|event| (event.kind.as_str(), event.detail.as_str())).collect();
    let kinds = |kind: &str| events.iter().filter(|(other, _)| *other == kind).count();
    assert_eq!(events[..2], [("istiod-killed", "istiod-1"), ("istiod-killed", "istiod-2")]);
    assert_eq!(kinds("istiod-ready"), 2 + 3, "after the restart, and with the third: {events:?}");
    assert!(events.contains(&("istiod-removed", "istiod-3")), "{events:?}");
    assert_eq!((kinds("link-down"), kinds("link-up")), (1, 1), "{events:?}");
    assert!(result.events.windows(2).all(|pair| pair[0].at <= pair[1].at), "{:?}", result.events);
}

/// Istiods that were restarted, added or removed in the window have usage figures too.
fn check_usage(usage: &WindowUsage) {
    let names: Vec<&str> = usage.components.iter().map(|component| component.name.as_str()).collect();
    let expected =
        [FLEET, "etcd", "kube-apiserver", "istiod-1", "istiod-2", "istiod-3", "meshmeter", "kernel"];
    assert_eq!(names, expected);
    for istiod in usage.components.iter().filter(|component| component.name.starts_with("istiod")) {
        assert_eq!(istiod.role, Role::ControlPlane);
        let cpu_s = istiod.cpu_user_s + istiod.cpu_system_s;
        assert!(cpu_s > 0.05, "{} has started in the window: {cpu_s}", istiod.name);
        assert!(matches!(istiod.throttling, Some(Throttling { .. })) || istiod.name == "istiod-3");
    }
}
