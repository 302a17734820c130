//! Certificates of a deployment's gateways and of their clients, issued by a CA of the deployment. The keys
//! go to Secrets of the run and to its workers, and nowhere else: objects that are printed have a
//! placeholder.

use super::gateways;
use crate::Result;
use crate::plug::PlugContext;
use crate::worker::protocol::StartArgument;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use experiment::environment::ErrorContext as _;
use experiment::mesh_settings::IngressTls;
use mesh::certificates::{Credentials, RunAuthority};
use mesh::istio::objects::ingress::{CREDENTIAL, Credential};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Placeholder for certificates and keys, which are issued only when a deployment is written.
pub(super) const PLACEHOLDER: Credential<'_> =
    Credential { name: CREDENTIAL, certificate: MADE_LATER, key: MADE_LATER, client_authority: MADE_LATER };
const MADE_LATER: &str = "made as the run writes it";

#[derive(Debug)]
pub(crate) struct GatewayCertificates {
    /// Server certificates by namespace in the cluster.
    servers: BTreeMap<String, Credentials>,
    client: Credentials,
    tls: IngressTls,
}

impl GatewayCertificates {
    /// Issues the certificates of a deployment; `None` if its clients do not speak TLS.
    pub fn issue(context: &PlugContext<'_>) -> Result<Option<Self>> {
        if !super::has_secrets(context.spec) {
            return Ok(None);
        }
        let operation = "make the certificates of the ingress gateway";
        let authority = RunAuthority::create().context(operation)?;
        let server = |gateway: super::Gateway| {
            let issued = authority.issue_server(&[&gateway.host], &[]).context(operation)?;
            Ok((gateway.namespace, issued))
        };
        let servers = gateways(context).into_iter().map(server).collect::<Result<_>>()?;
        let client = authority.issue_client("client", "meshmeter").context(operation)?;
        Ok(Some(Self { servers, client, tls: context.spec.ingress_tls() }))
    }

    /// Fills certificates and keys into the gateways' Secrets.
    pub fn fill_in(&self, objects: &mut [Value]) {
        for object in objects.iter_mut().filter(|object| object["kind"] == "Secret") {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            let Some(server) = self.servers.get(namespace) else { continue };
            let contents = [
                ("tls.crt", &server.certificate_pem),
                ("tls.key", &server.key_pem),
                ("ca.crt", &server.authority_pem),
            ];
            for (name, content) in contents {
                if let Some(placeholder) = object["stringData"].get_mut(name) {
                    *placeholder = json!(content);
                }
            }
        }
    }

    /// Arguments of `meshmeter load`: the CA to trust and, if requested, the client certificate.
    pub fn client_arguments(&self) -> Vec<StartArgument> {
        let mut files = vec![("--cacert", "authority.pem", &self.client.authority_pem)];
        if self.tls == IngressTls::Mutual {
            files.push(("--cert", "certificate.pem", &self.client.certificate_pem));
            files.push(("--key", "key.pem", &self.client.key_pem));
        }
        let argument = |(option, name, content): (&str, &str, &String)| {
            let file = StartArgument::File {
                prefix: String::new(),
                name: name.to_owned(),
                content_base64: STANDARD.encode(content),
            };
            [StartArgument::Text(option.to_owned()), file]
        };
        files.into_iter().flat_map(argument).collect()
    }
}
