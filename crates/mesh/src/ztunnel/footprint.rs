//! A ztunnel's configuration, counted from its dump (`/config_dump`) as it comes: that of all namespaces.
//! Not counted: what ztunnel was started with (`config`, `version`), and its heap, which it does not report:
//! `/debug/pprof/heap` is a profile, which it refuses unless it was started to make one.

use crate::config_dump::list::{Each, Object, ReadEntries};
use crate::config_dump::{self, DumpCopy, Tee};
use experiment::schema::{ConfigurationCounts, ProxyConfiguration};
use serde::Deserialize;
use serde::de::{Error as _, IgnoredAny, MapAccess};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Read;

/// Counts a dump and copies it as it is read, without its certificates.
pub fn count(dump: impl Read, copy: &mut dyn DumpCopy) -> Result<ProxyConfiguration, serde_json::Error> {
    let held = RefCell::default();
    let tee = Tee::new(copy);
    let dump_bytes = config_dump::read(dump, &tee, Object(Dump { held: &held, tee: &tee }))?;
    let held: Held = held.into_inner();
    let counts = ConfigurationCounts {
        services: Some(held.services),
        endpoints: Some(held.endpoints),
        workloads: Some(held.workloads),
        policies: Some(held.policies),
        certificates: Some(held.certificates),
        ..ConfigurationCounts::default()
    };
    Ok(ProxyConfiguration { size_bytes: held.size_bytes, dump_bytes, counts })
}

#[derive(Default)]
struct Held {
    size_bytes: u64,
    services: u64,
    endpoints: u64,
    workloads: u64,
    policies: u64,
    certificates: u64,
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

#[derive(Clone, Copy)]
struct Dump<'a, 'c> {
    held: &'a RefCell<Held>,
    tee: &'a Tee<'c>,
}

impl ReadEntries for Dump<'_, '_> {
    fn read_entries<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { held, tee } = self;
        let mut held = held.borrow_mut();
        let mut lacking = vec!["services", "workloads"];
        while let Some(key) = map.next_key::<String>()? {
            lacking.retain(|part| *part != key);
            // The key was read, with its quotation marks.
            let begins_at = tee.position().saturating_sub(key.len() as u64 + 2);
            let mut is_size = true;
            match key.as_str() {
                "services" => map.next_value_seed(Each::new(|service: Service| {
                    held.services += 1;
                    held.endpoints += service.endpoints.len() as u64;
                }))?,
                // Endpoints whose service it has not been told of.
                "stagedServices" => map.next_value::<IgnoredAny>().map(drop)?,
                "workloads" => map.next_value_seed(Each::new(|_: IgnoredAny| held.workloads += 1))?,
                "policies" => map.next_value_seed(Each::new(|_: IgnoredAny| held.policies += 1))?,
                "certificates" => {
                    is_size = false;
                    tee.redact(": [");
                    map.next_value_seed(Each::new(|certificate: Certificate| {
                        held.certificates += u64::from(certificate.state == "Available");
                    }))?;
                    tee.resume("]");
                }
                _ => {
                    is_size = false;
                    map.next_value::<IgnoredAny>()?;
                }
            }
            if is_size {
                held.size_bytes += tee.position().saturating_sub(begins_at);
            }
        }
        lacking.first().map_or(Ok(()), |part| Err(A::Error::missing_field(part)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A real ztunnel's, with other text for its certificates, one identity more that waits for its own, and most of what
    /// it was started with left out.
    const RECORDED: &str = include_str!("../../tests/fixtures/ztunnel_config_dump.json");

    #[test]
    fn a_recorded_dump_is_counted() {
        let configuration = count(RECORDED.as_bytes(), &mut Vec::new()).unwrap();
        let counts = ConfigurationCounts {
            // The API's own and the server's, which alone has somebody behind it.
            services: Some(2),
            endpoints: Some(1),
            // Client, server, ztunnel.
            workloads: Some(3),
            policies: Some(1),
            // A third waits for its own.
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
    fn the_copy_is_what_ztunnel_wrote_without_its_certificates() {
        let mut copy = Vec::new();
        count(RECORDED.as_bytes(), &mut copy).unwrap();
        let copy = String::from_utf8(copy).unwrap();
        assert!(RECORDED.contains("LS0tLS1CRUdJTi") && !copy.contains("LS0tLS1CRUdJTi"));
        let mut expected: Value = serde_json::from_str(RECORDED).unwrap();
        expected["certificates"] = json!([]);
        assert_eq!(serde_json::from_str::<Value>(&copy).unwrap(), expected);
    }

    #[test]
    fn what_is_no_dump_is_an_error() {
        let cases: [(&str, &str); 5] = [
            ("", "EOF while parsing a value"),
            ("{}", "missing field `services`"),
            (r#"{"services":[]}"#, "missing field `workloads`"),
            (r#"{"services":{}}"#, "expected a list"),
            (&RECORDED[..RECORDED.len() / 2], "EOF while parsing"),
        ];
        for (text, expected) in cases {
            let error = count(text.as_bytes(), &mut Vec::new()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
