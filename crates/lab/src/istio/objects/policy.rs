//! Who may call whom, and how they show who they are.

use super::{Subject, attach_to_service, object};
use crate::istio::token::ISSUER;
use experiment::Mode;
use experiment::environment::MutualTls;
use experiment::mesh_settings::AuthorizationSettings;
use serde_json::{Value, json};

const API: &str = "security.istio.io/v1";

/// The name of the policy whose rules allow paths.
pub const PATH_RULES: &str = "allow-1-paths";
/// The name of the policy whose rules allow callers.
pub const IDENTITY_RULES: &str = "allow-2-identities";

/// What the proxies of a namespace take. Those that call follow of their own accord (Istio's automatic mutual TLS).
pub(super) fn peer_authentication(namespace: &str, mtls: MutualTls) -> Value {
    let mode = match mtls {
        MutualTls::Strict => "STRICT",
        MutualTls::Permissive => "PERMISSIVE",
        MutualTls::Off => "DISABLE",
    };
    object(API, "PeerAuthentication", (namespace, "default"), &json!({"mtls": {"mode": mode}}))
}

/// Rules and tokens before the service.
///
/// A proxy asks one rule after the other, ordered by the names of their policies and numbers, until one allows. So that all are asked,
/// only the very last allows what the generator sends.
pub(super) fn authorization(
    settings: AuthorizationSettings,
    mode: Mode,
    subject: &Subject<'_>,
    token_keys: Option<&str>,
) -> Vec<Value> {
    let policy = |name: &str, mut spec: Value| {
        attach_to_service(&mut spec, mode, subject.service);
        object(API, "AuthorizationPolicy", (subject.namespace, name), &spec)
    };
    let mut objects = Vec::new();
    if settings.paths > 0 {
        let last = (settings.identities == 0).then_some(subject.path);
        let rules = rules(settings.paths, |number, is_last| {
            let path =
                last.filter(|_| is_last).map_or_else(|| format!("/elsewhere/{number}"), ToOwned::to_owned);
            json!({"to": [{"operation": {"paths": [path]}}]})
        });
        objects.push(policy(PATH_RULES, json!({"action": "ALLOW", "rules": rules})));
    }
    if settings.identities > 0 {
        let rules = rules(settings.identities, |number, is_last| {
            let account = if is_last { subject.caller.to_owned() } else { format!("somebody-{number}") };
            let principal = format!("cluster.local/ns/{}/sa/{account}", subject.namespace);
            json!({"from": [{"source": {"principals": [principal]}}]})
        });
        objects.push(policy(IDENTITY_RULES, json!({"action": "ALLOW", "rules": rules})));
    }
    if let Some(keys) = token_keys.filter(|_| settings.jwt) {
        // Passed on to the service, as many want it; and what went through a waypoint is held against the bytes of what was sent.
        let rule = json!({"issuer": ISSUER, "jwks": keys, "forwardOriginalToken": true});
        let mut spec = json!({"jwtRules": [rule]});
        attach_to_service(&mut spec, mode, subject.service);
        objects.push(object(API, "RequestAuthentication", (subject.namespace, "tokens"), &spec));
        // Verifying alone lets requests without any token pass.
        let without = json!([{"from": [{"source": {"notRequestPrincipals": ["*"]}}]}]);
        objects.push(policy("deny-without-token", json!({"action": "DENY", "rules": without})));
    }
    objects
}

/// So many rules; which is asked last is told to whoever makes them. Proxies order rules by their numbers as text.
fn rules(count: usize, rule: impl Fn(usize, bool) -> Value) -> Vec<Value> {
    let asked_last = (0..count).max_by_key(usize::to_string);
    (0..count).map(|number| rule(number, Some(number) == asked_last)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_rule_that_is_asked_last_allows_the_generator() {
        for count in [1, 9, 10, 11, 150] {
            let rules = rules(count, |_, is_last| json!(is_last));
            let last = rules.iter().position(|rule| rule == &json!(true)).unwrap();
            assert_eq!(rules.iter().filter(|rule| **rule == json!(true)).count(), 1);
            assert!((0..count).all(|other| other.to_string() <= last.to_string()), "{last} of {count}");
        }
    }
}
