//! Registries that are down, slow, broken or malicious.

mod common;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use common::{Place, wanted};
use images::{ImageError, Wanted, Watch};
use socket2::{Domain, Socket, Type};
use test_support::{
    Artifact, Behaviour, Body, Compression, Content, HostileRegistry, ImageBuilder, Index, LayerBuilder,
    MediaTypes, Response, Server,
};

const TAG: &str = "/manifests/1";

fn image_of(layer: LayerBuilder) -> Artifact {
    ImageBuilder::new(MediaTypes::Oci).layer(layer).build()
}

fn plain() -> LayerBuilder {
    LayerBuilder::new(Compression::None)
}

fn program() -> Vec<u8> {
    (0..200_000_u32).flat_map(u32::to_le_bytes).collect()
}

fn image() -> Artifact {
    image_of(plain().file("usr/local/bin/envoy", &program()))
}

fn envoy() -> [Wanted; 1] {
    [wanted("/usr/local/bin/envoy", "envoy")]
}

fn name(registry: &HostileRegistry) -> String {
    format!("{}/istio/proxyv2:1", registry.address())
}

/// The error if a registry of `artifact` shows this behaviour for requests whose path ends in `end`.
fn error_of(artifact: Artifact, end: &str, behaviour: Behaviour) -> ImageError {
    error_for(&Place::new(), artifact, end, behaviour)
}

fn error_for(place: &Place, artifact: Artifact, end: &str, behaviour: Behaviour) -> ImageError {
    let registry = HostileRegistry::start(artifact).with(end, behaviour);
    place.fails(&name(&registry), &envoy())
}

fn layer_of(artifact: &Artifact) -> &Content {
    artifact.blobs.last().unwrap()
}

fn respond(status: u16, body: &str) -> Behaviour {
    Behaviour::Respond(Response::new(status, body))
}

#[track_caller]
fn assert_is(error: &ImageError, is_expected: bool, text: &str) {
    assert!(is_expected && error.to_string().contains(text), "{error}");
}

macro_rules! assert_error {
    ($error:expr, $variant:ident, $text:expr) => {
        let error = $error;
        assert_is(&error, matches!(error, ImageError::$variant { .. }), $text);
    };
}

#[test]
fn registry_that_is_down_is_unreachable() {
    // Bound but never listening, so that nothing else gets the port.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    let name = format!("{}/istio/proxyv2:1", socket.local_addr().unwrap().as_socket().unwrap());
    assert_error!(Place::new().fails(&name, &envoy()), Unreachable, "refused");
}

#[test]
fn silent_registry_is_unreachable() {
    let mut place = Place::new();
    place.access.limits.idle_timeout = Duration::from_millis(300);
    let silence = Behaviour::Respond(Response { body: Body::Silence, ..Response::new(200, "") });
    assert_error!(error_for(&place, image(), TAG, silence), Unreachable, "no response within 0.3 s");
    let artifact = image();
    let digest = layer_of(&artifact).digest.clone();
    // On a busy machine the manifest may take this long.
    assert_error!(error_for(&place, artifact, &digest, Behaviour::StallAfter(5000)), Unreachable, "0.3 s");
}

#[test]
fn rejection_quotes_registry_message() {
    let denied = r#"{"errors":[{"code":"DENIED","message":"not\nfor \u001b[31myou"}]}"#;
    assert_error!(error_of(image(), TAG, respond(403, denied)), Refused, "403 Forbidden: not for [31myou");
    assert_error!(
        error_of(image(), TAG, respond(401, "")),
        Refused,
        "credentials of a kind that is not supported"
    );
    assert_error!(error_of(image(), TAG, respond(404, "<html>")), NotFound, "404 Not Found");
    assert_error!(error_of(image(), TAG, respond(418, "")), InvalidResponse, "418");
    let challenge = |realm: &str| Behaviour::Respond(Response::new(401, "").with("WWW-Authenticate", realm));
    assert_error!(
        error_of(image(), TAG, challenge("Bearer realm=\"ftp://x/\"")),
        InvalidResponse,
        "token service"
    );
    assert_error!(error_of(image(), TAG, challenge("Basic realm=\"x\"")), Refused, "docker login");
}

