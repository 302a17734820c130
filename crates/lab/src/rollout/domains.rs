//! Domains of a gateway, for any kind of proxy: what drivers request, and checks that the gateway serves
//! these domains and no others.

use super::Rollout;
use super::station::Destination;
use crate::Result;
use crate::certificates::{CredentialFiles, Credentials, KeyAlgorithm};
use crate::container::ContainerUser;
use crate::private_dir::PrivateDir;
use experiment::environment::{EnvironmentError, ErrorContext as _, Estate, Scenario, error_chain};
use experiment::mesh_settings::IngressTls;
use experiment::topology::{DriverPlacement, WorkloadId};
use mesh::concurrent::side_by_side;
use mesh::envoy::hop::Hop;
use mesh::gateway_probe::{ClientCredential, GatewayProbe};
use mesh::istio::objects::estate;
use mesh::istio::objects::ingress::{self, PORT};
use mesh::istio::objects::subject::Subject;
use mesh::kubernetes::object_set::ObjectSet;
use mesh::wait::{Progress, wait_for, wait_with_progress, with_last_state};
use results::FurtherDomain;
use serde_json::Value;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time without another domain being served, and until a further domain is.
const SERVED_TIMEOUT: Duration = Duration::from_secs(60);
const OPERATION: &str = "make the certificates of the ingress gateway";

/// The domains that a gateway serves for one workload.
#[derive(Debug)]
pub(crate) struct Domains {
    estate: Arc<Estate>,
    /// Name of the gateway's proxy.
    pub gateway: String,
    /// Statistics prefix of the gateway's connection manager.
    pub connection_manager: String,
    pub public_name: String,
    /// Path that exact paths are rewritten to.
    pub rewrite: String,
    address: SocketAddrV4,
    tls: IngressTls,
    /// Sends requests as the load does.
    pub probe: GatewayProbe,
    /// Directory with the certificates and keys of clients; absent without TLS.
    client_files: Option<PathBuf>,
}

/// Public name that is the parent of a workload's domains.
pub(crate) fn public_name(rollout: &Rollout<'_>, target: WorkloadId) -> String {
    ingress::host(&rollout.workload(target).namespace)
}

/// Path that exact paths are rewritten to: the one that drivers of the workload request.
fn rewrite(rollout: &Rollout<'_>, target: WorkloadId) -> Result<String> {
    let drivers = rollout.topology().drivers.iter();
    let mut endpoints: Vec<&str> =
        drivers.filter(|driver| driver.target == target).map(|driver| driver.endpoint.as_str()).collect();
    endpoints.dedup();
    match endpoints[..] {
        [endpoint] => Ok(rollout.workload(target).protocol.path(endpoint)),
        _ => {
            let reason = format!(
                "the exact paths of a domain are rewritten to one path, and drivers of {} request {}",
                rollout.workload(target).qualified_name(),
                endpoints.join(", ")
            );
            Err(EnvironmentError::new("configure the domains of `ingress`", reason))
        }
    }
}

/// The certificate of a gateway's public name. If the experiment has domains, wildcard certificates for all
/// domains below the name, as a workspace has: one per credential of the estate.
pub(crate) fn certificates(rollout: &Rollout<'_>, public_name: &str) -> Result<Vec<Credentials>> {
    let (estate, authority) = (&rollout.context.spec.ingress, rollout.context.authority);
    let name = if estate.declared { format!("*.{public_name}") } else { public_name.to_owned() };
    let algorithm = match estate.scenario {
        Scenario::Rsa => KeyAlgorithm::Rsa2048,
        _ => KeyAlgorithm::EcdsaP256,
    };
    let issued = (0..estate.credentials()).map(|_| authority.issue_server_with(&[&name], &[], algorithm));
    issued.collect::<Result<_>>().context(OPERATION)
}

