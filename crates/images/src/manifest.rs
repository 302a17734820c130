//! Manifests, indexes and configurations in the formats of Docker and OCI.

use serde::Deserialize;

use crate::Platform;
use crate::digest::Digest;

const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// Media types that a request for a manifest accepts.
pub(crate) const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json";

const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";

/// Media types of layers that are archives. Their compression is detected from their first bytes, as
/// container engines do.
const LAYERS: [&str; 6] = [
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.docker.image.rootfs.diff.tar.zstd",
];
const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
/// A chart's signature, which is next to the chart and not an archive.
const CHART_PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";
const MAX_LAYERS: usize = 500;
/// Maximum number of platforms that an error lists.
const MAX_SHOWN_PLATFORMS: usize = 10;

/// A document that a reference names, in either form.
#[derive(Debug)]
pub(crate) enum Document {
    Index(Vec<IndexEntry>),
    Manifest(Manifest),
}

#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) config: Descriptor,
    /// Archives only, lowest layer first.
    pub(crate) layers: Vec<Descriptor>,
}

#[derive(Debug, Clone)]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
}

impl Descriptor {
    /// True for the configuration of an image, which has a platform.
    pub(crate) fn is_image_config(&self) -> bool {
        self.media_type == OCI_CONFIG || self.media_type == DOCKER_CONFIG
    }
}

#[derive(Debug)]
pub(crate) struct IndexEntry {
    pub(crate) descriptor: Descriptor,
    platform: Option<Platform>,
    is_attestation: bool,
}

/// Why a document cannot be used.
#[derive(Debug)]
pub(crate) enum Unreadable {
    Invalid(String),
    Unsupported(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    schema_version: Option<u64>,
    media_type: Option<String>,
    config: Option<RawDescriptor>,
    layers: Option<Vec<RawDescriptor>>,
    manifests: Option<Vec<RawDescriptor>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDescriptor {
    media_type: Option<String>,
    digest: String,
    size: u64,
    platform: Option<Platform>,
    annotations: Option<std::collections::BTreeMap<String, String>>,
}

impl RawDescriptor {
    fn check(self) -> Result<Descriptor, Unreadable> {
        let shown = crate::error::one_line(&self.digest, 100);
        let digest = self.digest.parse().map_err(|()| {
            Unreadable::Unsupported(format!(
                "the manifest has a digest that is neither SHA-256 nor SHA-512: {shown}"
            ))
        })?;
        Ok(Descriptor { media_type: self.media_type.unwrap_or_default(), digest, size: self.size })
    }
}

/// Reads an index or manifest. `content_type` is that of the response.
pub(crate) fn read(body: &[u8], content_type: &str) -> Result<Document, Unreadable> {
    let raw: Raw = serde_json::from_slice(body).map_err(|error| {
        Unreadable::Invalid(format!(
            "the manifest is not readable: {}",
            crate::error::one_line(&error.to_string(), 200)
        ))
    })?;
    if raw.schema_version != Some(2) {
        return Err(Unreadable::Unsupported(
            "the manifest has the old first schema of Docker, which is not supported".to_owned(),
        ));
    }
    let media_type = raw.media_type.as_deref().unwrap_or(content_type);
    match (media_type, raw.manifests, raw.layers) {
        (_, Some(_), Some(_)) => {
            Err(Unreadable::Invalid("the manifest has layers and manifests: it means two things".to_owned()))
        }
        (OCI_INDEX | DOCKER_INDEX, Some(manifests), None) => {
            manifests.into_iter().map(read_entry).collect::<Result<_, _>>().map(Document::Index)
        }
        (OCI_MANIFEST | DOCKER_MANIFEST, None, Some(layers)) => {
            let config = raw
                .config
                .ok_or_else(|| Unreadable::Invalid("the manifest has no configuration".to_owned()))?;
            if layers.len() > MAX_LAYERS {
                return Err(Unreadable::Invalid(format!("the manifest has {} layers", layers.len())));
            }
            let layers = layers.into_iter().map(RawDescriptor::check).collect::<Result<Vec<_>, _>>()?;
            Ok(Document::Manifest(Manifest { config: config.check()?, layers: archives(layers)? }))
        }
        (media_type, _, _) => {
            let shown = crate::error::one_line(media_type, 100);
            Err(Unreadable::Unsupported(format!("its manifest is of an unknown kind, \"{shown}\"")))
        }
    }
}

fn read_entry(mut raw: RawDescriptor) -> Result<IndexEntry, Unreadable> {
    let platform = raw.platform.take();
    let annotations = raw.annotations.take().unwrap_or_default();
    let is_attestation = annotations.contains_key("vnd.docker.reference.type");
    Ok(IndexEntry { descriptor: raw.check()?, platform, is_attestation })
}

fn archives(layers: Vec<Descriptor>) -> Result<Vec<Descriptor>, Unreadable> {
    let mut archives = Vec::with_capacity(layers.len());
    for layer in layers {
        match layer.media_type.as_str() {
            CHART => archives.push(layer),
            media_type if LAYERS.contains(&media_type) => archives.push(layer),
            CHART_PROVENANCE => {}
            media_type if media_type.contains("nondistributable") || media_type.contains(".foreign.") => {
                return Err(Unreadable::Unsupported(format!(
                    "layer {} may not be distributed and lies elsewhere, which is not supported",
                    layer.digest
                )));
            }
            media_type => {
                let shown = crate::error::one_line(media_type, 100);
                return Err(Unreadable::Unsupported(format!(
                    "layer {} is of an unknown kind, \"{shown}\"",
                    layer.digest
                )));
            }
        }
    }
    Ok(archives)
}

/// The entry for `platform`, or else a list of the available platforms.
pub(crate) fn choose<'a>(entries: &'a [IndexEntry], platform: &Platform) -> Result<&'a Descriptor, String> {
    let images = || entries.iter().filter(|entry| !entry.is_attestation);
    if let Some(entry) = images().find(|entry| entry.platform.as_ref() == Some(platform)) {
        return Ok(&entry.descriptor);
    }
    let mut available: Vec<String> = images()
        .map(|entry| entry.platform.as_ref().map_or_else(|| "unknown".to_owned(), Platform::to_string))
        .map(|platform| crate::error::one_line(&platform, 50))
        .take(MAX_SHOWN_PLATFORMS)
        .collect();
    available.dedup();
    Err(if available.is_empty() { "no platform at all".to_owned() } else { available.join(", ") })
}

