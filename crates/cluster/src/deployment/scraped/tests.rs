use super::*;
use crate::deployment::sample::Modes;
use crate::prometheus::{PageServer, PrometheusServer, nobody};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A kubelet's page with `{n}` CPU seconds at `{at}` milliseconds. The split of `app` is missing.
const PAGE: &str = r#"
container_cpu_usage_seconds_total{container="proxy",cpu="total",id="/k/1",image="i",namespace="m",pod="p"} {n} {at}
container_cpu_user_seconds_total{container="proxy",id="/k/1",image="i",namespace="m",pod="p"} 1 {at}
container_cpu_system_seconds_total{container="proxy",id="/k/1",image="i",namespace="m",pod="p"} 3 {at}
container_cpu_cfs_periods_total{container="proxy",id="/k/1",image="i",namespace="m",pod="p"} 10 {at}
container_cpu_cfs_throttled_periods_total{container="proxy",id="/k/1",image="i",namespace="m",pod="p"} 4 {at}
container_cpu_usage_seconds_total{container="app",cpu="total",id="/k/2",image="i",namespace="m",pod="p"} 7 {at}
container_cpu_usage_seconds_total{container="app",cpu="total",id="/o",image="i",namespace="m",pod="of-others"} 8 {at}
container_cpu_usage_seconds_total{container="app",cpu="total",id="/e",image="i",namespace="elsewhere",pod="p"} 9 {at}
container_memory_working_set_bytes{container="proxy",id="/k/1",image="i",namespace="m",pod="p"} 1.5e+06 {at}
container_memory_rss{container="proxy",id="/k/1",image="i",namespace="m",pod="p"} 1e+06 {at}
container_network_receive_bytes_total{container="",id="/k/0",image="pause",interface="eth0",namespace="m",pod="p"} 100 {at}
container_network_receive_bytes_total{container="",id="/k/0",image="pause",interface="eth1",namespace="m",pod="p"} 11 {at}
container_network_transmit_bytes_total{container="",id="/k/0",image="pause",interface="eth0",namespace="m",pod="p"} 50 {at}
"#;

#[test]
fn usage_from_real_prometheus_is_between_its_samples() {
    let scrapes = AtomicU64::new(0);
    let page = PageServer::start(move || {
        let number = scrapes.fetch_add(1, Ordering::Relaxed);
        // Sampled before it is scraped, as by cAdvisor.
        let at = jiff::Timestamp::now().as_millisecond() - 3000;
        PAGE.replace("{n}", &(4 + number).to_string()).replace("{at}", &at.to_string())
    });
    let server = PrometheusServer::start(&page);
    let prometheus = at(&server.url());
    let own = BTreeSet::from([("m", "p"), ("other-namespace", "q")]);
    let key = |container: &str| ("m".to_owned(), "p".to_owned(), container.to_owned());
    let read = || Reading::of_prometheus(&prometheus, &own);
    let newer_than = |at: Duration| {
        server.wait_for(|| {
            let reading = read();
            let is_newer = reading.samples.get(&key("proxy")).is_some_and(|sample| sample.at > at);
            if is_newer { vec![reading] } else { Vec::new() }
        })
    };

    let open = newer_than(Duration::ZERO).remove(0);
    assert_eq!(open.samples.keys().collect::<Vec<_>>(), [&key("app"), &key("proxy")]);
    let [note] = open.notes.as_slice() else { panic!("{:?}", open.notes) };
    assert!(note.starts_with("time throttled is shown as 0") && open.nodes.is_empty(), "{open:?}");
    let (app, proxy) = (open.samples[&key("app")], open.samples[&key("proxy")]);
    assert_eq!((app.modes, app.cpu.total, app.throttling), (Modes::Unknown, Duration::from_secs(7), None));
    assert_eq!((proxy.modes, proxy.throttling), (Modes::OfSample, Some((10, 4, 0.0))));
    assert_eq!((proxy.cpu.user, proxy.cpu.system), (Duration::from_secs(1), Duration::from_secs(3)));
    assert_eq!((proxy.working_set_bytes, proxy.anonymous_bytes), (Some(1_500_000), Some(1_000_000)));
    let network = proxy.network.unwrap();
    assert_eq!((network.received_bytes, network.sent_bytes, network.at), (111, 50, Some(proxy.at)));

    let close = newer_than(proxy.at).remove(0).samples[&key("proxy")];
    let (elapsed, used) = (close.at - proxy.at, close.cpu.total - proxy.cpu.total);
    assert!(
        used >= Duration::from_secs(1) && elapsed > Duration::from_millis(100),
        "{used:?} in {elapsed:?}"
    );
    let now = Duration::from_millis(u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap());
    assert!(now - close.at >= Duration::from_secs(3), "the sample's own time, and not that of the scrape");
}

#[test]
fn unreachable_prometheus_is_note() {
    let reading = Reading::of_prometheus(&at("http://127.0.0.1:1"), &BTreeSet::from([("m", "p")]));
    assert!(reading.samples.is_empty());
    let [note] = reading.notes.as_slice() else { panic!("{:?}", reading.notes) };
    let says = "usage of services and proxies is not known: query Prometheus at http://127.0.0.1:1: ";
    assert!(note.starts_with(says), "{note}");
}

fn at(url: &str) -> Prometheus {
    Prometheus::new(&url.parse().unwrap(), &nobody()).unwrap()
}
