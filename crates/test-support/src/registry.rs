//! Debian's `docker-registry` on a loopback port, with its content in a temporary directory.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tempfile::TempDir;

use crate::image::{Artifact, Content};
use crate::tls::{CERTIFICATE, KEY, certify};
use crate::token::{IDENTITY_TOKEN, ISSUER, SERVICE, TokenService};

/// The only user of registries with credentials.
pub const USER: &str = "user";
/// The user's password.
pub const PASSWORD: &str = "pass:word";
/// The password hashed with bcrypt, the only format that the server accepts.
const HTPASSWD: &str = "user:$2a$04$Z49frC5yvRe6MZwaMVYyR.BOAV4DnATPm0C8k.JwFOPECLZlMyxZy\n";

const START_TIMEOUT: Duration = Duration::from_secs(60);
/// PATH of the server, including directories that an ordinary user's PATH lacks.
const PROGRAM_PATH: &str = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin";

/// Authentication and encryption that a registry requires.
#[derive(Debug, Clone, Copy, Default)]
pub struct RegistryOptions {
    /// Requires tokens from a token service, which checks the password.
    pub token: bool,
    /// Requires the password itself.
    pub basic: bool,
    /// TLS with a certificate issued by [`Registry::ca`].
    pub tls: bool,
}

/// A registry that runs until it is dropped, and ends when its owner is killed.
pub struct Registry {
    address: SocketAddr,
    folder: TempDir,
    has_tls: bool,
    token_service: Option<TokenService>,
    end: Option<mpsc::Sender<()>>,
    keeper: Option<JoinHandle<()>>,
}

