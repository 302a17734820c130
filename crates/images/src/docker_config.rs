//! Docker's configuration file, limited to credentials.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::credentials::Credentials;

/// Key for the credentials of Docker Hub.
const DOCKER_HUB_SERVER: &str = "https://index.docker.io/v1/";
const MAX_FILE_BYTES: u64 = 1 << 20;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DockerConfig {
    auths: HashMap<String, Auth>,
    creds_store: Option<String>,
    cred_helpers: HashMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase", default)]
struct Auth {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
    registrytoken: Option<String>,
}

/// Location of a registry's credentials.
pub(crate) enum Source {
    Nothing,
    Stored(Credentials),
    /// A credential helper that is queried for `server`.
    Helper {
        program: String,
        server: String,
    },
}

impl DockerConfig {
    /// Reads the named file, or the one that Docker would use. A missing file counts as empty unless it was
    /// named.
    pub(crate) fn read(named: Option<&Path>) -> Result<Self, String> {
        let Some(path) = named.map(Path::to_path_buf).or_else(default_path) else {
            return Ok(Self::default());
        };
        let unreadable = |reason: String| format!("Docker's configuration {} {reason}", path.display());
        let content = match std::fs::metadata(&path) {
            Ok(metadata) if metadata.len() > MAX_FILE_BYTES => {
                return Err(unreadable("is too large".to_owned()));
            }
            Ok(_) => std::fs::read(&path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
                return Ok(Self::default());
            }
            Err(error) => Err(error),
        };
        let content = content
            .map_err(|error| unreadable(format!("cannot be read: {}", crate::error::root_cause(&error))))?;
        // The parser's message could contain a part of a secret.
        serde_json::from_slice(&content)
            .map_err(|error| unreadable(format!("is not valid at line {}", error.line())))
    }

    /// Location of the credentials of `registry`, in Docker's order of precedence.
    pub(crate) fn source(&self, registry: &str) -> Source {
        let server = if registry == "docker.io" { DOCKER_HUB_SERVER } else { registry };
        let helper = |name: &str| Source::Helper {
            program: format!("docker-credential-{name}"),
            server: server.to_owned(),
        };
        let is_this = |key: &str| host_of(key) == host_of(server);
        if let Some((_, name)) = self.cred_helpers.iter().find(|(key, name)| is_this(key) && is_helper(name))
        {
            return helper(name);
        }
        if let Some(name) = self.creds_store.as_deref().filter(|name| is_helper(name)) {
            return helper(name);
        }
        let auth = self.auths.get(server).or_else(|| {
            let mut others = self.auths.iter().filter(|(key, _)| is_this(key));
            others.next().map(|(_, auth)| auth)
        });
        auth.and_then(Auth::credentials).map_or(Source::Nothing, Source::Stored)
    }
}

impl Auth {
    fn credentials(&self) -> Option<Credentials> {
        let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        if let Some(token) = filled(&self.registrytoken) {
            return Some(Credentials::AccessToken(token));
        }
        if let Some(token) = filled(&self.identitytoken) {
            return Some(Credentials::IdentityToken(token));
        }
        if let Some(auth) = filled(&self.auth) {
            let decoded = String::from_utf8(STANDARD.decode(auth.trim()).ok()?).ok()?;
            let (user, password) = decoded.split_once(':')?;
            let password = password.trim_end_matches('\0');
            return Some(Credentials::Password { user: user.to_owned(), password: password.to_owned() });
        }
        let (user, password) = (filled(&self.username)?, filled(&self.password)?);
        Some(Credentials::Password { user, password })
    }
}

/// Reads `file` like Docker's configuration, and checks that no helper is a program of another directory and that secrets are
/// not shown. For fuzzing.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_docker_config(file: &[u8]) {
    let Ok(config) = serde_json::from_slice::<DockerConfig>(file) else { return };
    let keys = config.auths.keys().chain(config.cred_helpers.keys()).map(String::as_str);
    for registry in keys.chain(["docker.io", "quay.io", "localhost:5000"]) {
        match config.source(registry) {
            Source::Nothing => {}
            Source::Stored(credentials) => assert!(format!("{credentials:?}").len() < 40),
            Source::Helper { program, .. } => {
                assert!(program.starts_with("docker-credential-") && !program.contains(['/', ' ', '\0']));
            }
        }
    }
}

fn default_path() -> Option<PathBuf> {
    let folder = std::env::var_os("DOCKER_CONFIG").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folder = folder.or_else(|| std::env::home_dir().map(|home| home.join(".docker")))?;
    Some(folder.join("config.json"))
}

/// The name becomes part of a program name, so it must not lead to another directory.
fn is_helper(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Host of a key. Keys are hosts, or URLs as written by older versions.
fn host_of(key: &str) -> &str {
    let key = key.split_once("://").map_or(key, |(_, rest)| rest);
    key.split('/').next().unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(config: &str, registry: &str) -> Option<Credentials> {
        match serde_json::from_str::<DockerConfig>(config).unwrap().source(registry) {
            Source::Stored(credentials) => Some(credentials),
            Source::Nothing => None,
            Source::Helper { .. } => panic!("no helper"),
        }
    }

    fn password(user: &str, password: &str) -> Option<Credentials> {
        Some(Credentials::Password { user: user.to_owned(), password: password.to_owned() })
    }

    #[test]
    fn stored_credentials_are_found_by_registry_host() {
        let config = r#"{"auths": {
            "https://index.docker.io/v1/": {"auth": "dXNlcjpwYTpzcw=="},
            "quay.io": {"identitytoken": "t"},
            "https://old.example/v1/": {"username": "u", "password": "p"},
            "localhost:5000": {"auth": ""}}, "HttpHeaders": {"a": "b"}}"#;
        assert_eq!(stored(config, "docker.io"), password("user", "pa:ss"));
        assert_eq!(stored(config, "quay.io"), Some(Credentials::IdentityToken("t".to_owned())));
        assert_eq!(stored(config, "old.example"), password("u", "p"));
        assert_eq!(stored(config, "localhost:5000"), None);
        assert_eq!(stored(config, "localhost:5001"), None);
    }

    #[test]
    fn helpers_take_precedence_over_stored_credentials() {
        let config: DockerConfig = serde_json::from_str(
            r#"{"auths": {"a.example": {"auth": "dTpw"}}, "credsStore": "store",
                "credHelpers": {"b.example": "own", "c.example": "../../bin/sh"}}"#,
        )
        .unwrap();
        let program = |registry: &str| match config.source(registry) {
            Source::Helper { program, server } => Some((program, server)),
            _ => None,
        };
        let expected =
            |name: &str, server: &str| Some((format!("docker-credential-{name}"), server.to_owned()));
        assert_eq!(program("a.example"), expected("store", "a.example"));
        assert_eq!(program("b.example"), expected("own", "b.example"));
        assert_eq!(program("c.example"), expected("store", "c.example"));
        assert_eq!(program("docker.io"), expected("store", DOCKER_HUB_SERVER));
    }

    #[test]
    fn errors_show_no_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        let read = |path: &Path| DockerConfig::read(Some(path)).map(|_| ()).unwrap_err();
        assert!(read(&path).contains("cannot be read"));
        std::fs::write(&path, r#"{"auths": {"a": "c2VjcmV0"}}"#).unwrap();
        let error = read(&path);
        assert!(error.contains("not valid at line 1") && !error.contains("c2VjcmV0"), "{error}");
    }
}
