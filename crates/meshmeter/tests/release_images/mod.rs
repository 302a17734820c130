//! Releases of Istio as images with the layout of Istio's own, built from the installed components.

use components::{Component, IstioFiles, Overrides, find, istio_files};
use std::fs;
use std::path::{Path, PathBuf};
use test_support::{Artifact, Chart, Compression, ImageBuilder, Index, LayerBuilder, MediaTypes, Registry};

pub fn installed(component: Component) -> PathBuf {
    find(component, &Overrides::default().without_release())
        .expect("this needs the components: `meshmeter lab install --from-source`")
        .path
}

fn files() -> IstioFiles {
    istio_files(&Overrides::default().without_release()).expect("this needs Istio's files")
}

/// An image as Istio publishes it: an index with two architectures, and base layers below. `layers` are for
/// this machine's architecture.
pub fn image(layers: impl IntoIterator<Item = LayerBuilder>) -> Artifact {
    let host = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let other = if host == "amd64" { "arm64" } else { "amd64" };
    let base = || LayerBuilder::new(Compression::Gzip).file("etc/os-release", b"NAME=base\n");
    let image = ImageBuilder::new(MediaTypes::Oci).layer(base());
    let image = layers.into_iter().fold(image, ImageBuilder::layer).build();
    let foreign = ImageBuilder::new(MediaTypes::Oci).architecture(other).layer(base()).build();
    Index::new(MediaTypes::Oci).image(other, foreign).image(host, image).build()
}

/// Pushes a release of the installed components with this Envoy, and with a ztunnel if one is given. Its proxies
/// have `further_clusters` of their own.
pub fn push_release(
    registry: &Registry,
    version: &str,
    envoy: &Path,
    ztunnel: Option<&Path>,
    further_clusters: usize,
) {
    let pilot = LayerBuilder::new(Compression::None)
        .file_from("usr/local/bin/pilot-discovery", &installed(Component::Istiod));
    registry.push("istio/pilot", version, &image([pilot]));
    let IstioFiles { istio_crds, bootstrap_template, .. } = files();
    let cluster = |number| {
        format!(
            r#"{{"name": "further_{number}", "type": "STATIC", "connect_timeout": "1s", "load_assignment": {{"cluster_name": "further_{number}"}}}},"#
        )
    };
    let clusters: String = (0..further_clusters).map(cluster).collect();
    let template = fs::read_to_string(bootstrap_template).unwrap();
    let template = template.replacen(r#""clusters": ["#, &format!(r#""clusters": [{clusters}"#), 1);
    let earlier = LayerBuilder::new(Compression::Gzip)
        .file("usr/local/bin/pilot-agent", b"an earlier build")
        .file("var/lib/istio/envoy/envoy_bootstrap_tmpl.json", b"{}");
    let gone = LayerBuilder::new(Compression::None).whiteout("usr/local/bin/pilot-agent");
    let agent = LayerBuilder::new(Compression::Gzip)
        .file_from("usr/local/bin/pilot-agent", &installed(Component::PilotAgent))
        .file("var/lib/istio/envoy/envoy_bootstrap_tmpl.json", template.as_bytes());
    let envoy = LayerBuilder::new(Compression::Zstd).file_from("usr/local/bin/envoy", envoy);
    registry.push("istio/proxyv2", version, &image([earlier, gone, envoy, agent]));
    if let Some(ztunnel) = ztunnel {
        let ztunnel = LayerBuilder::new(Compression::Gzip).file_from("usr/local/bin/ztunnel", ztunnel);
        registry.push("istio/ztunnel", version, &image([ztunnel]));
    }
    let definitions = fs::read(istio_crds).unwrap();
    let chart = Chart::new("base", version).file("files/crd-all.gen.yaml", &definitions).build();
    registry.push("istio/charts/base", version, &chart);
}
