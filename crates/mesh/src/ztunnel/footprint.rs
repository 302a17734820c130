//! A ztunnel's configuration, counted from its dump (`/config_dump`) as a stream; it covers all namespaces.
//! Not counted: ztunnel's startup settings (`config`, `version`), and its heap, which it does not report.
//! `/debug/pprof/heap` is a profile, which ztunnel refuses unless it was started with profiling.

use crate::config_dump::{self, DumpCopy};
use results::{ConfigurationCounts, ProxyConfiguration};
use serde::Deserialize;
use serde::de::{Error as _, IgnoredAny};
use std::collections::BTreeMap;
use std::io::Read;

/// Counts a dump and copies it as a stream, without certificates.
pub fn count(dump: impl Read, copy: &mut dyn DumpCopy) -> serde_json::Result<ProxyConfiguration> {
    let (mut counts, mut size_bytes) = (ConfigurationCounts::default(), 0);
    let mut separator = "{\n  ";
    let dump_bytes = config_dump::read(dump, &mut |key, text| {
        let mut copied = text;
        let mut is_size = true;
        match key {
            "services" => {
                let services: Vec<Service> = serde_json::from_str(text)?;
                let endpoints = services.iter().map(|service| service.endpoints.len() as u64);
                (counts.services, counts.endpoints) = (Some(services.len() as u64), Some(endpoints.sum()));
            }
            "workloads" => counts.workloads = Some(length(text)?),
            "policies" => counts.policies = Some(length(text)?),
            // Endpoints of services that ztunnel has not received.
            "stagedServices" => {}
            "certificates" => {
                let certificates: Vec<Certificate> = serde_json::from_str(text)?;
                let available = certificates.iter().filter(|certificate| certificate.state == "Available");
                counts.certificates = Some(available.count() as u64);
                (copied, is_size) = ("[]", false);
            }
            _ => is_size = false,
        }
        let entry = format!("{}: {copied}", serde_json::to_string(key)?);
        size_bytes += if is_size { entry.len() as u64 } else { 0 };
        copy.push(separator.as_bytes());
        copy.push(entry.as_bytes());
        separator = ",\n  ";
        Ok(())
    })?;
    copy.push(b"\n}");
    for (part, count) in [("services", counts.services), ("workloads", counts.workloads)] {
        count.ok_or_else(|| serde_json::Error::missing_field(part))?;
    }
    counts.policies.get_or_insert(0);
    counts.certificates.get_or_insert(0);
    Ok(ProxyConfiguration { size_bytes, dump_bytes, counts })
}

fn length(list: &str) -> serde_json::Result<u64> {
    Ok(serde_json::from_str::<Vec<IgnoredAny>>(list)?.len() as u64)
}

#[derive(Deserialize)]
struct Certificate {
    state: String,
}

#[derive(Deserialize)]
struct Service {
    #[serde(default)]
    endpoints: BTreeMap<String, IgnoredAny>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Dump of a real ztunnel, with replaced certificates, one added identity whose certificate is pending,
    /// and most startup settings removed.
    const RECORDED: &str = include_str!("../../tests/fixtures/ztunnel_config_dump.json");

    #[test]
    fn recorded_dump_is_counted() {
        let configuration = count(RECORDED.as_bytes(), &mut Vec::new()).unwrap();
        let counts = ConfigurationCounts {
            // The services of the API and the server; only the server has endpoints.
            services: Some(2),
            endpoints: Some(1),
            // Client, server, ztunnel.
            workloads: Some(3),
            policies: Some(1),
            // A third certificate is pending.
            certificates: Some(2),
            ..ConfigurationCounts::default()
        };
        assert_eq!(configuration.counts, counts);
        assert_eq!(configuration.dump_bytes, RECORDED.len() as u64);
        assert_eq!(
            configuration.size_bytes,
            408 + 926 + 20 + 1902,
            "policies, services, staged ones, workloads"
        );
    }

    #[test]
    fn copy_is_dump_without_certificates() {
        let mut copy = Vec::new();
        count(RECORDED.as_bytes(), &mut copy).unwrap();
        let copy = String::from_utf8(copy).unwrap();
        assert!(RECORDED.contains("LS0tLS1CRUdJTi") && !copy.contains("LS0tLS1CRUdJTi"));
        let mut expected: Value = serde_json::from_str(RECORDED).unwrap();
        expected["certificates"] = json!([]);
        assert_eq!(serde_json::from_str::<Value>(&copy).unwrap(), expected);
    }

    #[test]
    fn copy_is_json_whatever_the_keys() {
        let dump = r#"{"a\"b\n": 1, "services": [], "workloads": []}"#;
        let mut copy = Vec::new();
        count(dump.as_bytes(), &mut copy).unwrap();
        let expected: Value = serde_json::from_str(dump).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&copy).unwrap(), expected);
    }

    #[test]
    fn invalid_dump_is_error() {
        let cases: [(&str, &str); 5] = [
            ("", "EOF while parsing a value"),
            ("{}", "missing field `services`"),
            (r#"{"services":[]}"#, "missing field `workloads`"),
            (r#"{"services":{}}"#, "expected a sequence"),
            (&RECORDED[..RECORDED.len() / 2], "EOF while parsing"),
        ];
        for (text, expected) in cases {
            let error = count(text.as_bytes(), &mut Vec::new()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