impl Registry {
    /// Starts a registry without content.
    pub fn start(options: RegistryOptions) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let tls = options.tls.then(|| certify(folder.path()));
        let token_service = options.token.then(|| TokenService::start(tls.clone()));
        let configuration = folder.path().join("config.yml");
        fs::write(&configuration, configure(folder.path(), options, token_service.as_ref())).expect("a file");
        let (end, address, keeper) = keep(&configuration);
        let registry = Self {
            address,
            folder,
            has_tls: options.tls,
            token_service,
            end: Some(end),
            keeper: Some(keeper),
        };
        let has_credentials = options.token || options.basic;
        let auths = if has_credentials {
            json!({registry.address(): {"auth": STANDARD.encode(format!("{USER}:{PASSWORD}"))}})
        } else {
            json!({})
        };
        fs::write(registry.docker_config(), json!({"auths": auths}).to_string()).expect("a file");
        registry
    }

    /// Host and port, the first part of an image's name.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// File with the CA certificate, if the registry uses TLS.
    pub fn ca(&self) -> Option<PathBuf> {
        self.has_tls.then(|| self.folder.path().join(CERTIFICATE))
    }

    /// Docker configuration with credentials that the registry accepts.
    pub fn docker_config(&self) -> PathBuf {
        self.folder.path().join("docker-config.json")
    }

    /// Docker configuration with an identity token in place of the password, for a registry with a token
    /// service.
    pub fn docker_config_with_identity_token(&self) -> PathBuf {
        let path = self.folder.path().join("docker-config-token.json");
        let auths = json!({"auths": {self.address(): {"identitytoken": IDENTITY_TOKEN}}});
        fs::write(&path, auths.to_string()).expect("a file");
        path
    }

    /// Number of tokens requested so far.
    pub fn token_requests(&self) -> usize {
        self.token_service.as_ref().map_or(0, |service| service.server.requests().len())
    }

    /// Stores an image or chart under `repository:tag`.
    pub fn push(&self, repository: &str, tag: &str, artifact: &Artifact) {
        let root = self.folder.path().join("data/docker/registry/v2");
        let links = root.join("repositories").join(repository);
        for blob in &artifact.blobs {
            store(&root, blob);
            link(&links.join("_layers/sha256").join(hex(blob)), blob);
        }
        for manifest in artifact.all_manifests() {
            store(&root, manifest);
            link(&links.join("_manifests/revisions/sha256").join(hex(manifest)), manifest);
        }
        let tag = links.join("_manifests/tags").join(tag);
        link(&tag.join("index/sha256").join(hex(&artifact.root)), &artifact.root);
        link(&tag.join("current"), &artifact.root);
    }

    /// Overwrites the content that is stored under a digest, as a broken disk would.
    pub fn corrupt(&self, content: &Content, bytes: &[u8]) {
        let root = self.folder.path().join("data/docker/registry/v2");
        fs::write(data_path(&root, content), bytes).expect("a file");
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

fn hex(content: &Content) -> &str {
    content.digest.trim_start_matches("sha256:")
}

fn data_path(root: &Path, content: &Content) -> PathBuf {
    root.join("blobs/sha256").join(&hex(content)[..2]).join(hex(content)).join("data")
}

fn store(root: &Path, content: &Content) {
    let path = data_path(root, content);
    fs::create_dir_all(path.parent().expect("a file in a folder")).expect("a folder");
    fs::write(path, &content.bytes).expect("a file");
}

fn link(folder: &Path, content: &Content) {
    fs::create_dir_all(folder).expect("a folder");
    fs::write(folder.join("link"), &content.digest).expect("a file");
}

fn configure(folder: &Path, options: RegistryOptions, token_service: Option<&TokenService>) -> String {
    let path = |name: &str| folder.join(name).display().to_string();
    let mut configuration = json!({
        "version": "0.1",
        "log": {"level": "info"},
        "storage": {"filesystem": {"rootdirectory": path("data")}},
        "http": {"addr": "127.0.0.1:0", "secret": "of the test"},
    });
    if options.tls {
        configuration["http"]["tls"] = json!({"certificate": path(CERTIFICATE), "key": path(KEY)});
    }
    if options.basic {
        fs::write(folder.join("htpasswd"), HTPASSWD).expect("a file");
        configuration["auth"] = json!({"htpasswd": {"realm": "test", "path": path("htpasswd")}});
    }
    if let Some(service) = token_service {
        fs::write(folder.join("tokens.pem"), &service.certificate).expect("a file");
        let scheme = if options.tls { "https" } else { "http" };
        configuration["auth"] = json!({"token": {
            "realm": format!("{scheme}://{}/token", service.server.address()),
            "service": SERVICE,
            "issuer": ISSUER,
            "rootcertbundle": path("tokens.pem"),
        }});
    }
    // JSON is valid YAML.
    configuration.to_string()
}

/// Runs the program from a thread of its own. The kernel kills it when the thread that started it ends, even
/// if this process is killed.
fn keep(configuration: &Path) -> (mpsc::Sender<()>, SocketAddr, JoinHandle<()>) {
    let (end, ended) = mpsc::channel::<()>();
    let (started, address) = mpsc::channel();
    let configuration = configuration.to_owned();
    let keeper = std::thread::spawn(move || {
        let mut child = run(&configuration);
        let log = child.stderr.take().expect("piped");
        let reader = std::thread::spawn(move || read_log(log, &started));
        // Waits until the sender is dropped.
        let _ = ended.recv();
        let _ = child.kill();
        let _ = child.wait();
        let _ = reader.join();
    });
    let address =
        address.recv_timeout(START_TIMEOUT).unwrap_or_else(|_| panic!("docker-registry does not listen"));
    let address = address.unwrap_or_else(|log: String| panic!("docker-registry ended:\n{log}"));
    (end, address, keeper)
}

fn run(configuration: &Path) -> Child {
    Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "docker-registry", "serve"])
        .arg(configuration)
        .env_clear()
        .env("PATH", PROGRAM_PATH)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("setpriv does not start: {error}"))
}

/// Finds the address in the server's log. It keeps reading so that the server never blocks.
fn read_log(log: ChildStderr, started: &mpsc::Sender<Result<SocketAddr, String>>) {
    let mut lines = String::new();
    let mut is_listening = false;
    for line in BufReader::new(log).lines().map_while(Result::ok) {
        if is_listening {
            continue;
        }
        let address = line
            .split_once("listening on ")
            .map(|(_, rest)| rest.split(['"', ',']).next().unwrap_or_default());
        if let Some(address) = address.and_then(|address| address.parse().ok()) {
            is_listening = true;
            let _ = started.send(Ok(address));
        }
        lines.push_str(&line);
        lines.push('\n');
    }
    if !is_listening {
        let _ = started.send(Err(lines));
    }
}
