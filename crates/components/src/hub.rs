//! A registry whose images have a common prefix, and extracting files from them.

use super::supervised_command::Look;
use crate::Result;
use experiment::environment::EnvironmentError;
use images::{
    Access, Extracted, ImageError, ImageReference, InvalidReference, Limits, Platform, Wanted, Watch,
};
use results::{Build, ComponentImage, without_credentials};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Hub of Istio's releases.
pub const DEFAULT_HUB: &str = "docker.io/istio";

/// Mirrors of the hub that Istio runs, up to release 1.30.
const MIRRORS: [&str; 2] = ["registry.istio.io/release", "gcr.io/istio-release"];

/// Registry for the charts of releases, which are not under the hub of images.
pub const DEFAULT_CHARTS: &str = "ghcr.io/istio/release/charts";

/// Environment variable that names another hub.
pub const HUB_VARIABLE: &str = "MESHMETER_REGISTRY";

/// Timeout for each step of checking whether a hub has an image.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// A hub such as `docker.io/istio`: images are `<prefix>/<repository>:<tag>`.
#[derive(Clone, Debug)]
pub struct Hub {
    prefix: String,
    access: Access,
}

/// Files to extract from an image.
#[derive(Debug)]
pub(super) struct ImageFiles {
    pub repository: &'static str,
    pub files: &'static [ImageFile],
}

#[derive(Debug)]
pub(super) struct ImageFile {
    /// Absolute path in the image.
    pub path: &'static str,
    /// File name in the package.
    pub name: &'static str,
    pub executable: bool,
    pub optional: bool,
}

/// Files extracted from an image.
#[derive(Debug)]
pub(super) struct Taken {
    pub image: ComponentImage,
    /// File names in the package.
    pub names: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum TakeError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error(transparent)]
    Reference(#[from] InvalidReference),
    #[error("{image} has the digest {found}, and {expected} is pinned: it is another image")]
    OtherImage { image: String, found: String, expected: String },
}

impl Hub {
    /// `roots` is a file with further CA certificates (PEM).
    pub fn new(prefix: &str, roots: Option<PathBuf>) -> Result<Self> {
        let shown = without_credentials(prefix);
        let prefix = ["https://", "oci://", "docker://"]
            .iter()
            .fold(prefix, |prefix, scheme| prefix.strip_prefix(scheme).unwrap_or(prefix))
            .trim_end_matches('/');
        let user_agent = Some(Build::this().user_agent());
        let access = Access { roots, user_agent, ..Access::default() };
        let hub = Self { prefix: prefix.to_owned(), access };
        match hub.reference("pilot:1").parse::<ImageReference>() {
            Ok(_) if !prefix.is_empty() && !prefix.contains('@') => Ok(hub),
            _ => {
                let reason = "expected a registry and a path in it";
                Err(EnvironmentError::new(format!("use the registry `{shown}`"), reason)
                    .with_hint(format!("such as {DEFAULT_HUB} or registry.example:5000/istio")))
            }
        }
    }

    /// The hub for the charts that belong to these images: Istio's own chart registry for its own hubs, else
    /// one under this hub.
    #[must_use]
    pub fn charts(&self) -> Self {
        let is_istios = self.prefix == DEFAULT_HUB || MIRRORS.contains(&self.prefix.as_str());
        let prefix = if is_istios { DEFAULT_CHARTS.to_owned() } else { self.reference("charts") };
        Self { prefix, access: self.access.clone() }
    }

    fn reference(&self, image: &str) -> String {
        format!("{}/{image}", self.prefix)
    }

    /// Succeeds if the hub has this image and responds soon. The error says why not.
    pub(super) fn check(&self, repository: &str, tag: &str) -> Result<(), TakeError> {
        let limits = Limits {
            connect_timeout: CHECK_TIMEOUT,
            document_timeout: CHECK_TIMEOUT,
            idle_timeout: CHECK_TIMEOUT,
            max_retry_after: CHECK_TIMEOUT,
            ..self.access.limits.clone()
        };
        let access = Access { limits, ..self.access.clone() };
        let reference: ImageReference = self.reference(&format!("{repository}:{tag}")).parse()?;
        images::digest(&reference, &access, &mut ())?;
        Ok(())
    }