#[test]
fn temporary_failures_are_retried() {
    let busy = Behaviour::Respond(Response::new(429, "").with("Retry-After", "0"));
    let failing = respond(503, "");
    let registry = HostileRegistry::start(image())
        .with(TAG, Behaviour::Sequence(vec![busy.clone(), failing.clone(), Behaviour::BreakAfter(10), busy]));
    Place::new().extract(&name(&registry), &envoy()).unwrap();
    assert_error!(error_of(image(), TAG, failing), Unreachable, "503");
}

#[test]
fn retry_after_of_registry_is_limited() {
    let started = Instant::now();
    let busy = Response::new(429, r#"{"errors":[{"code":"TOOMANYREQUESTS"}]}"#).with("Retry-After", "3600");
    assert_error!(error_of(image(), TAG, Behaviour::Respond(busy)), RateLimited, "again in 3600 s");
    let always = Response::new(429, "").with("Retry-After", "0");
    assert_error!(error_of(image(), TAG, Behaviour::Respond(always)), RateLimited, "429");
    assert!(started.elapsed() < Duration::from_secs(3600));
}

#[test]
fn broken_connection_is_resumed_where_it_broke() {
    let artifact = image();
    let digest = layer_of(&artifact).digest.clone();
    let registry = HostileRegistry::start(artifact).with(
        &digest,
        Behaviour::Sequence(vec![Behaviour::BreakAfter(300_000), Behaviour::BreakAfter(200_000)]),
    );
    let place = Place::new();
    place.extract(&name(&registry), &envoy()).unwrap();
    assert_eq!(place.content("envoy"), program());
    let ranges: Vec<Option<String>> = registry
        .requests()
        .iter()
        .filter(|request| request.path().ends_with(&digest))
        .map(|request| request.header("range").map(str::to_owned))
        .collect();
    assert_eq!(ranges, [None, Some("bytes=300000-".to_owned()), Some("bytes=500000-".to_owned())]);
}

#[test]
fn server_without_ranges_sends_from_beginning() {
    let artifact = image();
    let digest = layer_of(&artifact).digest.clone();
    let registry = HostileRegistry::start(artifact)
        .with(&digest, Behaviour::Sequence(vec![Behaviour::BreakAfter(300_000), Behaviour::WithoutRanges]));
    let place = Place::new();
    place.extract(&name(&registry), &envoy()).unwrap();
    assert_eq!(place.content("envoy"), program());
}

#[test]
fn repeatedly_broken_connections_end_extraction() {
    let artifact = image();
    let digest = layer_of(&artifact).digest.clone();
    assert_error!(
        error_of(artifact, &digest, Behaviour::BreakAfter(0)),
        Unreachable,
        "the connection broke 3 times"
    );
    let artifact = image();
    assert_error!(
        error_of(artifact, &digest, Behaviour::BreakAfter(100)),
        Unreachable,
        "the connection broke 20 times"
    );
    let other_part = Response::new(206, "abc").with("Content-Range", "bytes 7-9/100");
    let behaviours = vec![Behaviour::BreakAfter(100), Behaviour::Respond(other_part)];
    assert_error!(
        error_of(image(), &digest, Behaviour::Sequence(behaviours)),
        InvalidResponse,
        "another part"
    );
}

#[test]
fn layers_of_wrong_length_are_rejected() {
    let artifact = image();
    let layer = layer_of(&artifact).clone();
    let truncated = Behaviour::Respond(Response::new(200, &layer.bytes[..1000]));
    assert_error!(error_of(artifact.clone(), &layer.digest, truncated), WrongDigest, "comes with 1000 bytes");
    // Without a length, the end is only seen when it comes; this sends spaces forever.
    let endless = Response { body: Body::Endless, ..Response::new(200, "") };
    assert_error!(
        error_of(artifact, &layer.digest, Behaviour::Respond(endless)),
        WrongDigest,
        "longer than its"
    );
}

#[test]
fn content_with_wrong_digest_is_rejected() {
    let artifact = image();
    let layer = layer_of(&artifact).clone();
    let mut changed = layer.bytes.clone();
    changed[300_000] ^= 1;
    let other = Behaviour::Respond(Response::new(200, changed));
    assert_error!(error_of(artifact.clone(), &layer.digest, other), WrongDigest, "came with other content");

    let config = artifact.blobs[0].clone();
    let other = String::from_utf8(config.bytes).unwrap().replace("linux", "lynux");
    assert_error!(
        error_of(artifact.clone(), &config.digest, respond(200, &other)),
        WrongDigest,
        "configuration"
    );

    // The manifest that an index names, and one that is requested by its digest.
    let index = Index::new(MediaTypes::Oci).image(&images::Platform::host().architecture, artifact).build();
    let manifest = index.manifests[0].digest.clone();
    let other = image_of(plain().file("usr/local/bin/envoy", b"another")).root;
    let swapped = Response::new(200, other.bytes).with("Content-Type", &other.media_type);
    let registry = HostileRegistry::start(index).with(&manifest, Behaviour::Respond(swapped));
    let place = Place::new();
    assert_error!(place.fails(&name(&registry), &envoy()), WrongDigest, "manifest sha256:");
    let by_digest = format!("{}/istio/proxyv2@{manifest}", registry.address());
    assert_error!(place.fails(&by_digest, &envoy()), WrongDigest, "manifest sha256:");
}

#[test]
fn document_size_is_limited() {
    let endless = Behaviour::Respond(Response { body: Body::Endless, ..Response::new(200, "") });
    assert_error!(error_of(image(), TAG, endless), InvalidResponse, "manifest is larger than 4096 KiB");
    let huge = Response::new(200, vec![b' '; 5 << 20]).with("Content-Type", "application/json");
    assert_error!(error_of(image(), TAG, Behaviour::Respond(huge)), InvalidResponse, "manifest is larger");
    let error = Response { body: Body::Endless, ..Response::new(403, "") };
    assert_error!(error_of(image(), TAG, Behaviour::Respond(error)), Refused, "403");
    let service = Server::start(None, |_| Response { body: Body::Endless, ..Response::new(200, "") });
    let challenge = format!("Bearer realm=\"http://{}/token\"", service.address());
    let challenge = Response::new(401, "").with("WWW-Authenticate", &challenge);
    assert_error!(error_of(image(), TAG, Behaviour::Respond(challenge)), InvalidResponse, "token is larger");
}

#[test]
fn non_image_content_is_named_in_error() {
    let text = |body: &str, media_type: &str| {
        error_of(image(), TAG, Behaviour::Respond(Response::new(200, body).with("Content-Type", media_type)))
    };
    assert_error!(text("<html>", "text/html"), InvalidResponse, "not readable");
    assert_error!(text(r#"{"schemaVersion":1}"#, ""), Unsupported, "old first schema");
    assert_error!(text(r#"{"schemaVersion":2,"layers":[]}"#, "text/x"), Unsupported, "unknown kind");
    let wasm = ImageBuilder::new(MediaTypes::Oci).raw_layer("application/wasm", b"\0asm".to_vec()).build();
    assert_error!(error_of(wasm, "/none", Behaviour::Truth), Unsupported, "application/wasm");
    let foreign = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip";
    let foreign = ImageBuilder::new(MediaTypes::Docker).raw_layer(foreign, b"x".to_vec()).build();
    assert_error!(error_of(foreign, "/none", Behaviour::Truth), Unsupported, "may not be distributed");
    let garbage = b"neither gzip nor an archive".repeat(100);
    let garbage = ImageBuilder::new(MediaTypes::Docker)
        .raw_layer("application/vnd.docker.image.rootfs.diff.tar.gzip", garbage)
        .build();
    assert_error!(error_of(garbage, "/none", Behaviour::Truth), HostileLayer, "not a readable archive");
}

#[test]
fn hostile_layers_leave_nothing_behind() {
    let hostile = |layer: LayerBuilder| error_of(image_of(layer), "/none", Behaviour::Truth);
    let envoy = "usr/local/bin/envoy";
    assert_error!(
        hostile(plain().file(envoy, b"x").file("../outside", b"x")),
        HostileLayer,
        "leads out of the image"
    );
    assert_error!(hostile(plain().file("a/../../outside", b"x")), HostileLayer, "leads out of the image");
    assert_error!(
        hostile(plain().symlink(envoy, "../../../../etc/passwd")),
        HostileLayer,
        "leads out of the image"
    );
    assert_error!(hostile(plain().hard_link(envoy, "../etc/passwd")), HostileLayer, "leads out of the image");
    assert_error!(hostile(plain().symlink(envoy, "envoy")), HostileLayer, "more than 40 links");
    assert_error!(hostile(plain().device(envoy)), HostileLayer, "is a device");
    assert_error!(hostile(plain().symlink(envoy, "/etc/passwd")), FileAbsent, "/etc/passwd");
    assert_error!(hostile(plain().directory(envoy)), FileAbsent, "is a directory");
    // A directory of the path links to the image's root. The machine's own files are never looked at.
    assert_error!(
        hostile(plain().symlink("usr", "/").file("local/x", b"")),
        FileAbsent,
        "none of its layers"
    );
}

#[test]
fn decompression_bombs_are_stopped() {
    let zeros = vec![0; 64 << 20];
    for compression in [Compression::Gzip, Compression::Zstd] {
        let layer =
            || LayerBuilder::new(compression).file("padding", &zeros).file("usr/local/bin/envoy", &zeros);
        let registry = HostileRegistry::start(image_of(layer()));
        let mut place = Place::new();
        place.access.limits.uncompressed_layer_bytes = 1 << 20;
        assert_error!(place.fails(&name(&registry), &envoy()), HostileLayer, "larger than 1048576 bytes");
        let mut place = Place::new();
        place.access.limits.file_bytes = 1 << 20;
        assert_error!(place.fails(&name(&registry), &envoy()), HostileLayer, "larger than 1048576 bytes");
        let mut place = Place::new();
        place.access.limits.layer_bytes = 100;
        assert_error!(place.fails(&name(&registry), &envoy()), InvalidResponse, "more than the 100 allowed");
    }
}

#[test]
fn credentials_are_not_sent_to_other_host_with_blob() {
    let artifact = image();
    let layer = layer_of(&artifact).clone();
    let bytes = layer.bytes.clone();
    let elsewhere = Server::start(None, move |_| Response::new(200, bytes.clone()));
    let moved = format!("http://{}/bucket/blob?signature=x", elsewhere.address());
    let registry = HostileRegistry::start(artifact)
        .with(&layer.digest, Behaviour::Respond(Response::new(307, "").with("Location", &moved)))
        .with(
            TAG,
            Behaviour::Sequence(vec![Behaviour::Respond(
                Response::new(401, "").with("WWW-Authenticate", "Basic realm=\"x\""),
            )]),
        );
    let place = Place::new();
    let auths = format!(r#"{{"auths": {{"{}": {{"username": "u", "password": "p"}}}}}}"#, registry.address());
    std::fs::write(place.access.docker_config.as_ref().unwrap(), auths).unwrap();
    place.extract(&name(&registry), &envoy()).unwrap();
    assert_eq!(place.content("envoy"), program());
    let to_registry = registry.requests();
    let of_blob = to_registry.iter().find(|request| request.path().ends_with(&layer.digest)).unwrap();
    assert_eq!(of_blob.header("authorization"), Some("Basic dTpw"));
    let to_other = elsewhere.requests();
    assert_eq!(to_other.len(), 1);
    assert_eq!(to_other[0].target, "/bucket/blob?signature=x");
    assert_eq!(to_other[0].header("authorization"), None);
}

#[test]
fn redirects_are_limited() {
    let redirect = |location: &str| Behaviour::Respond(Response::new(302, "").with("Location", location));
    assert_error!(
        error_of(image(), TAG, redirect("/v2/istio/proxyv2/manifests/1")),
        InvalidResponse,
        "more than 5"
    );
    assert_error!(error_of(image(), TAG, redirect("file:///etc/passwd")), InvalidResponse, "not encrypted");
    assert_error!(error_of(image(), TAG, respond(302, "")), InvalidResponse, "to nowhere");
}

#[test]
fn redirects_from_tls_to_plaintext_are_rejected() {
    let observer = Server::start(None, |_| Response::new(200, r#"{"token":"t"}"#));
    let elsewhere = format!("http://{}/token", observer.address());
    let redirect = Response::new(307, "").with("Location", &elsewhere);
    let challenge = Response::new(401, "").with("WWW-Authenticate", &format!("Bearer realm=\"{elsewhere}\""));
    for (response, text) in [(redirect, "not encrypted"), (challenge, "is not encrypted")] {
        let registry = HostileRegistry::start_with_tls(image()).with(TAG, Behaviour::Respond(response));
        let mut place = Place::new();
        place.access.roots = registry.ca();
        assert_error!(place.fails(&name(&registry), &envoy()), InvalidResponse, text);
    }
    assert_eq!(observer.requests(), []);
}

#[test]
fn interruption_ends_any_wait() {
    struct AfterSome(u32);
    impl Watch for AfterSome {
        fn progress(&mut self, _bytes: u64, _of: u64) {}
        fn interrupted(&mut self) -> bool {
            self.0 = self.0.saturating_sub(1);
            self.0 == 0
        }
    }
    let artifact = image();
    let digest = layer_of(&artifact).digest.clone();
    let silence = Behaviour::Respond(Response { body: Body::Silence, ..Response::new(200, "") });
    for (end, behaviour) in [(TAG, silence), (digest.as_str(), Behaviour::StallAfter(1000))] {
        let registry = HostileRegistry::start(artifact.clone()).with(end, behaviour);
        let mut place = Place::new();
        place.access.limits.idle_timeout = Duration::from_secs(3600);
        let error = place.extract_watched(&name(&registry), &envoy(), &mut AfterSome(5)).unwrap_err();
        assert!(matches!(error, ImageError::Interrupted { .. }), "{error}");
        place.check_nothing_left(&error);
    }
}

#[test]
fn proxy_is_used_for_remote_registries() {
    let artifact = image();
    let blobs = artifact.blobs.clone();
    let root = artifact.root;
    let proxy = Server::start(None, move |request| {
        let Some(path) = request.target.strip_prefix("http://registry.test:8080/v2/istio/proxyv2/") else {
            return Response::new(502, "");
        };
        let digest = path.rsplit('/').next().unwrap_or_default();
        match blobs.iter().find(|blob| blob.digest == digest) {
            Some(blob) => Response::new(200, blob.bytes.clone()),
            None => Response::new(200, root.bytes.clone()).with("Content-Type", &root.media_type),
        }
    });
    let mut place = Place::new();
    place.access.plain_http = true;
    place.access.proxy = Some(format!("http://{}", proxy.address()));
    place.extract("registry.test:8080/istio/proxyv2:1", &envoy()).unwrap();
    assert_eq!(place.content("envoy"), program());
}

#[test]
fn names_that_leave_destination_are_rejected() {
    let registry = HostileRegistry::start(image());
    let place = Place::new();
    for bad in ["../envoy", "/tmp/envoy", "a/b", "..", "", "."] {
        let error = place.fails(&name(&registry), &[wanted("/usr/local/bin/envoy", bad)]);
        assert_is(&error, matches!(error, ImageError::InvalidRequest { .. }), "not the name of a file");
    }
    let twice = [wanted("/usr/local/bin/envoy", "envoy"), wanted("/x", "envoy")];
    assert_error!(place.fails(&name(&registry), &twice), InvalidRequest, "name of two files");
    let absent = place.destination.path().join("absent");
    let reference = name(&registry).parse().unwrap();
    let platform = images::Platform::host();
    let error =
        images::extract(&reference, &envoy(), &absent, &platform, &place.access, &mut ()).unwrap_err();
    assert!(matches!(error, ImageError::Destination { .. }) && !absent.exists(), "{error}");
}
