//! Who may call whom, and how they show who they are.

use super::{Subject, attach_to_service, object};
use crate::istio::token::ISSUER;
use experiment::Mode;
use experiment::environment::MutualTls;
use experiment::mesh_settings::AuthorizationSettings;
use serde_json::{Value, json};

const API: &str = "security.istio.io/v1";

/// What the names of the policies whose rules allow paths begin with.
pub const PATH_RULES: &str = "allow-1-paths";
/// What the names of the policies whose rules allow callers begin with.
pub const IDENTITY_RULES: &str = "allow-2-identities";

/// How many rules one policy may have, by the schema of its kind.
const MOST_RULES: usize = 512;

/// The names of the policies that so many rules of a sort are in, in the order in which they are asked.
#[must_use]
pub fn policy_names(sort: &str, rules: usize) -> Vec<String> {
    (0..rules.div_ceil(MOST_RULES)).map(|number| format!("{sort}-{number:02}")).collect()
}

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
/// A proxy asks one rule after the other, ordered by their names, until one allows. So that all are asked,
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
    let last_path = (settings.identities == 0).then_some(subject.path);
    let paths = rules(PATH_RULES, settings.paths, |number, is_last| {
        let path =
            last_path.filter(|_| is_last).map_or_else(|| format!("/elsewhere/{number}"), ToOwned::to_owned);
        json!({"to": [{"operation": {"paths": [path]}}]})
    });
    let identities = rules(IDENTITY_RULES, settings.identities, |number, is_last| {
        let account = if is_last { subject.caller.to_owned() } else { format!("somebody-{number}") };
        let principal = format!("cluster.local/ns/{}/sa/{account}", subject.namespace);
        json!({"from": [{"source": {"principals": [principal]}}]})
    });
    let allow =
        |(name, rules): (String, Vec<Value>)| policy(&name, json!({"action": "ALLOW", "rules": rules}));
    let mut objects: Vec<Value> = paths.into_iter().chain(identities).map(allow).collect();
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

/// So many rules, in policies with these names; which is asked last of all is told to whoever makes them. Proxies order rules
/// by their names, as text: `ns[mesh-1]-policy[allow-1-paths-00]-rule[9]` comes after `…-rule[99]`.
fn rules(sort: &str, count: usize, rule: impl Fn(usize, bool) -> Value) -> Vec<(String, Vec<Value>)> {
    let names = policy_names(sort, count);
    let last_policy = names.len().saturating_sub(1);
    let of_policy = |(policy, name): (usize, String)| {
        let first = policy * MOST_RULES;
        let length = MOST_RULES.min(count - first);
        let asked_last =
            (0..length).max_by_key(|number| format!("{number}]")).filter(|_| policy == last_policy);
        let rules = (0..length).map(|number| rule(first + number, Some(number) == asked_last)).collect();
        (name, rules)
    };
    names.into_iter().enumerate().map(of_policy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules as a proxy names them, each with whether it is the one that allows, in the order in which it asks.
    fn asked(count: usize) -> Vec<(String, bool)> {
        let policies = rules("allow", count, |_, is_last| json!(is_last));
        let named = policies.iter().flat_map(|(name, rules)| {
            assert!(rules.len() <= MOST_RULES);
            rules
                .iter()
                .enumerate()
                .map(move |(number, rule)| (format!("policy[{name}]-rule[{number}]"), rule == &json!(true)))
        });
        let mut named: Vec<_> = named.collect();
        named.sort();
        named
    }

    #[test]
    fn only_the_rule_that_is_asked_last_allows_the_generator() {
        for count in [1, 9, 10, 11, 150, 512, 513, 10_000] {
            let asked = asked(count);
            assert_eq!(asked.len(), count);
            let allowing: Vec<usize> = (0..count).filter(|place| asked[*place].1).collect();
            assert_eq!(allowing, [count - 1], "of {count}");
        }
        assert_eq!(asked(0), []);
    }
}
