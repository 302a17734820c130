//! Images for one platform, indexes of several, and charts.

use serde_json::{Value, json};

use crate::layer::{Compression, LayerBuilder};

/// Content with its digest.
#[derive(Debug, Clone)]
pub struct Content {
    /// `sha256:…`.
    pub digest: String,
    /// Media type.
    pub media_type: String,
    /// The content.
    pub bytes: Vec<u8>,
}

impl Content {
    /// Content of any kind.
    pub fn new(media_type: &str, bytes: Vec<u8>) -> Self {
        let hash = ring::digest::digest(&ring::digest::SHA256, &bytes);
        let hex: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { digest: format!("sha256:{hex}"), media_type: media_type.to_owned(), bytes }
    }

    fn descriptor(&self) -> Value {
        json!({"mediaType": self.media_type, "digest": self.digest, "size": self.bytes.len()})
    }
}

/// What a tag names, with all its parts.
#[derive(Debug, Clone)]
pub struct Artifact {
    /// The manifest or index that the tag names.
    pub root: Content,
    /// Manifests that an index names.
    pub manifests: Vec<Content>,
    /// Configurations and layers.
    pub blobs: Vec<Content>,
}

impl Artifact {
    /// All manifests, starting with the tag's.
    pub fn all_manifests(&self) -> impl Iterator<Item = &Content> {
        std::iter::once(&self.root).chain(&self.manifests)
    }

    fn from_parts(media_type: &str, config: Content, layers: Vec<Content>) -> Self {
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": media_type,
            "config": config.descriptor(),
            "layers": layers.iter().map(Content::descriptor).collect::<Vec<_>>(),
        });
        let root = Content::new(media_type, manifest.to_string().into_bytes());
        Self { root, manifests: Vec::new(), blobs: std::iter::once(config).chain(layers).collect() }
    }
}

/// Media types of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaTypes {
    /// As Docker pushes them, and as in Istio's images.
    Docker,
    /// As OCI specifies them.
    Oci,
}

impl MediaTypes {
    fn manifest(self) -> &'static str {
        match self {
            Self::Docker => "application/vnd.docker.distribution.manifest.v2+json",
            Self::Oci => "application/vnd.oci.image.manifest.v1+json",
        }
    }

    fn index(self) -> &'static str {
        match self {
            Self::Docker => "application/vnd.docker.distribution.manifest.list.v2+json",
            Self::Oci => "application/vnd.oci.image.index.v1+json",
        }
    }

    fn config(self) -> &'static str {
        match self {
            Self::Docker => "application/vnd.docker.container.image.v1+json",
            Self::Oci => "application/vnd.oci.image.config.v1+json",
        }
    }

    fn layer(self, compression: Compression) -> String {
        let (base, separator) = match self {
            Self::Docker => ("application/vnd.docker.image.rootfs.diff.tar", '.'),
            Self::Oci => ("application/vnd.oci.image.layer.v1.tar", '+'),
        };
        match compression {
            Compression::None => base.to_owned(),
            Compression::Gzip => format!("{base}{separator}gzip"),
            Compression::Zstd => format!("{base}{separator}zstd"),
        }
    }
}

/// Builds an image for one platform.
pub struct ImageBuilder {
    media_types: MediaTypes,
    architecture: String,
    layers: Vec<Content>,
}

impl ImageBuilder {
    /// An image without layers for this machine's architecture.
    pub fn new(media_types: MediaTypes) -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        Self { media_types, architecture: architecture.to_owned(), layers: Vec::new() }
    }

    /// Sets another architecture: `amd64`, `arm64`.
    #[must_use]
    pub fn architecture(mut self, architecture: &str) -> Self {
        architecture.clone_into(&mut self.architecture);
        self
    }

    /// Adds a layer on top.
    #[must_use]
    pub fn layer(mut self, layer: LayerBuilder) -> Self {
        let (compression, bytes) = layer.finish();
        self.layers.push(Content::new(&self.media_types.layer(compression), bytes));
        self
    }

    /// Adds any content as the top layer.
    #[must_use]
    pub fn raw_layer(mut self, media_type: &str, bytes: Vec<u8>) -> Self {
        self.layers.push(Content::new(media_type, bytes));
        self
    }

    /// Returns the image.
    pub fn build(self) -> Artifact {
        let config = json!({
            "architecture": self.architecture,
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": []},
        });
        let config = Content::new(self.media_types.config(), config.to_string().into_bytes());
        Artifact::from_parts(self.media_types.manifest(), config, self.layers)
    }
}

/// Images for several platforms under one tag.
pub struct Index {
    media_types: MediaTypes,
    entries: Vec<Value>,
    manifests: Vec<Content>,
    blobs: Vec<Content>,
}

impl Index {
    /// An index without images.
    pub fn new(media_types: MediaTypes) -> Self {
        Self { media_types, entries: Vec::new(), manifests: Vec::new(), blobs: Vec::new() }
    }

    /// Adds an image for Linux on `architecture`.
    #[must_use]
    pub fn image(mut self, architecture: &str, image: Artifact) -> Self {
        let mut entry = image.root.descriptor();
        entry["platform"] = json!({"os": "linux", "architecture": architecture});
        self.entries.push(entry);
        self.manifests.push(image.root);
        self.manifests.extend(image.manifests);
        self.blobs.extend(image.blobs);
        self
    }

    /// Returns the index.
    pub fn build(self) -> Artifact {
        let media_type = self.media_types.index();
        let index = json!({"schemaVersion": 2, "mediaType": media_type, "manifests": self.entries});
        let root = Content::new(media_type, index.to_string().into_bytes());
        Artifact { root, manifests: self.manifests, blobs: self.blobs }
    }
}

/// A Helm chart as an OCI artifact.
pub struct Chart {
    name: String,
    version: String,
    archive: LayerBuilder,
}

impl Chart {
    /// A chart with only its `Chart.yaml`.
    pub fn new(name: &str, version: &str) -> Self {
        let yaml = format!("apiVersion: v2\nname: {name}\nversion: {version}\nappVersion: {version}\n");
        let archive =
            LayerBuilder::new(Compression::Gzip).file(&format!("{name}/Chart.yaml"), yaml.as_bytes());
        Self { name: name.to_owned(), version: version.to_owned(), archive }
    }

    /// Adds a file by its path within the chart.
    #[must_use]
    pub fn file(mut self, path: &str, content: &[u8]) -> Self {
        self.archive = self.archive.file(&format!("{}/{path}", self.name), content);
        self
    }

    /// Returns the chart in the form that `helm push` uploads.
    pub fn build(self) -> Artifact {
        let config = json!({"name": self.name, "version": self.version, "apiVersion": "v2"});
        let config =
            Content::new("application/vnd.cncf.helm.config.v1+json", config.to_string().into_bytes());
        let (_, archive) = self.archive.finish();
        let layer = Content::new("application/vnd.cncf.helm.chart.content.v1.tar+gzip", archive);
        Artifact::from_parts(MediaTypes::Oci.manifest(), config, vec![layer])
    }
}
