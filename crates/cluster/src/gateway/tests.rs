use super::*;
use crate::objects;
use crate::plug::{self, Labels, Stands};
use crate::settings::ClusterSettings;
use experiment::MeshKind;
use experiment::environment::{Estate, GatewaySettings, MutualTls, Scenario};
use experiment::mesh_settings::{IngressSettings, MeshSettings};
use experiment::topology::Topology;
use mesh::proof::Seen;
use results::Mode;
use serde_json::{Value, json};
use std::sync::Arc;

fn settings() -> ClusterSettings {
    ClusterSettings::new("meshmeter:1", "run-1")
}

fn spec(api: IngressApi, tls: IngressTls) -> DeploymentSpec {
    let istio = MeshSettings { ingress: IngressSettings { tls, api }, ..MeshSettings::default() };
    let gateway = GatewaySettings { cpu_limit_cores: Some(1.5), ..GatewaySettings::default() };
    DeploymentSpec { istio: Arc::new(istio), gateway, ..DeploymentSpec::new(MeshKind::Istio, Mode::Ingress) }
}

fn written(spec: &DeploymentSpec) -> Result<Vec<Value>> {
    let settings = settings();
    let plug = plug::for_mode(spec.mesh, spec.mode, &settings)?;
    objects::objects(spec, &settings, &*plug)
}

fn of_gateways(spec: &DeploymentSpec) -> Vec<Value> {
    let labels = Labels::from([("sidecar.istio.io/inject".to_owned(), "true".to_owned())]);
    super::objects(&PlugContext { spec, settings: &settings() }, &labels)
}

