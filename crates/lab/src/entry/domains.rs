//! Domains of a gateway, for any kind of proxy: what drivers request, and checks that the gateway serves
//! these domains and no others.

use super::further_domain::FurtherDomain;
use crate::Result;
use crate::certificates::{CredentialFiles, Credentials, KeyAlgorithm};
use crate::component_name::lab_name;
use crate::container::ContainerUser;
use crate::deployment::rollout::Rollout;
use crate::deployment::station::{Destination, ProxyId};
use crate::filters::proof::FilteredGateway;
use crate::pod::Pod;
use crate::private_dir::PrivateDir;
use experiment::environment::{EnvironmentError, ErrorContext as _, Estate, Scenario};
use experiment::mesh_settings::IngressTls;
use experiment::topology::{DriverPlacement, WorkloadId};
use mesh::concurrent::side_by_side;
use mesh::gateway_probe::{ClientCredential, GatewayProbe};
use mesh::istio::objects::estate;
use mesh::istio::objects::ingress::{self, PORT};
use mesh::istio::objects::subject::Subject;
use mesh::wait::{Progress, wait_with_progress, with_last_state};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Maximum time without another domain being served.
const SERVED_TIMEOUT: Duration = Duration::from_secs(60);
const OPERATION: &str = "make the certificates of the ingress gateway";

/// The domains that a gateway serves for one workload.
#[derive(Debug)]
pub(crate) struct Domains {
    estate: Arc<Estate>,
    gateway: String,
    pub public_name: String,
    /// Path that exact paths are rewritten to.
    pub rewrite: String,
    address: Ipv4Addr,
    tls: IngressTls,
    probe: GatewayProbe,
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

/// Wildcard certificates for all domains below a public name, as a workspace has. One per credential of the
/// estate.
pub(crate) fn certificates(rollout: &Rollout<'_>, public_name: &str) -> Result<Vec<Credentials>> {
    let (estate, authority) = (&rollout.context.spec.ingress, rollout.context.authority);
    let wildcard = format!("*.{public_name}");
    let algorithm = match estate.scenario {
        Scenario::Rsa => KeyAlgorithm::Rsa2048,
        _ => KeyAlgorithm::EcdsaP256,
    };
    let issued = (0..estate.credentials()).map(|_| authority.issue_server_with(&[&wildcard], &[], algorithm));
    issued.collect::<Result<_>>().context(OPERATION)
}

/// Client certificate and key, and the CA certificate that clients trust. Their directory is removed with the
/// deployment.
pub(crate) fn client_files(rollout: &mut Rollout<'_>, namespace: &str) -> Result<(Credentials, PathBuf)> {
    let client = rollout.context.authority.issue_client("client", "meshmeter").context(OPERATION)?;
    let directory = lab_name(&format!("{namespace}-client"));
    let directory = PrivateDir(rollout.context.lab.create_private_dir(&directory, ContainerUser::Lab)?);
    let path = directory.path().to_owned();
    rollout.directories.push(directory);
    client.write(&path, None).context(OPERATION)?;
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
    /// The domains of the gateway in this pod. `client` is the clients' certificate with its files; absent
    /// without TLS.
    pub fn new(
        rollout: &Rollout<'_>,
        target: WorkloadId,
        (gateway, pod): (&str, &Pod),
        client: Option<(Credentials, PathBuf)>,
    ) -> Result<Self> {
        let spec = rollout.context.spec;
        let tls = spec.ingress_tls();
        let (client, client_files) = client.unzip();
        let credential = client.as_ref().map(|client: &Credentials| ClientCredential {
            authority: &client.authority_pem,
            own: (tls == IngressTls::Mutual).then_some((&client.certificate_pem, &client.key_pem)),
        });
        let mut probe = GatewayProbe::new(pod.port(PORT), credential.as_ref())?;
        probe.headers = rollout.request_headers()?;
        Ok(Self {
            estate: Arc::clone(&spec.ingress),
            gateway: gateway.to_owned(),
            public_name: public_name(rollout, target),
            rewrite: rewrite(rollout, target)?,
            address: pod.address(),
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
        let gateway = SocketAddrV4::new(self.address, PORT);
        let mut arguments = vec![format!("--connect-to={gateway}"), "--server-per=connection".to_owned()];
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
            let (first, others) = pending.split_first().expect("an estate has a domain");
            let mut answers = vec![(*first, self.answer(*first))];
            if answers[0].1.is_ok() {
                answers.extend(side_by_side(others.to_vec(), |domain| (domain, self.answer(domain))));
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
            (&known, &unknown, path, "a host that is not the domain that TLS asked for"),
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

    /// A further domain. These objects are written while the gateway serves the others.
    pub fn further(&self, domain: usize, objects: Vec<Value>) -> FurtherDomain {
        FurtherDomain {
            gateway: self.gateway.clone(),
            name: self.host(domain),
            path: self.last_path(),
            objects,
            probe: self.probe.clone(),
        }
    }

    /// The gateway with its filters, which are probed through its first domain.
    pub fn filtered(&self, proxy: ProxyId, connection_manager: &str) -> FilteredGateway {
        FilteredGateway {
            proxy,
            connection_manager: connection_manager.to_owned(),
            probe: self.probe.clone(),
            host: self.host(1),
            path: self.last_path(),
        }
    }

    fn host(&self, domain: usize) -> String {
        Estate::domain(domain, &self.public_name)
    }

    fn last_path(&self) -> String {
        self.estate.paths.map_or_else(|| self.rewrite.clone(), Estate::path)
    }

    fn answer(&self, domain: usize) -> Result<(), String> {
        let host = self.host(domain);
        self.probe.is_served(&host, &self.last_path())
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
