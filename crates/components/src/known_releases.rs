//! Releases of Istio that this version of Meshmeter knows: digests of their images, and whether they were
//! tested with it.

use super::hub::Hub;
use super::istio_version::ReleaseName;
use super::release;
use super::release_source::{PILOT, ReleaseRequest};
use crate::Result;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KnownReleases {
    /// Oldest first.
    releases: Vec<KnownRelease>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KnownRelease {
    version: String,
    pub evidence: Evidence,
    /// Digests by repository. There are several, since an index and each image in it have one.
    digests: BTreeMap<String, Vec<String>>,
}

/// Evidence for a release.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Evidence {
    /// Its images were pulled, and the tests ran with them.
    Tested,
    /// Its digests were found in independent publications. It was never pulled.
    Published,
}

static KNOWN: LazyLock<KnownReleases> = LazyLock::new(|| {
    KnownReleases::parse(include_str!("../../../components/istio/releases.json")).expect("a test reads it")
});

pub(super) fn known_releases() -> &'static KnownReleases {
    &KNOWN
}

/// The Istio that `meshmeter lab install` installs by default.
#[derive(Debug)]
pub enum DefaultIstio {
    Release(Box<ReleaseRequest>),
    /// No release was tested; the pinned source is used.
    NoneTested,
    /// The tested release is unavailable; the pinned source is used.
    OutOfReach {
        release: ReleaseName,
        reason: String,
    },
}

/// The newest tested release, if it is installed or the hub has it.
pub fn default_istio(hub: &Hub, charts: &Hub) -> Result<DefaultIstio> {
    choose(hub, charts, KNOWN.tested(), release::is_installed)
}

fn choose(
    hub: &Hub,
    charts: &Hub,
    tested: Option<ReleaseName>,
    is_installed: impl FnOnce(&ReleaseName) -> Result<bool>,
) -> Result<DefaultIstio> {
    let Some(release) = tested else { return Ok(DefaultIstio::NoneTested) };
    if !is_installed(&release)?
        && let Err(error) = hub.check(PILOT.repository, release.as_str())
    {
        return Ok(DefaultIstio::OutOfReach { release, reason: error.to_string() });
    }
    let request =
        ReleaseRequest { name: release, hub: hub.clone(), charts: charts.clone(), with_ztunnel: true };
    Ok(DefaultIstio::Release(Box::new(request)))
}

impl KnownReleases {
    pub(super) fn parse(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    pub(super) fn find(&self, name: &ReleaseName) -> Option<&KnownRelease> {
        self.releases.iter().find(|release| release.version == name.as_str())
    }

    pub(super) fn tested(&self) -> Option<ReleaseName> {
        let tested = self.releases.iter().rfind(|release| release.evidence == Evidence::Tested)?;
        tested.version.parse().ok()
    }
}

impl KnownRelease {
    /// Accepted digests of an image; empty if none are known.
    pub(super) fn digests(&self, repository: &str) -> &[String] {
        self.digests.get(repository).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_support::{ImageBuilder, MediaTypes, Registry, RegistryOptions};

    #[test]
    fn known_digests_are_valid_and_complete_for_tested_releases() {
        for release in &known_releases().releases {
            assert!(release.version.parse::<ReleaseName>().is_ok(), "{}", release.version);
            for digest in release.digests.values().flatten() {
                let hexadecimal = digest.strip_prefix("sha256:").unwrap();
                assert!(hexadecimal.len() == 64 && hexadecimal.bytes().all(|byte| byte.is_ascii_hexdigit()));
            }
            let complete = ["pilot", "proxyv2", "ztunnel", "base"]
                .iter()
                .all(|repository| !release.digests(repository).is_empty());
            assert!(complete || release.evidence != Evidence::Tested, "{}", release.version);
        }
    }

    #[test]
    fn newest_tested_release_is_default() {
        let text = |evidence: [&str; 3]| {
            let release = |(minor, evidence)| {
                format!(r#"{{"version": "1.{minor}.0", "evidence": "{evidence}", "digests": {{}}}}"#)
            };
            format!(
                r#"{{"releases": [{}]}}"#,
                (29..).zip(evidence).map(release).collect::<Vec<_>>().join(",")
            )
        };
        let tested = |evidence| KnownReleases::parse(&text(evidence)).unwrap().tested();
        assert_eq!(tested(["tested", "tested", "published"]), "1.30.0".parse().ok());
        assert_eq!(tested(["published"; 3]), None);
    }

    #[test]
    fn default_release_is_looked_up_in_registry_unless_installed() {
        let hub = Hub::new("localhost:1/istio", None).unwrap();
        let tested: Option<ReleaseName> = "1.30.4".parse().ok();
        assert!(matches!(
            choose(&hub, &hub.charts(), None, |_| Ok(false)).unwrap(),
            DefaultIstio::NoneTested
        ));
        let installed = choose(&hub, &hub.charts(), tested.clone(), |_| Ok(true)).unwrap();
        assert!(
            matches!(installed, DefaultIstio::Release(request) if Some(&request.name) == tested.as_ref())
        );
        let absent = choose(&hub, &hub.charts(), tested.clone(), |_| Ok(false)).unwrap();
        assert!(matches!(absent, DefaultIstio::OutOfReach { reason, .. } if !reason.is_empty()));

        let registry = Registry::start(RegistryOptions::default());
        registry.push("istio/pilot", "1.30.4", &ImageBuilder::new(MediaTypes::Oci).build());
        let hub = Hub::new(&format!("{}/istio", registry.address()), None).unwrap();
        let there = choose(&hub, &hub.charts(), tested, |_| Ok(false)).unwrap();
        assert!(matches!(there, DefaultIstio::Release(request) if request.with_ztunnel));
    }
}
