//! A study of a control plane: each trial's fleet has its own istiod, API server and etcd.

use crate::run::Scene;
use results::TrialOutcome;
use std::time::Duration;

const RUN_TIMEOUT: Duration = Duration::from_secs(400);

pub fn fleet_is_measured_against_its_own_istiod() {
    let scene = Scene::new(
        "modes: [control-plane]\nrepeats: 1\nfleet: {proxies: [5, 15], services: 10, pods: 20, namespaces: 2, \
         changes: [endpoint-added=2, service-entry], between: 200ms, settle: 3m}\n",
    );
    let ended = scene.start("out").end_within(RUN_TIMEOUT);
    ended.check_status();
    let trials = ended.trials();
    assert_eq!(trials.len(), 2);
    for trial in &trials {
        assert_eq!(trial.outcome, TrialOutcome::Finished, "{:?}", trial.verdict);
        let fleet = trial.fleet().expect("a result");
        let (proxies, wanted) = (&fleet.proxies, trial.factors["fleet.proxies"].to_string());
        assert_eq!((proxies.wanted.to_string(), proxies.never), (wanted, 0), "{proxies:?}");
        assert_eq!(proxies.converged, proxies.wanted, "{proxies:?}");
        // Every change arrived at every proxy, and nothing was rejected.
        assert_eq!(fleet.convergence_us.count, 3 * proxies.wanted);
        assert_eq!((fleet.changes.len(), fleet.rejections), (3, 0), "{:?}", fleet.changes);
        let names: Vec<&str> = fleet.control_plane.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["istiod", "kube-apiserver", "etcd"]);
        assert!(fleet.control_plane[0].cpu_s.is_some_and(|cpu_s| cpu_s > 0.0), "{:?}", fleet.control_plane);
        assert!(trial.components.iter().any(|component| component.name == "fleet"), "it is observed too");
    }
    let report = ended.report();
    assert!(report.contains("id=\"fleets\"") && report.contains("endpoint-added"), "a section of its own");
}