/// Client certificate and key, the CA certificate that clients trust, and the directory with their files, which
/// is removed with the deployment.
pub(crate) fn client_files(rollout: &mut Rollout<'_>, namespace: &str) -> Result<(Credentials, PathBuf)> {
    let client = rollout.context.authority.issue_client("client", "meshmeter").context(OPERATION)?;
    let name = format!("{namespace}-client");
    let directory = PrivateDir::create(rollout.context.lab, &name, ContainerUser::Lab)?;
    client.write(directory.path(), None).context(OPERATION)?;
    let path = directory.path().to_path_buf();
    rollout.directories.push(directory);
    Ok((client, path))
}

/// Arguments that pass these files to `meshmeter load`.
pub(crate) fn client_arguments(folder: &Path, tls: IngressTls) -> Vec<String> {
    let files = CredentialFiles::in_folder(folder);
    let mut arguments = vec![("--cacert", files.authority)];
    if tls == IngressTls::Mutual {
        arguments.extend([("--cert", files.certificate), ("--key", files.key)]);
    }
    arguments.into_iter().map(|(option, path)| format!("{option}={}", path.display())).collect()
}

impl Domains {
    /// The domains of a gateway, given as its name and its pod. `client` is the clients' certificate with its
    /// files; absent without TLS.
    pub fn new(
        rollout: &Rollout<'_>,
        target: WorkloadId,
        (gateway, pod): (String, usize),
        hop: &Hop,
        client: Option<(Credentials, PathBuf)>,
    ) -> Result<Self> {
        let spec = rollout.context.spec;
        let tls = spec.ingress_tls();
        let (client, client_files) = client.unzip();
        let credential = client.as_ref().map(|client: &Credentials| ClientCredential {
            authority: &client.authority_pem,
            own: (tls == IngressTls::Mutual).then_some((&client.certificate_pem, &client.key_pem)),
        });
        let pod = &rollout.pods.infrastructure[pod];
        let mut probe = GatewayProbe::new(pod.port(PORT), credential.as_ref())?;
        probe.headers = rollout.request_headers()?;
        Ok(Self {
            estate: Arc::clone(&spec.ingress),
            gateway,
            connection_manager: hop.connection_manager.clone(),
            public_name: public_name(rollout, target),
            rewrite: rewrite(rollout, target)?,
            address: SocketAddrV4::new(pod.address(), PORT),
            tls,
            probe,
            client_files,
        })
    }

    /// The objects of these domains under a control plane.
    pub fn estate<'a>(&'a self, rollout: &Rollout<'a>, subject: &'a Subject<'a>) -> estate::Domains<'a> {
        let Self { public_name, rewrite, .. } = self;
        estate::Domains { spec: rollout.context.spec, subject, public_name, rewrite }
    }

    /// URL and arguments that request a random path among the first ones of each domain. No DNS lookups: all
    /// names resolve to the gateway.
    pub fn destination(&self, rollout: &Rollout<'_>, driver: &DriverPlacement) -> Destination {
        let domains = range(self.estate.requested_domains());
        let authority = format!("d{domains}.{}:{PORT}", self.public_name);
        let mut url = rollout.url(driver, &authority, self.tls != IngressTls::Off);
        if let Some(paths) = self.estate.requested_paths() {
            url.truncate(url.len() - self.rewrite.len());
            url.push_str(&format!("/get/{}", range(paths)));
        }
        let mut arguments =
            vec![format!("--connect-to={}", self.address), "--server-per=connection".to_owned()];
        arguments
            .extend(scenario_arguments(self.estate.scenario).iter().map(|argument| (*argument).to_owned()));
        let files = self.client_files.iter();
        arguments.extend(files.flat_map(|files| client_arguments(files, self.tls)));
        Destination { url, arguments }
    }

