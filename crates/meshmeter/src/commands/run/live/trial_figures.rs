//! Figures of a completed trial as metrics: gauges that stay until the next trial ends.

use export::{Families, Labels, add_fleet_result};
use results::{
    ComponentUsage, GatewayDuration, GatewayRecord, LoadResult, Role, ServiceRecord, TrialRates, TrialRecord,
};
use std::borrow::Cow;

/// Microseconds per second.
const US_IN_S: f64 = 1e6;
/// Help text of metrics that are read at both ends of the window.
const IN_WINDOW: &str = "Over the trial's measured window.";

/// Figures of one trial, with its labels.
pub(super) fn trial_families(record: &TrialRecord, labels: &Labels) -> Families {
    let mut figures = Figures { families: Families::default(), labels };
    let valid = if record.verdict.valid { 1.0 } else { 0.0 };
    figures.gauge("meshmeter_trial_valid", "1 where the figures of the trial may be used.", &[], valid);
    if let Some(result) = &record.result {
        figures.result(result);
    }
    if let Some(fleet) = record.fleet() {
        add_fleet_result(fleet, &mut figures.families, labels);
    }
    record.components.iter().for_each(|component| figures.component(component));
    record.services.iter().for_each(|service| figures.service(service));
    record.gateways.iter().for_each(|gateway| figures.gateway(gateway));
    if let Some(rates) = &record.rates {
        figures.rates(rates);
    }
    figures.families
}

struct Figures<'a> {
    families: Families,
    labels: &'a Labels,
}

impl Figures<'_> {
    fn gauge(&mut self, name: &'static str, help: &'static str, labels: &[(&'static str, &str)], value: f64) {
        let mut all = self.labels.clone();
        let labels = labels.iter().filter(|(_, value)| !value.is_empty());
        all.extend(labels.map(|(name, value)| (Cow::Borrowed(*name), (*value).to_owned())));
        self.families.gauge(name, help, all, value);
    }

    fn result(&mut self, result: &LoadResult) {
        let times = &result.response_time_us;
        for (quantile, us) in [
            ("0.5", times.p50),
            ("0.9", times.p90),
            ("0.95", times.p95),
            ("0.99", times.p99),
            ("1", times.max),
        ] {
            self.gauge(
                "meshmeter_trial_response_time_quantile_seconds",
                "Response times of the trial, 1 the greatest; +Inf among requests without a response.",
                &[("quantile", quantile)],
                us.map_or(f64::INFINITY, |us| us / US_IN_S),
            );
        }
    }

    fn component(&mut self, component: &ComponentUsage) {
        let pod = component.pod.as_deref().unwrap_or_default();
        let role = role(component.role);
        let labels = [("component", component.name.as_str()), ("role", role.as_str()), ("pod", pod)];
        self.gauge("meshmeter_component_cpu_cores", IN_WINDOW, &labels, component.cpu_cores());
        if let Some(bytes) = component.memory_bytes() {
            let help = "At the end of the trial's measured window.";
            self.gauge("meshmeter_component_memory_bytes", help, &labels, bytes as f64);
        }
        if let Some(network) = component.network
            && component.window_s > 0.0
        {
            let per_second = |bytes: u64| bytes as f64 / component.window_s;
            let help = "Of the pod's interface, over the trial's measured window.";
            for (name, bytes) in [
                ("meshmeter_component_received_bytes_per_second", network.received_bytes),
                ("meshmeter_component_sent_bytes_per_second", network.sent_bytes),
            ] {
                self.gauge(name, help, &labels, per_second(bytes));
            }
        }
        if let Some(throttling) = component.throttling {
            let help = "Time in the trial's measured window for which a CPU limit held it back.";
            self.gauge("meshmeter_component_throttled_seconds", help, &labels, throttling.time_s);
        }
    }

    fn service(&mut self, service: &ServiceRecord) {
        if let Some(rate) = service.requests_per_s {
            let labels = [("service", service.name.as_str()), ("namespace", service.namespace.as_str())];
            self.gauge("meshmeter_service_requests_per_second", IN_WINDOW, &labels, rate);
        }
    }

    fn gateway(&mut self, gateway: &GatewayRecord) {
        let own = [("gateway", gateway.name.as_str()), ("namespace", gateway.namespace.as_str())];
        self.gauge("meshmeter_gateway_requests_per_second", IN_WINDOW, &own, gateway.requests_per_s);
        let window_s = gateway.window_s;
        let per_second = |count: u64| if window_s > 0.0 { count as f64 / window_s } else { 0.0 };
        for (class, count) in &gateway.responses {
            let labels = [own[0], own[1], ("code", class.as_str())];
            let name = "meshmeter_gateway_responses_per_second";
            self.gauge(name, IN_WINDOW, &labels, per_second(*count));
        }
        for (name, bytes) in [
            ("meshmeter_gateway_received_bytes_per_second", gateway.bytes_received),
            ("meshmeter_gateway_sent_bytes_per_second", gateway.bytes_sent),
        ] {
            self.gauge(
                name,
                "Of clients' connections, over the trial's measured window.",
                &own,
                per_second(bytes),
            );
        }
        for (side, duration) in
            [("downstream", gateway.duration_downstream_us), ("upstream", gateway.duration_upstream_us)]
        {
            let Some(GatewayDuration { p50, p90, p99, .. }) = duration else { continue };
            for (quantile, us) in [("0.5", p50), ("0.9", p90), ("0.99", p99)] {
                self.gauge(
                    "meshmeter_gateway_duration_quantile_seconds",
                    "By the gateway's own histogram: downstream towards clients, upstream towards destinations.",
                    &[own[0], own[1], ("side", side), ("quantile", quantile)],
                    us / US_IN_S,
                );
            }
        }
    }

    fn rates(&mut self, rates: &TrialRates) {
        let observers = [
            ("generator", Some(rates.generator)),
            ("gateway", rates.gateway),
            ("destination", rates.destination),
        ];
        for (observer, rate) in observers {
            let Some(rate) = rate else { continue };
            let help = "Requests of the trial's measured window as each observer counted them.";
            self.gauge("meshmeter_observed_requests_per_second", help, &[("observer", observer)], rate);
        }
    }
}

/// Name of the role in result files.
fn role(role: Role) -> String {
    let value = serde_json::to_value(role).expect("a role is a word");
    value.as_str().unwrap_or_default().to_owned()
}
