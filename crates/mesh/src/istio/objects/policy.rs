//! Mutual TLS, authorization and tokens.

use super::subject::{Subject, object};
use super::waypoint;
use crate::istio::token::ISSUER;
use crate::names::TRUST_DOMAIN;
use experiment::environment::{DeploymentSpec, MutualTls};
use serde_json::{Value, json};

const API: &str = "security.istio.io/v1";
pub const PATH_RULES: &str = "allow-1-paths";
pub const IDENTITY_RULES: &str = "allow-2-identities";
/// Maximum number of rules in one policy by the schema.
const MAX_RULES: usize = 512;

/// Names of the policies that hold this number of rules, in evaluation order.
pub fn policy_names(sort: &str, service: &str, rules: usize) -> Vec<String> {
    (0..rules.div_ceil(MAX_RULES)).map(|number| format!("{sort}-{service}-{number:02}")).collect()
}

/// Which connections the proxies of a namespace accept. Callers adapt (Istio's automatic mutual TLS).
pub fn peer_authentication(namespace: &str, mtls: MutualTls) -> Value {
    let mode = match mtls {
        MutualTls::Strict => "STRICT",
        MutualTls::Permissive => "PERMISSIVE",
        MutualTls::Off => "DISABLE",
    };
    object(API, "PeerAuthentication", (namespace, "default"), &json!({"mtls": {"mode": mode}}))
}

/// A proxy evaluates rules by name until one allows the request. Only the last rule allows drivers, so that
/// all are evaluated.
pub(super) fn authorization(
    spec: &DeploymentSpec,
    subject: &Subject<'_>,
    token_keys: Option<&str>,
) -> Vec<Value> {
    let settings = spec.istio.authorization;
    let policy = |kind: &str, name: &str, mut policy: Value| {
        attach(&mut policy, spec, subject.service);
        object(API, kind, (subject.namespace, name), &policy)
    };
    let allows_paths = settings.identities == 0;
    let paths = rules(PATH_RULES, subject.service, settings.paths, |number, is_last| {
        let paths = if is_last && allows_paths {
            subject.endpoints.iter().map(|endpoint| subject.protocol.path(endpoint)).collect()
        } else {
            vec![format!("/elsewhere/{number}")]
        };
        json!({"to": [{"operation": {"paths": paths}}]})
    });
    let identities = rules(IDENTITY_RULES, subject.service, settings.identities, |number, is_last| {
        let principal =
            |namespace: &str, account: &str| format!("{TRUST_DOMAIN}/ns/{namespace}/sa/{account}");
        let principals = if is_last {
            subject.callers.iter().map(|caller| principal(caller.namespace, caller.name)).collect()
        } else {
            vec![principal(subject.namespace, &format!("somebody-{number}"))]
        };
        json!({"from": [{"source": {"principals": principals}}]})
    });
    let mut objects: Vec<Value> = paths
        .into_iter()
        .chain(identities)
        .map(|(name, rules)| policy("AuthorizationPolicy", &name, json!({"action": "ALLOW", "rules": rules})))
        .collect();
    if let Some(keys) = token_keys.filter(|_| settings.jwt) {
        let attach = |policy: &mut Value| attach(policy, spec, subject.service);
        objects.extend(tokens((subject.namespace, subject.service), keys, attach));
    }
    objects
}

/// Policies for requests to this service or gateway: these keys verify tokens, and requests without a token
/// are rejected.
pub(super) fn tokens((namespace, name): (&str, &str), keys: &str, attach: impl Fn(&mut Value)) -> [Value; 2] {
    let policy = |kind: &str, prefix: &str, mut policy: Value| {
        attach(&mut policy);
        object(API, kind, (namespace, &format!("{prefix}-{name}")), &policy)
    };
    // The token is forwarded, as is common. It also keeps bytes that leave a waypoint comparable with the bytes sent.
    let rule = json!({"issuer": ISSUER, "jwks": keys, "forwardOriginalToken": true});
    // `RequestAuthentication` alone accepts requests without a token.
    let without = json!([{"from": [{"source": {"notRequestPrincipals": ["*"]}}]}]);
    [
        policy("RequestAuthentication", "tokens", json!({"jwtRules": [rule]})),
        policy("AuthorizationPolicy", "deny-without-token", json!({"action": "DENY", "rules": without})),
    ]
}

/// Attaches a policy to the proxy that reads a Service's requests: the waypoint, or the sidecars of its pods.
fn attach(policy: &mut Value, spec: &DeploymentSpec, service: &str) {
    if waypoint::is_used(spec) {
        policy["targetRefs"] = json!([{"group": "", "kind": "Service", "name": service}]);
    } else {
        policy["selector"] = json!({"matchLabels": {"app": service}});
    }
}

/// Policies with `count` rules; `rule` gets true for the one that is evaluated last. Proxies order rules by
/// their names, as text: `ns[mesh-1]-policy[allow-1-paths-server-00]-rule[9]` comes after `…-rule[99]`.
fn rules(
    sort: &str,
    service: &str,
    count: usize,
    rule: impl Fn(usize, bool) -> Value,
) -> Vec<(String, Vec<Value>)> {
    let names = policy_names(sort, service, count);
    let last_policy = names.len().saturating_sub(1);
    let of_policy = |(policy, name): (usize, String)| {
        let first = policy * MAX_RULES;
        let length = MAX_RULES.min(count - first);
        let evaluated_last =
            (0..length).max_by_key(|number| format!("{number}]")).filter(|_| policy == last_policy);
        let rules = (0..length).map(|number| rule(first + number, Some(number) == evaluated_last)).collect();
        (name, rules)
    };
    names.into_iter().enumerate().map(of_policy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules by the names that a proxy gives them, in evaluation order, each with whether it is the one
    /// that allows.
    fn evaluated(count: usize) -> Vec<(String, bool)> {
        let policies = rules("allow", "server", count, |_, is_last| json!(is_last));
        let named = policies.iter().flat_map(|(name, rules)| {
            assert!(rules.len() <= MAX_RULES);
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
    fn rules_last_evaluated_is_the_only_one_that_allows() {
        for count in [1, 9, 10, 11, 150, 512, 513, 10_000] {
            let evaluated = evaluated(count);
            assert_eq!(evaluated.len(), count);
            let allowing: Vec<usize> = (0..count).filter(|place| evaluated[*place].1).collect();
            assert_eq!(allowing, [count - 1], "of {count}");
        }
        assert_eq!(evaluated(0), []);
    }
}