    /// Waits until the service responds to a request for the last path of each domain. Gateways do not report
    /// this, and a domain without a route, a certificate or a filter chain would cause errors in the trial.
    pub fn wait_until_served(&self, check: impl Fn() -> Result<()>) -> Result<()> {
        let what = format!("{} serves every domain of `ingress`", self.gateway);
        let mut pending: Vec<usize> = (1..=self.estate.domains).collect();
        let mut last = String::new();
        let waited = wait_with_progress(&what, SERVED_TIMEOUT, || {
            check()?;
            // The first domain is probed alone: if it is not served yet, the others most likely are not
            // either.
            let answer = |domain| (domain, self.probe.is_served(&self.host(domain), &self.last_path()));
            let (first, others) = pending.split_first().expect("an estate has a domain");
            let mut answers = vec![answer(*first)];
            if answers[0].1.is_ok() {
                answers.extend(side_by_side(others.to_vec(), answer));
                pending =
                    answers.iter().filter(|(_, answer)| answer.is_err()).map(|(domain, _)| *domain).collect();
            }
            if let Some((domain, Err(reason))) = answers.iter().find(|(_, answer)| answer.is_err()) {
                last = format!("{}: {reason}", self.host(*domain));
            }
            Ok(if pending.is_empty() { Progress::Done(()) } else { Progress::At(pending.len()) })
        });
        waited.map_err(|error| with_last_state(error, &last))
    }

    /// Returns an error if the gateway serves a domain or a path outside the estate.
    pub fn check_others_are_refused(&self) -> Result<()> {
        let [known, unknown] = [self.host(1), format!("elsewhere.{}", self.public_name)];
        let path = self.last_path();
        let mut others = vec![
            (&unknown, &unknown, path.clone(), "a domain of no certificate's server"),
            (&known, &unknown, path, "a host other than the SNI domain"),
        ];
        if let Some(paths) = self.estate.paths {
            others.push((&known, &known, Estate::path(paths + 1), "a path outside the estate"));
        }
        for (server_name, host, path, what) in others {
            if let Ok(status) = self.probe.status(server_name, host, &path)
                && !(400..500).contains(&status)
            {
                let reason = format!("it answered with status {status} for {what}: {host}{path}");
                return Err(EnvironmentError::new(format!("check the routes of {}", self.gateway), reason));
            }
        }
        Ok(())
    }

    /// Writes the objects of one more domain while the gateway serves the others, waits until it serves this
    /// one too, and removes the objects again. An error from `check` ends the wait.
    pub fn measure_further(
        &self,
        (domain, written): &(usize, Vec<Value>),
        objects: &mut ObjectSet,
        check: impl Fn() -> Result<()>,
    ) -> FurtherDomain {
        let (gateway, name) = (self.gateway.clone(), self.host(*domain));
        let mut measured = FurtherDomain { gateway, name, written_s: None, in_force_s: None, failure: None };
        let result = self.put_in_force(written, objects, check, &mut measured);
        let removed = objects.remove_some(written);
        measured.failure = result.and(removed).err().map(|error| error_chain(&error));
        measured
    }

    fn put_in_force(
        &self,
        written: &[Value],
        objects: &mut ObjectSet,
        check: impl Fn() -> Result<()>,
        FurtherDomain { gateway, name, written_s, in_force_s, .. }: &mut FurtherDomain,
    ) -> Result<()> {
        let begun_at = Instant::now();
        objects.apply(written).context(format!("write the domain {name}"))?;
        let written_at = Instant::now();
        *written_s = Some((written_at - begun_at).as_secs_f64());
        wait_for(&format!("{gateway} serves {name}"), SERVED_TIMEOUT, || {
            check()?;
            Ok(self.probe.is_served(name, &self.last_path()).ok())
        })?;
        *in_force_s = Some(written_at.elapsed().as_secs_f64());
        Ok(())
    }

    pub fn host(&self, domain: usize) -> String {
        Estate::domain(domain, &self.public_name)
    }

    pub fn last_path(&self) -> String {
        self.estate.paths.map_or_else(|| self.rewrite.clone(), Estate::path)
    }
}

/// Client arguments that a scenario needs.
fn scenario_arguments(scenario: Scenario) -> &'static [&'static str] {
    match scenario {
        Scenario::Tls12 => &["--tls-version=1.2"],
        Scenario::Resumption => &["--requests-per-connection=1", "--resume-sessions"],
        Scenario::FullHandshakes => &["--requests-per-connection=1"],
        _ => &[],
    }
}

/// A number range such as `{1..50}`, from which `meshmeter load` draws.
fn range(last: usize) -> String {
    if last == 1 { "1".to_owned() } else { format!("{{1..{last}}}") }
}
