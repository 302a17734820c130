//! Objects for the gateways of a deployment, in the order in which they are written.

use super::certificates::PLACEHOLDER;
use super::{Gateway, gateways};
use crate::manifests::{self, app_labels, resources};
use crate::placement::place_measured;
use crate::plug::{ENVOY, Labels, PlugContext, proxy_config};
use crate::pods::IMAGE_OF_WEBHOOK;
use crate::settings::RUN_LABEL;
use experiment::mesh_settings::IngressApi;
use mesh::dataplane::with_subject;
use mesh::istio::objects::ingress::{self, NAME, PORT};
use serde_json::{Value, json};

/// Label of a gateway's pod; its value is the namespace. istiod matches the pods of a `Gateway` by labels, in
/// all namespaces.
const LABEL: &str = "meshmeter.dev/gateway";
/// ConfigMap with changes that istiod applies to the Deployment that it creates.
const PARAMETERS: &str = "ingress-gateway";
/// User of Istio's proxies.
const USER: u32 = 1337;
/// Termination grace period of a pod: by then it is no longer needed.
const TERMINATION_S: u32 = 2;

/// Objects of all gateways. `mesh_labels` are the labels of pods into which the mesh injects.
pub(crate) fn objects(context: &PlugContext<'_>, mesh_labels: &Labels) -> Vec<Value> {
    gateways(context).iter().flat_map(|gateway| gateway.objects(context, mesh_labels)).collect()
}

impl Gateway {
    fn objects(&self, context: &PlugContext<'_>, mesh_labels: &Labels) -> Vec<Value> {
        let spec = context.spec;
        let mut all = ingress::credentials(spec.ingress_tls(), &self.namespace, &[PLACEHOLDER]);
        match spec.istio.ingress.api {
            IngressApi::Istio => {
                all.extend([self.account(), self.service(context), self.deployment(context, mesh_labels)]);
            }
            IngressApi::Kubernetes => {
                // istiod sends a gateway the certificates that its own `Gateway` names: its account reads no
                // Secret.
                all.retain(|object| object["kind"] == "Secret");
                all.push(self.parameters(context));
            }
        }
        let routes =
            with_subject(context, self.target, |subject| ingress::objects(spec, subject, &self.host));
        all.extend(routes.into_iter().map(|mut object| {
            if object["kind"] == "Gateway" {
                self.attach(context, &mut object);
            }
            object
        }));
        all
    }

    /// Ties a `Gateway` to this gateway only: by the label of its pod, or by the infrastructure that istiod
    /// is to deploy.
    fn attach(&self, context: &PlugContext<'_>, object: &mut Value) {
        if context.spec.istio.ingress.api == IngressApi::Istio {
            object["spec"]["selector"] = json!({"app": NAME, LABEL: self.namespace});
            return;
        }
        object["metadata"]["annotations"] = json!({
            "networking.istio.io/service-type": "ClusterIP",
            // Names of the Deployment and Service, and of the service account.
            "gateway.istio.io/name-override": NAME,
            "gateway.istio.io/service-account": NAME,
        });
        if let Some(revision) = &context.settings.revision {
            object["metadata"]["labels"]["istio.io/rev"] = json!(revision);
        }
        // Addresses of a gateway that already runs.
        object["spec"].as_object_mut().map(|spec| spec.remove("addresses"));
        object["spec"]["infrastructure"] = json!({
            "labels": self.labels(context),
            "annotations": {"proxy.istio.io/config": self.proxy_config(context)},
            "parametersRef": {"group": "", "kind": "ConfigMap", "name": PARAMETERS},
        });
    }

    fn labels(&self, context: &PlugContext<'_>) -> Labels {
        let mut labels = app_labels(NAME);
        labels.extend(manifests::map([(RUN_LABEL, &context.settings.run), (LABEL, &self.namespace)]));
        labels
    }

    fn proxy_config(&self, context: &PlugContext<'_>) -> String {
        let workers = context.spec.gateway.workers(&context.spec.proxy);
        proxy_config(context.spec, workers, self.statistics(context)).to_string()
    }

    fn metadata(&self, name: &str) -> Value {
        json!({"name": name, "namespace": self.namespace})
    }

    fn account(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self.metadata(NAME)})
    }

    fn service(&self, context: &PlugContext<'_>) -> Value {
        let protocol = context.spec.topology.workloads[self.target].protocol;
        let name = ingress::port_name(protocol, context.spec.ingress_tls());
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self.metadata(NAME),
            "spec": {
                "type": "ClusterIP",
                "selector": {"app": NAME, LABEL: self.namespace},
                "ports": [{"name": name, "port": PORT, "targetPort": PORT}],
            },
        })
    }

    /// As in Istio's gateway chart: the webhook fills in the container and its image.
    fn deployment(&self, context: &PlugContext<'_>, mesh_labels: &Labels) -> Value {
        let mut labels = self.labels(context);
        labels.extend(mesh_labels.clone());
        let mut container = json!({
            "name": ENVOY.container,
            "image": IMAGE_OF_WEBHOOK,
            // Without a tag, kubelets would query the registry for the image at every start.
            "imagePullPolicy": "IfNotPresent",
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]},
                "privileged": false,
                "readOnlyRootFilesystem": true,
                "runAsGroup": USER,
                "runAsNonRoot": true,
                "runAsUser": USER,
            },
        });
        set_limits(context, &mut container);
        let mut template = json!({
            "metadata": {
                "labels": labels,
                "annotations": {
                    "inject.istio.io/templates": "gateway",
                    "proxy.istio.io/config": self.proxy_config(context),
                },
            },
            "spec": {
                "serviceAccountName": NAME,
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "terminationGracePeriodSeconds": TERMINATION_S,
                "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [container],
            },
        });
        place_measured(context.settings, &mut template["spec"]);
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": self.metadata(NAME),
            "spec": {"replicas": 1, "selector": {"matchLabels": app_labels(NAME)}, "template": template},
        })
    }

    /// Changes to the Deployment that istiod creates.
    fn parameters(&self, context: &PlugContext<'_>) -> Value {
        let mut container = json!({"name": ENVOY.container});
        set_limits(context, &mut container);
        let mut pod = json!({
            "terminationGracePeriodSeconds": TERMINATION_S,
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [container],
        });
        place_measured(context.settings, &mut pod);
        let patch = json!({"spec": {"template": {"spec": pod}}});
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": self.metadata(PARAMETERS),
            "data": {"deployment": patch.to_string()},
        })
    }
}

fn set_limits(context: &PlugContext<'_>, container: &mut Value) {
    let limits = context.spec.gateway.limits(&context.spec.proxy);
    if let Some(resources) = resources(limits) {
        container["resources"] = json!(resources);
    }
}