    /// Extracts files from an image for this machine. If digests are pinned, the image must have one of them.
    pub(super) fn take(
        &self,
        wanted: &ImageFiles,
        tag: &str,
        pinned: &[String],
        destination: &Path,
        look: &mut Look<'_>,
    ) -> Result<Taken, TakeError> {
        let image = self.reference(&format!("{}:{tag}", wanted.repository));
        let mut reference: ImageReference = image.parse()?;
        let mut watch = Progress::new(wanted.repository, look);
        if let Some(expected) = pinned.first() {
            let found = images::digest(&reference, &self.access, &mut watch)?;
            if !pinned.contains(&found) {
                return Err(TakeError::OtherImage { image, found, expected: expected.clone() });
            }
            let by_digest = self.reference(&format!("{}@{found}", wanted.repository));
            reference = by_digest.parse()?;
        }
        let files: Vec<Wanted> = wanted.files.iter().map(ImageFile::wanted).collect();
        let Extracted { index_digest, manifest_digest, files, .. } =
            images::extract(&reference, &files, destination, &Platform::host(), &self.access, &mut watch)?;
        let names = files.into_iter().map(|file| file.name).collect();
        Ok(Taken { image: ComponentImage { reference: image, index_digest, manifest_digest }, names })
    }
}

impl fmt::Display for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.prefix)
    }
}

impl ImageFile {
    fn wanted(&self) -> Wanted {
        Wanted {
            path: self.path.to_owned(),
            name: self.name.to_owned(),
            executable: self.executable,
            optional: self.optional,
        }
    }
}

/// Shows a download as the last line of a command, such as `proxyv2: 45 of 80 MB`.
struct Progress<'a, 'b> {
    what: &'static str,
    look: &'a mut Look<'b>,
    started: Instant,
    shown_at: Option<Instant>,
    goes_on: bool,
}

const SHOW_INTERVAL: Duration = Duration::from_millis(100);

impl<'a, 'b> Progress<'a, 'b> {
    fn new(what: &'static str, look: &'a mut Look<'b>) -> Self {
        Self { what, look, started: Instant::now(), shown_at: None, goes_on: true }
    }

    fn show(&mut self, text: &str) {
        if self.shown_at.is_none_or(|at| at.elapsed() >= SHOW_INTERVAL) {
            self.shown_at = Some(Instant::now());
            self.goes_on &= (self.look)(self.started.elapsed(), text);
        }
    }
}

impl Watch for Progress<'_, '_> {
    fn progress(&mut self, bytes: u64, of: u64) {
        const MEGABYTE: u64 = 1_000_000;
        let text = format!("{}: {} of {} MB", self.what, bytes / MEGABYTE, of.div_ceil(MEGABYTE));
        self.show(&text);
    }

    fn interrupted(&mut self) -> bool {
        let what = self.what;
        self.show(what);
        !self.goes_on
    }
}

/// The error of an operation on an image, with a hint.
pub(super) fn failed(operation: String, error: TakeError) -> EnvironmentError {
    let hint = hint(&error);
    let failed = EnvironmentError::new(operation, error);
    hint.into_iter().fold(failed, EnvironmentError::with_hint)
}

fn hint(error: &TakeError) -> Option<String> {
    let hint = match error {
        TakeError::OtherImage { .. } => {
            "the pinned digest is that of the image that was published under this tag; a build of your own needs a tag of its own, \
             such as 1.30.4-mine"
        }
        TakeError::Image(ImageError::Unreachable { .. }) => {
            "`--registry HUB` or MESHMETER_REGISTRY names another registry, HTTPS_PROXY a proxy; `--from-source` builds the pinned \
             Istio and needs no registry of images"
        }
        TakeError::Image(ImageError::Refused { .. } | ImageError::RateLimited { .. }) => {
            "`docker login` of that registry keeps credentials where they are looked for: ~/.docker/config.json, or DOCKER_CONFIG"
        }
        TakeError::Image(ImageError::NotFound { .. }) => {
            "https://github.com/istio/istio/releases lists the releases; tags of images have no leading v"
        }
        TakeError::Image(ImageError::Interrupted { .. }) => {
            "nothing of it was left behind; `meshmeter lab install` begins it anew"
        }
        TakeError::Image(_) | TakeError::Reference(_) => return None,
    };
    Some(hint.to_owned())
}

/// True if the registry has no such image for this machine.
pub(super) fn is_absent(error: &TakeError) -> bool {
    matches!(error, TakeError::Image(ImageError::NotFound { .. } | ImageError::NoSuchPlatform { .. }))
}

/// True if the image is unavailable from this machine.
pub(super) fn is_out_of_reach(error: &TakeError) -> bool {
    let is_closed = matches!(
        error,
        TakeError::Image(
            ImageError::Unreachable { .. } | ImageError::Refused { .. } | ImageError::RateLimited { .. }
        )
    );
    is_absent(error) || is_closed
}
