//! Short names of settings and of their values, for people who read results: `mTLS strict`, `no access log`, `16
//! connections`.
//!
//! The label of a key is beside the key ([`crate::keys`]); a key without one is called by its name. A label that ends in a
//! plural `s` counts its values.

use super::keys::SECTION_KEYS;
use results::FactorValue;

/// Short name of a setting given by its dotted key, such as `mTLS` for `proxy.mtls`.
#[must_use]
pub fn label(key: &str) -> String {
    let (path, name) = key.rsplit_once('.').unwrap_or(("", key));
    let section = SECTION_KEYS.iter().find(|section| section.path == path);
    let described =
        section.and_then(|section| section.keys.iter().find(|described| described.key.name == name));
    let label = described.and_then(|described| described.key.label);
    label.map_or_else(|| name.replace('-', " "), str::to_owned)
}

/// A setting with its value: `mTLS strict`, `no access log`, `16 connections`, `proxy CPU 250m`.
#[must_use]
pub fn setting(key: &str, value: &FactorValue) -> String {
    let label = label(key);
    match value.to_string().as_str() {
        "off" | "false" => format!("no {label}"),
        "on" | "true" => label,
        value => counted(&label, value).unwrap_or_else(|| format!("{label} {value}")),
    }
}

/// A value of a setting instead of another one: `mTLS strict instead of off`, `8 hops instead of 1`.
#[must_use]
pub fn instead(key: &str, to: &str, from: &str) -> String {
    let label = label(key);
    let to = counted(&label, to).unwrap_or_else(|| format!("{label} {to}"));
    format!("{to} instead of {from}")
}

/// A step from one value of a setting to another: `mTLS off → strict`, `hops 1 → 8`.
#[must_use]
pub fn step(key: &str, from: &str, to: &str) -> String {
    format!("{} {from} → {to}", label(key))
}

/// Such as `1 worker` or `100 requests per connection`; `None` unless the label is that of things and the value a number of
/// them.
fn counted(label: &str, value: &str) -> Option<String> {
    let count: u64 = value.parse().ok()?;
    let (things, of_each) = label.split_once(" per ").unwrap_or((label, ""));
    let one = things.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let one = one.or_else(|| things.strip_suffix('s').map(str::to_owned))?;
    let things = if count == 1 { &one } else { things };
    let of_each = if of_each.is_empty() { String::new() } else { format!(" per {of_each}") };
    Some(format!("{value} {things}{of_each}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_short_names() {
        let named = |key: &str, value: &str| setting(key, &FactorValue::from_typed(value));
        let settings = [
            ("proxy.mtls", "strict"),
            ("proxy.access-log", "off"),
            ("proxy.access-log", "json"),
            ("proxy.workers", "1"),
            ("proxy.cpu", "1"),
            ("gateway.cpu", "250m"),
            ("load.connections", "16"),
            ("load.requests-per-connection", "1"),
            ("load.payload", "4KiB"),
            ("topology.hops", "8"),
            ("topology.width", "8"),
            ("fleet.proxies", "200"),
            ("fleet.scope", "true"),
            ("istio.background-services.services", "1"),
            ("istio.authorization.jwt", "on"),
            ("istio.retries", "1"),
            ("components.istio", "1.30.1"),
        ];
        insta::assert_snapshot!(settings.map(|(key, value)| named(key, value)).join(", "), @"mTLS strict, no access log, access log json, 1 worker, proxy CPU 1, gateway CPU 250m, 16 connections, 1 request per connection, payload 4KiB, 8 hops, width 8, 200 proxies, scope, 1 background service, JWT, 1 retry, Istio 1.30.1");
    }

    #[test]
    fn changes_of_settings_name_both_values() {
        let texts = [
            instead("proxy.mtls", "strict", "off"),
            instead("topology.hops", "8", "1"),
            instead("proxy.cpu", "1", "250m"),
            step("proxy.access-log", "off", "json"),
        ];
        assert_eq!(
            texts,
            [
                "mTLS strict instead of off",
                "8 hops instead of 1",
                "proxy CPU 1 instead of 250m",
                "access log off → json"
            ]
        );
    }
}
