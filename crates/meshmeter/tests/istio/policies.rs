//! Authorization of callers: rules by path and by identity, and tokens.

use crate::cases::LogFolder;
use crate::exchange::{Answer, Target, ask, before_service, namespace};
use crate::kept::kept_configuration;
use crate::trial::{REQUESTS, bring_up, has_all, run, run_proven, settings, switched};
use experiment::MeshSettings;
use experiment::environment::DeploymentSpec;
use experiment::mesh_settings::AuthorizationSettings;
use jiff::{SignedDuration, Timestamp};
use lab::deployment::LabDeployment;
use lab::environment::LocalLab;
use mesh::istio::objects::policy::{IDENTITY_RULES, PATH_RULES};
use mesh::istio::token::TokenIssuer;
use results::Mode;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

/// More than ten: proxies order rules by their numbers as text.
const RULES: usize = 12;

fn authorized(mode: Mode, authorization: AuthorizationSettings) -> DeploymentSpec {
    switched(mode, MeshSettings { authorization, ..settings() })
}

/// Rules of a kind in the configuration of the proxy in front of the service, by name.
fn rules_in_force(deployment: &LabDeployment<'_>, sort: &str) -> BTreeSet<String> {
    let listeners = ask(before_service(deployment), "/config_dump?resource=dynamic_listeners");
    let of_sort = format!("ns[{}]-policy[{sort}-server-", namespace(deployment));
    let names = listeners.split('"').filter_map(|text| text.strip_prefix(&of_sort)?.strip_suffix(']'));
    names.map(ToOwned::to_owned).collect()
}

fn all_rules() -> BTreeSet<String> {
    (0..RULES).map(|number| format!("00]-rule[{number}")).collect()
}

fn check_refused(answer: &Answer, status: u16, words: &str, what: &str) {
    assert_eq!(answer.status, status, "{what}: {answer:?}");
    assert!(answer.body.contains(words), "{what}: {answer:?}");
}

pub fn rules_by_path_refuse_other_paths(lab: &LocalLab) {
    rules_by_path(lab, Mode::Sidecar);
    rules_by_path(lab, Mode::Ingress);
}

pub fn rules_by_path_in_a_waypoint(lab: &LocalLab) {
    rules_by_path(lab, Mode::AmbientWaypoint);
}

fn rules_by_path(lab: &LocalLab, mode: Mode) {
    let logs = LogFolder::create();
    let rules = AuthorizationSettings { paths: RULES, ..AuthorizationSettings::default() };
    let spec = authorized(mode, rules);
    let deployment = bring_up(lab, &spec, logs.path());
    assert_eq!(rules_in_force(&deployment, PATH_RULES), all_rules(), "{mode}");
    let target = Target::of_client(lab, &deployment);
    let client = deployment.client_pod();
    let answer = target.get(client, "/another", &[]).expect("an answer");
    check_refused(&answer, 403, "RBAC: access denied", &format!("{mode}: another path"));
    // A rule before the last one, which the generator does not use.
    let answer = target.get(client, "/elsewhere/3", &[]).expect("an answer");
    assert_eq!(answer.status, 200, "{mode}: {answer:?}");
    let trial = run_proven(lab, &spec, deployment, logs.path());
    let checker = if mode == Mode::AmbientWaypoint { "waypoint" } else { "server-proxy" };
    assert_eq!(trial.rise(checker, ".rbac.allowed"), REQUESTS, "{mode}");
    assert_eq!(trial.rise(checker, ".rbac.denied"), 0, "{mode}");
}

pub fn rules_beyond_one_policy_are_checked(lab: &LocalLab) {
    let logs = LogFolder::create();
    let rules = AuthorizationSettings { paths: 600, identities: 600, jwt: false };
    let spec = authorized(Mode::Sidecar, rules);
    let deployment = bring_up(lab, &spec, logs.path());
    run_proven(lab, &spec, deployment, logs.path());
    let kept = kept_configuration(logs.path(), "server-proxy").to_string();
    for sort in [PATH_RULES, IDENTITY_RULES] {
        // The first policy has 512 rules.
        for name in
            [format!("policy[{sort}-server-00]-rule[511]"), format!("policy[{sort}-server-01]-rule[87]")]
        {
            assert!(kept.contains(&name), "{name} is not in the configuration of {} bytes", kept.len());
        }
    }
}

pub fn rules_by_identity_refuse_other_callers(lab: &LocalLab) {
    rules_by_identity(lab, Mode::Sidecar);
    rules_by_identity(lab, Mode::Ingress);
}

pub fn rules_by_identity_in_a_waypoint(lab: &LocalLab) {
    rules_by_identity(lab, Mode::AmbientWaypoint);
}

/// The other caller is the server itself. What its application sends to its own Service leaves through its
/// proxy with the server's certificate, and comes in again.
fn rules_by_identity(lab: &LocalLab, mode: Mode) {
    for (identities, expected) in [(0, 200), (RULES, 403)] {
        let logs = LogFolder::create();
        let rules = AuthorizationSettings { identities, ..AuthorizationSettings::default() };
        let spec = authorized(mode, rules);
        let deployment = bring_up(lab, &spec, logs.path());
        let service = Target::service(lab, &deployment);
        let answer = service.get(deployment.server_pod(), "/", &[]).expect("an answer");
        assert_eq!(answer.status, expected, "{mode}, {identities} rules: {answer:?}");
        if identities > 0 {
            assert_eq!(rules_in_force(&deployment, IDENTITY_RULES), all_rules(), "{mode}");
            run_proven(lab, &spec, deployment, logs.path());
        }
    }
}