fn listed(objects: &[Value]) -> String {
    objects.iter().map(|object| serde_json::to_string_pretty(object).unwrap()).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_api_has_its_objects() {
    insta::assert_snapshot!("istio-off", listed(&of_gateways(&spec(IngressApi::Istio, IngressTls::Off))));
    insta::assert_snapshot!(
        "istio-mutual",
        listed(&of_gateways(&spec(IngressApi::Istio, IngressTls::Mutual)))
    );
    insta::assert_snapshot!(
        "kubernetes-simple",
        listed(&of_gateways(&spec(IngressApi::Kubernetes, IngressTls::Simple)))
    );
}

#[test]
fn objects_belong_to_run_and_none_is_cluster_scoped() {
    for api in [IngressApi::Istio, IngressApi::Kubernetes] {
        let mut objects = written(&spec(api, IngressTls::Mutual)).unwrap();
        objects.retain(|object| object["kind"] != "Namespace");
        for object in objects {
            assert_eq!(object["metadata"]["labels"]["meshmeter.dev/run"], "run-1", "{object}");
            assert_eq!(object["metadata"]["namespace"], "meshmeter", "{object}");
        }
    }
}

#[test]
fn drivers_are_outside_mesh_and_request_public_name_at_gateway() {
    let spec = spec(IngressApi::Istio, IngressTls::Mutual);
    let objects = written(&spec).unwrap();
    let job = objects.iter().find(|object| object["kind"] == "Job").unwrap();
    assert_eq!(job["spec"]["template"]["metadata"]["labels"]["sidecar.istio.io/inject"], "false");
    let context = PlugContext { spec: &spec, settings: &settings() };
    let certificates = GatewayCertificates::issue(&context).unwrap();
    let aims = destination(&context, &spec.topology.drivers[0], certificates.as_ref()).unwrap();
    assert_eq!((aims.url.as_str(), &aims.probe_url), ("https://shop.example:8443/", &aims.url));
    let options = aims.arguments.iter().filter_map(|argument| match argument {
        StartArgument::Text(text) => Some(text.as_str()),
        StartArgument::File { .. } => None,
    });
    let options: Vec<&str> = options.collect();
    assert_eq!(options, ["--connect-to=ingress.meshmeter:8443", "--cacert", "--cert", "--key"]);
}

#[test]
fn grpc_is_probed_by_http() {
    let spec = spec(IngressApi::Istio, IngressTls::Off).with_protocol(Protocol::Grpc);
    let context = PlugContext { spec: &spec, settings: &settings() };
    let aims = destination(&context, &spec.topology.drivers[0], None).unwrap();
    assert!(aims.url.starts_with("grpc://shop.example:8443/"), "{}", aims.url);
    assert_eq!(aims.probe_url, "http://shop.example:8443/");
}

#[test]
fn certificates_are_in_written_objects_but_not_in_printed_ones() {
    let spec = spec(IngressApi::Kubernetes, IngressTls::Simple);
    let mut objects = written(&spec).unwrap();
    let secret = |objects: &[Value]| {
        objects.iter().find(|object| object["kind"] == "Secret").unwrap()["stringData"].clone()
    };
    assert_eq!(secret(&objects)["tls.key"], "made as the run writes it");
    let certificates =
        GatewayCertificates::issue(&PlugContext { spec: &spec, settings: &settings() }).unwrap().unwrap();
    certificates.fill_in(&mut objects);
    let data = secret(&objects);
    assert!(data["tls.key"].as_str().unwrap().starts_with("-----BEGIN PRIVATE KEY-----"), "{data}");
    assert!(data["tls.crt"].as_str().unwrap().starts_with("-----BEGIN CERTIFICATE-----"), "{data}");
    assert_eq!(data["ca.crt"], Value::Null, "clients show no certificate");
    assert_eq!(certificates.client_arguments().len(), 2);
}

/// A counter that a proxy does not keep reads as zero, and would prove that nothing passed.
#[test]
fn gateways_keep_counters_that_prove_their_path() {
    let spec = spec(IngressApi::Istio, IngressTls::Mutual);
    let settings = settings();
    let context = PlugContext { spec: &spec, settings: &settings };
    let gateway = &gateways(&context)[0];
    let evidence = gateway.evidence(&context);
    let Seen::Requests(requests) = &evidence.seen else { panic!("{:?}", evidence.seen) };
    let demanded = evidence.demands.iter().map(|demand| demand.counter.as_str());
    let named = demanded.chain([requests.requests.as_str(), evidence.handshakes.as_deref().unwrap()]);
    let kept = gateway.statistics(&context);
    for counter in named {
        assert!(kept.iter().any(|prefix| counter.starts_with(prefix)), "{counter} is not kept: {kept:?}");
    }
    assert_eq!(evidence.demands.len(), 2, "handshakes, and certificates of all clients");
}

#[test]
fn path_is_encrypted_behind_gateway() {
    let expected = |spec: &DeploymentSpec| {
        let settings = settings();
        let context = PlugContext { spec, settings: &settings };
        let plug = plug::for_mode(spec.mesh, spec.mode, &settings).unwrap();
        let call = spec.topology.calls[0];
        let of_gateway = of_call(&context, call).map(|gateway| gateway.evidence(&context).tls_expected);
        let of_sidecars = plug.evidence(&context, call).into_iter();
        (of_gateway, of_sidecars.map(|(id, evidence)| (id, evidence.tls_expected)).collect::<Vec<_>>())
    };
    let mut spec = spec(IngressApi::Istio, IngressTls::Off);
    assert_eq!(expected(&spec), (Some(true), vec![(Stands::InPodsOf(1), true)]));
    spec.proxy.mtls = MutualTls::Off;
    assert_eq!(expected(&spec), (Some(false), vec![(Stands::InPodsOf(1), false)]));
    let sidecars = DeploymentSpec::new(MeshKind::Istio, Mode::Sidecar);
    assert_eq!(expected(&sidecars), (None, vec![(Stands::InPodsOf(0), true), (Stands::InPodsOf(1), true)]));
}

#[test]
fn strictness_is_claimed_of_the_sidecar_before_a_service() {
    let settings = settings();
    let accepted = |mtls: MutualTls| {
        let mut spec = DeploymentSpec::new(MeshKind::Istio, Mode::Sidecar);
        spec.proxy.mtls = mtls;
        let context = PlugContext { spec: &spec, settings: &settings };
        let plug = plug::for_mode(spec.mesh, spec.mode, &settings).unwrap();
        let evidence = plug.evidence(&context, spec.topology.calls[0]);
        evidence
            .iter()
            .map(|(_, evidence)| evidence.accepts.map(|accepts| accepts.plaintext))
            .collect::<Vec<_>>()
    };
    assert_eq!(accepted(MutualTls::Strict), [None, Some(false)]);
    assert_eq!(accepted(MutualTls::Permissive), [None, Some(true)]);
}

#[test]
fn gateway_is_caller_in_policies() {
    let mut spec = spec(IngressApi::Istio, IngressTls::Off);
    Arc::make_mut(&mut spec.istio).authorization.identities = 1;
    let objects = written(&spec).unwrap();
    let policy = objects.iter().find(|object| object["kind"] == "AuthorizationPolicy").unwrap();
    let principals = &policy["spec"]["rules"][0]["from"][0]["source"]["principals"];
    assert_eq!(*principals, json!(["cluster.local/ns/meshmeter/sa/ingress"]));
}

#[test]
fn unsupported_gateways_are_rejected_before_anything_is_written() {
    let refused = |change: &dyn Fn(&mut DeploymentSpec)| {
        let mut spec = spec(IngressApi::Istio, IngressTls::Off);
        change(&mut spec);
        written(&spec).unwrap_err().operation
    };
    for scenario in [Scenario::NoFilters, Scenario::Waf, Scenario::Direct] {
        let declared = Estate { declared: true, scenario, ..Estate::default() };
        let refused = refused(&|spec| spec.ingress = Arc::new(declared.clone()));
        assert_eq!(refused, "deploy the domains of `ingress`");
    }
    let tcp = refused(&|spec| *spec = spec.clone().with_protocol(Protocol::Tcp));
    assert_eq!(tcp, "start a gateway before server");
    let rename =
        |spec: &mut DeploymentSpec, change: fn(&mut Topology)| change(Arc::make_mut(&mut spec.topology));
    let named = refused(&|spec| rename(spec, |topology| topology.workloads[0].name = NAME.to_owned()));
    assert_eq!(named, "start a gateway before server");
}

#[test]
fn needs_follow_from_api_and_tls() {
    let of = |api, tls| {
        let spec = spec(api, tls);
        (need(&spec).is_some(), has_secrets(&spec))
    };
    assert_eq!(of(IngressApi::Istio, IngressTls::Off), (false, false));
    assert_eq!(of(IngressApi::Kubernetes, IngressTls::Mutual), (true, true));
}
