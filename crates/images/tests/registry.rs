//! Files from images in a real registry.

mod common;

use std::os::unix::fs::PermissionsExt;

use common::{Place, wanted};
use images::{ImageError, ImageReference, Platform, Wanted, Watch, digest};
use test_support::{
    Artifact, Chart, Compression, Content, ImageBuilder, Index, LayerBuilder, MediaTypes, Registry,
    RegistryOptions,
};

const ENVOY: &str = "/usr/local/bin/envoy";
const TEMPLATE: &str = "/var/lib/istio/envoy/envoy_bootstrap_tmpl.json";

/// Content that does not compress well.
fn program(seed: u32, length: usize) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// Laid out like Istio's proxy image: a distribution at the bottom, then a layer per file.
fn proxy(envoy: &[u8]) -> ImageBuilder {
    let base = LayerBuilder::new(Compression::Gzip)
        .directory("usr")
        .directory("usr/local/bin")
        .file("usr/local/bin/envoy", b"an older one")
        .file("usr/local/bin/removed", b"of the base image")
        .file("lib/libc.so", &program(1, 400_000));
    ImageBuilder::new(MediaTypes::Docker)
        .layer(base)
        .layer(LayerBuilder::new(Compression::Gzip).file(TEMPLATE, b"{}"))
        .layer(LayerBuilder::new(Compression::Zstd).file(ENVOY, envoy).whiteout("usr/local/bin/removed"))
        .layer(LayerBuilder::new(Compression::None).file("./usr/local/bin/pilot-agent", b"agent"))
}

/// An index with the image for this machine and one for another.
fn index(image: Artifact) -> Artifact {
    let host = Platform::host().architecture;
    let other = ImageBuilder::new(MediaTypes::Docker).architecture("s390x");
    let other = other.layer(LayerBuilder::new(Compression::Gzip).file(ENVOY, b"of another machine")).build();
    Index::new(MediaTypes::Docker).image("s390x", other).image(&host, image).build()
}

fn proxy_files() -> [Wanted; 3] {
    let template = Wanted { executable: false, ..wanted(TEMPLATE, "envoy_bootstrap.json") };
    [wanted(ENVOY, "envoy"), template, wanted("/usr/local/bin/pilot-agent", "pilot-agent")]
}

fn check_proxy(options: RegistryOptions) {
    let registry = Registry::start(options);
    let envoy = program(2, 3_000_000);
    let artifact = index(proxy(&envoy).build());
    registry.push("istio/proxyv2", "1.30.1", &artifact);
    let mut place = Place::new();
    place.access.docker_config = Some(registry.docker_config());
    place.access.roots = registry.ca();
    let name = format!("{}/istio/proxyv2:1.30.1", registry.address());
    let mut progress = Progress::default();
    let extracted = place.extract_watched(&name, &proxy_files(), &mut progress).unwrap();

    assert_eq!(place.files(), ["envoy", "envoy_bootstrap.json", "pilot-agent"]);
    assert!(place.content("envoy") == envoy && place.content("pilot-agent") == b"agent");
    let mode =
        |name: &str| place.destination.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("envoy"), mode("envoy_bootstrap.json")), (0o755, 0o644));
    assert_eq!(extracted.reference, name);
    assert_eq!(extracted.index_digest.as_deref(), Some(artifact.root.digest.as_str()));
    assert_eq!(extracted.manifest_digest, artifact.manifests[1].digest);
    assert_eq!(extracted.platform, Some(Platform::host()));
    let of_envoy = &extracted.files[0];
    assert_eq!((of_envoy.path.as_str(), of_envoy.size_bytes), (ENVOY, 3_000_000));
    assert_eq!(format!("sha256:{}", of_envoy.sha256), Content::new("", envoy).digest);
    // All layers except the distribution's.
    let layers = &artifact.blobs[artifact.blobs.len() - 3..];
    let expected: usize = layers.iter().map(|layer| layer.bytes.len()).sum();
    assert_eq!((progress.bytes, progress.of), (expected as u64, expected as u64));
    // By its digest, as the registry returns it for a HEAD request.
    let reference: ImageReference = name.parse().unwrap();
    assert_eq!(digest(&reference, &place.access, &mut ()).unwrap(), artifact.root.digest);
    let by_digest = format!("{}/istio/proxyv2@{}", registry.address(), artifact.root.digest);
    assert_eq!(place.extract(&by_digest, &proxy_files()).unwrap().manifest_digest, extracted.manifest_digest);
}