/// Reads `document` like a registry's response, and checks invariants of all documents: only archives are layers, no
/// attestation is an image, and errors are short lines. For fuzzing.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_manifest(document: &[u8], content_type: &str) {
    match read(document, content_type) {
        Ok(Document::Index(entries)) => {
            let platform = Platform { os: "linux".to_owned(), architecture: "amd64".to_owned() };
            match choose(&entries, &platform) {
                Ok(chosen) => {
                    let is_image = |entry: &IndexEntry| {
                        !entry.is_attestation && entry.platform.as_ref() == Some(&platform)
                    };
                    let mut images = entries.iter().filter(|entry| is_image(entry));
                    assert!(images.any(|entry| entry.descriptor.digest == chosen.digest));
                }
                Err(available) => assert_is_short_line(&available),
            }
        }
        Ok(Document::Manifest(manifest)) => {
            assert!(manifest.layers.len() <= MAX_LAYERS);
            for layer in &manifest.layers {
                assert!(
                    layer.media_type == CHART || LAYERS.contains(&layer.media_type.as_str()),
                    "{layer:?}"
                );
                assert_eq!(layer.digest.to_string().parse::<Digest>().as_ref(), Ok(&layer.digest));
            }
            let _ = manifest.config.is_image_config();
        }
        Err(Unreadable::Invalid(reason) | Unreadable::Unsupported(reason)) => assert_is_short_line(&reason),
    }
}

fn assert_is_short_line(text: &str) {
    assert!(text.len() < 4000 && !text.chars().any(char::is_control), "{text:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

    fn manifest_with_layer(media_type: &str) -> Vec<u8> {
        format!(
            r#"{{"schemaVersion":2,"mediaType":"{OCI_MANIFEST}","config":{{"mediaType":"{OCI_CONFIG}","digest":"{DIGEST}","size":1}},
            "layers":[{{"mediaType":"{media_type}","digest":"{DIGEST}","size":1}}]}}"#
        )
        .into_bytes()
    }

    #[test]
    fn archives_of_docker_oci_and_helm_are_layers() {
        for media_type in LAYERS.into_iter().chain([CHART]) {
            let Ok(Document::Manifest(manifest)) = read(&manifest_with_layer(media_type), "") else {
                panic!()
            };
            assert_eq!(manifest.layers.len(), 1, "{media_type}");
        }
        let Ok(Document::Manifest(manifest)) = read(&manifest_with_layer(CHART_PROVENANCE), "") else {
            panic!()
        };
        assert!(manifest.layers.is_empty());
    }

    #[test]
    fn other_layers_are_named() {
        for media_type in [
            "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
            "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
            "application/vnd.wasm.content.layer.v1+wasm",
        ] {
            let Err(Unreadable::Unsupported(reason)) = read(&manifest_with_layer(media_type), "") else {
                panic!()
            };
            assert!(reason.contains("not supported") || reason.contains(media_type), "{reason}");
        }
    }

    #[test]
    fn ambiguous_manifest_is_rejected() {
        let both = format!(r#"{{"schemaVersion":2,"mediaType":"{OCI_INDEX}","layers":[],"manifests":[]}}"#);
        assert!(matches!(read(both.as_bytes(), ""), Err(Unreadable::Invalid(_))));
        let index = r#"{"schemaVersion":2,"manifests":[]}"#;
        assert!(matches!(read(index.as_bytes(), OCI_MANIFEST), Err(Unreadable::Unsupported(_))));
        assert!(matches!(read(index.as_bytes(), OCI_INDEX), Ok(Document::Index(_))));
        assert!(matches!(read(b"<html>", OCI_INDEX), Err(Unreadable::Invalid(_))));
        assert!(matches!(read(br#"{"schemaVersion":1}"#, OCI_INDEX), Err(Unreadable::Unsupported(_))));
    }

    #[test]
    fn attestations_are_not_images() {
        let amd64 = Platform { os: "linux".to_owned(), architecture: "amd64".to_owned() };
        let entry = |platform: &str, annotations: &str| {
            format!(
                r#"{{"mediaType":"{OCI_MANIFEST}","digest":"{DIGEST}","size":1,
                "platform":{{"os":"linux","architecture":"{platform}"}},"annotations":{annotations}}}"#
            )
        };
        let attestation = r#"{"vnd.docker.reference.type":"attestation-manifest"}"#;
        let index = format!(
            r#"{{"schemaVersion":2,"mediaType":"{OCI_INDEX}","manifests":[{},{}]}}"#,
            entry("amd64", attestation),
            entry("arm64", "{}")
        );
        let Ok(Document::Index(entries)) = read(index.as_bytes(), "") else { panic!() };
        assert_eq!(choose(&entries, &amd64).unwrap_err(), "linux/arm64");
    }
}