/// A ztunnel checks callers without reading requests: it closes connections that are not allowed.
pub fn rules_by_identity_in_a_ztunnel(lab: &LocalLab) {
    let logs = LogFolder::create();
    let rules = AuthorizationSettings { identities: RULES, ..AuthorizationSettings::default() };
    let spec = authorized(Mode::Ambient, rules);
    let deployment = bring_up(lab, &spec, logs.path());
    let service = Target::service(lab, &deployment);
    let refused = service.get(deployment.server_pod(), "/", &[]);
    assert!(refused.is_err(), "{refused:?}");
    run_proven(lab, &spec, deployment, logs.path());
}

pub fn tokens_are_verified(lab: &LocalLab) {
    tokens(lab, Mode::Sidecar);
    tokens(lab, Mode::Ingress);
}

pub fn tokens_are_verified_by_a_waypoint(lab: &LocalLab) {
    tokens(lab, Mode::AmbientWaypoint);
}

/// In addition to the run's own key, the proxy trusts one of this test. Tokens can then be wrong in a single
/// respect.
fn tokens(lab: &LocalLab, mode: Mode) {
    let logs = LogFolder::create();
    let issuer = TokenIssuer::create().expect("a key");
    let rule = json!({
        "issuer": mesh::istio::token::ISSUER,
        "jwks": issuer.public_keys(),
        "forwardOriginalToken": true,
    });
    let mut trusted = json!({
        "apiVersion": "security.istio.io/v1",
        "kind": "RequestAuthentication",
        "metadata": {"name": "of-the-test"},
        "spec": {"jwtRules": [rule]},
    });
    if mode == Mode::AmbientWaypoint {
        let waypoint = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "waypoint"});
        trusted["spec"]["targetRefs"] = json!([waypoint]);
    } else {
        trusted["spec"]["selector"] = json!({"matchLabels": {"app": "server"}});
    }
    let authorization = AuthorizationSettings { jwt: true, ..AuthorizationSettings::default() };
    let settings = MeshSettings { authorization, extra: Some(has_all(&[trusted])), ..settings() };
    let spec = switched(mode, settings);
    let deployment = bring_up(lab, &spec, logs.path());
    let target = Target::of_client(lab, &deployment);
    let with = |token: &str| {
        let authorization = format!("Bearer {token}");
        target.get(deployment.client_pod(), "/", &[("authorization", &authorization)]).expect("an answer")
    };
    let now = Timestamp::now();
    let hour = Duration::from_secs(3600);
    let token = |issuer: &TokenIssuer, age: SignedDuration| issuer.token(now - age, hour).expect("signed");
    let good = token(&issuer, SignedDuration::from_mins(1));
    assert_eq!(with(&good).status, 200, "{mode}");

    let without = target.get(deployment.client_pod(), "/", &[]).expect("an answer");
    check_refused(&without, 403, "RBAC: access denied", &format!("{mode}: no token"));
    let expired = with(&token(&issuer, SignedDuration::from_hours(3)));
    check_refused(&expired, 401, "Jwt is expired", &format!("{mode}: expired"));
    let other_key = with(&token(&TokenIssuer::create().expect("a key"), SignedDuration::from_mins(1)));
    check_refused(&other_key, 401, "Jwt verification fails", &format!("{mode}: another key"));
    let (signed, signature) = good.rsplit_once('.').expect("a token has three parts");
    let first = if signature.starts_with('A') { 'B' } else { 'A' };
    let tampered = with(&format!("{signed}.{first}{}", &signature[1..]));
    check_refused(&tampered, 401, "Jwt verification fails", &format!("{mode}: tampered"));

    let client_arguments = deployment.client_arguments();
    assert!(client_arguments.iter().any(|argument| argument.starts_with("authorization: Bearer ")));
    let trial = run_proven(lab, &spec, deployment, logs.path());
    let checker = if mode == Mode::AmbientWaypoint { "waypoint" } else { "server-proxy" };
    assert_eq!(trial.rise(checker, ".jwt_authn.allowed"), REQUESTS, "{mode}");
}

/// Rejected requests get fast responses on a proven path: only the verdict shows that nothing was measured.
pub fn trial_with_all_requests_rejected_is_invalid(lab: &LocalLab) {
    let logs = LogFolder::create();
    let authorization = AuthorizationSettings { jwt: true, ..AuthorizationSettings::default() };
    let deployment = bring_up(lab, &authorized(Mode::Sidecar, authorization), logs.path());
    let trial = run(deployment, logs.path(), &[]);
    assert_eq!((trial.answered(), trial.completed()), (0, REQUESTS));
    let verdict = &trial.result().verdict;
    assert!(!verdict.valid);
    let expected = format!(
        "errors: 100.00 % of the requests failed or were answered with an error (status 403: {REQUESTS})"
    );
    assert!(verdict.reasons.contains(&expected), "{:?}", verdict.reasons);
}