#[derive(Default)]
struct Progress {
    bytes: u64,
    of: u64,
}

impl Watch for Progress {
    fn progress(&mut self, bytes: u64, of: u64) {
        assert!(bytes >= self.bytes && of >= self.of && bytes <= of);
        (self.bytes, self.of) = (bytes, of);
    }

    fn interrupted(&mut self) -> bool {
        false
    }
}

#[test]
fn files_are_extracted_from_open_registry() {
    check_proxy(RegistryOptions::default());
}

#[test]
fn files_are_extracted_over_tls() {
    check_proxy(RegistryOptions { tls: true, ..RegistryOptions::default() });
}

#[test]
fn files_are_extracted_with_token() {
    check_proxy(RegistryOptions { token: true, ..RegistryOptions::default() });
}

#[test]
fn files_are_extracted_with_token_over_tls() {
    check_proxy(RegistryOptions { token: true, tls: true, ..RegistryOptions::default() });
}

#[test]
fn files_are_extracted_with_password_over_tls() {
    check_proxy(RegistryOptions { basic: true, tls: true, ..RegistryOptions::default() });
}

#[test]
fn files_are_extracted_from_charts() {
    let registry = Registry::start(RegistryOptions::default());
    let chart = Chart::new("base", "1.30.1")
        .file("files/crd-all.gen.yaml", b"kind: CustomResourceDefinition\n")
        .build();
    registry.push("istio/charts/base", "1.30.1", &chart);
    let place = Place::new();
    let name = format!("oci://{}/istio/charts/base:1.30.1", registry.address());
    let extracted =
        place.extract(&name, &[wanted("base/files/crd-all.gen.yaml", "istio-crds.yaml")]).unwrap();
    assert_eq!(place.content("istio-crds.yaml"), b"kind: CustomResourceDefinition\n");
    assert_eq!((extracted.index_digest, extracted.platform), (None, None));
}

#[test]
fn links_resolve_to_files_of_any_layer() {
    let registry = Registry::start(RegistryOptions::default());
    let image = ImageBuilder::new(MediaTypes::Oci)
        .layer(LayerBuilder::new(Compression::Zstd).symlink("bin", "usr/bin").file("usr/lib/below", b"below"))
        .layer(
            LayerBuilder::new(Compression::Gzip)
                .file("usr/bin/first", b"content")
                .hard_link("usr/bin/second", "usr/bin/first"),
        )
        .layer(LayerBuilder::new(Compression::Gzip).symlink("usr/bin/third", "../lib/below"))
        .build();
    registry.push("istio/links", "1", &image);
    let place = Place::new();
    let files =
        [wanted("/bin/second", "second"), wanted("/bin/third", "third"), wanted("/usr/bin/first", "first")];
    let extracted = place.extract(&format!("{}/istio/links:1", registry.address()), &files).unwrap();
    assert_eq!(place.content("second"), b"content");
    assert_eq!(place.content("third"), b"below");
    assert_eq!(place.content("first"), b"content");
    assert_eq!(extracted.files.len(), 3);
}

#[test]
fn missing_content_is_named_in_error() {
    let registry = Registry::start(RegistryOptions::default());
    registry.push("istio/proxyv2", "1", &index(proxy(b"envoy").build()));
    let image = ImageBuilder::new(MediaTypes::Oci).architecture("s390x");
    registry.push(
        "istio/other",
        "1",
        &image.layer(LayerBuilder::new(Compression::None).file("a", b"")).build(),
    );
    let place = Place::new();
    let named = |image: &str| format!("{}/istio/{image}", registry.address());

    for name in ["proxyv2:2", "absent:1"] {
        let error = place.fails(&named(name), &proxy_files());
        assert!(matches!(error, ImageError::NotFound { .. }), "{error}");
        let reference: ImageReference = named(name).parse().unwrap();
        assert!(matches!(digest(&reference, &place.access, &mut ()), Err(ImageError::NotFound { .. })));
    }
    for (path, reason) in
        [("/usr/local/bin/removed", "removed by one of its layers"), ("/bin/x", "none of its layers")]
    {
        let error = place.fails(&named("proxyv2:1"), &[wanted(ENVOY, "envoy"), wanted(path, "x")]);
        assert!(matches!(&error, ImageError::FileAbsent { path: absent, .. } if absent == path), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
    let error = place.fails(&named("other:1"), &[wanted("/a", "a")]);
    assert!(matches!(error, ImageError::NoSuchPlatform { .. }), "{error}");
    assert!(error.to_string().contains("only for linux/s390x"), "{error}");

    let found = place
        .extract(
            &named("proxyv2:1"),
            &[wanted(ENVOY, "envoy"), Wanted { optional: true, ..wanted("/bin/x", "x") }],
        )
        .unwrap();
    assert_eq!((found.files.len(), place.files()), (1, vec!["envoy".to_owned()]));
}

#[test]
fn index_without_platform_lists_available_ones() {
    let registry = Registry::start(RegistryOptions::default());
    let image = |architecture: &str| {
        let image = ImageBuilder::new(MediaTypes::Oci).architecture(architecture);
        image.layer(LayerBuilder::new(Compression::None).file("a", b"")).build()
    };
    let index = Index::new(MediaTypes::Oci).image("s390x", image("s390x")).image("ppc64le", image("ppc64le"));
    registry.push("istio/pilot", "1", &index.build());
    let place = Place::new();
    let error = place.fails(&format!("{}/istio/pilot:1", registry.address()), &[wanted("/a", "a")]);
    assert!(error.to_string().contains("only for linux/s390x, linux/ppc64le"), "{error}");
}

#[test]
fn registry_rejects_missing_credentials() {
    for options in [
        RegistryOptions { token: true, ..RegistryOptions::default() },
        RegistryOptions { basic: true, ..RegistryOptions::default() },
    ] {
        let registry = Registry::start(options);
        registry.push("istio/proxyv2", "1", &proxy(b"envoy").build());
        let name = format!("{}/istio/proxyv2:1", registry.address());
        let mut place = Place::new();
        let error = place.fails(&name, &proxy_files());
        assert!(matches!(error, ImageError::Refused { .. }), "{error}");
        assert!(error.to_string().contains("docker login"), "{error}");

        let wrong = registry.docker_config().with_file_name("wrong.json");
        // user:wrong
        let auths = format!(r#"{{"auths": {{"{}": {{"auth": "dXNlcjp3cm9uZw=="}}}}}}"#, registry.address());
        std::fs::write(&wrong, auths).unwrap();
        place.access.docker_config = Some(wrong);
        let error = place.fails(&name, &proxy_files());
        assert!(matches!(error, ImageError::Refused { .. }), "{error}");
        assert!(!error.to_string().contains("wrong:") && !error.to_string().contains("dXNl"), "{error}");

        // An unreadable configuration is reported, since it could have had credentials.
        place.access.docker_config = Some(registry.docker_config().with_file_name("absent.json"));
        let error = place.fails(&name, &proxy_files());
        assert!(error.to_string().contains("absent.json cannot be read"), "{error}");
    }
}

#[test]
fn identity_token_is_exchanged_for_access_tokens() {
    let registry = Registry::start(RegistryOptions { token: true, ..RegistryOptions::default() });
    registry.push("istio/proxyv2", "1", &proxy(b"envoy").build());
    let mut place = Place::new();
    place.access.docker_config = Some(registry.docker_config_with_identity_token());
    place.extract(&format!("{}/istio/proxyv2:1", registry.address()), &proxy_files()).unwrap();
    assert_eq!(registry.token_requests(), 1);
}

#[test]
fn certificate_of_unknown_authority_is_rejected() {
    let registry = Registry::start(RegistryOptions { tls: true, ..RegistryOptions::default() });
    registry.push("istio/proxyv2", "1", &proxy(b"envoy").build());
    let name = format!("{}/istio/proxyv2:1", registry.address());
    let place = Place::new();
    let error = place.fails(&name, &proxy_files());
    assert!(matches!(error, ImageError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[test]
fn corrupted_stored_content_is_detected() {
    let registry = Registry::start(RegistryOptions::default());
    let image = proxy(&program(3, 50_000)).build();
    registry.push("istio/proxyv2", "1", &image);
    let layer = image.blobs.iter().rev().nth(1).unwrap();
    let mut changed = layer.bytes.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    registry.corrupt(layer, &changed);
    let place = Place::new();
    let error = place.fails(&format!("{}/istio/proxyv2:1", registry.address()), &proxy_files());
    assert!(matches!(error, ImageError::WrongDigest { .. }), "{error}");
}
