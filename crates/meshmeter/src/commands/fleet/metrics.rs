//! Metrics of istiod, the API server and etcd: read at the start, once per second for peaks, and at the end
//! of each phase.

use super::control_plane_metrics::{Counted, Exposed, MetricsReading, MetricsWindow};
use crate::cli::MetricsUrl;
use experiment::environment::{EnvironmentError, ErrorContext as _, error_chain};
use mesh::admin::Admin;
use mesh::admin::dial::TcpPort;
use mesh::kubernetes::client::ApiClient;
use results::ControlPlaneFigures;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// An istiod that is short of CPU responds late.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

type ReadPage = Box<dyn Fn() -> Result<String, EnvironmentError> + Send + Sync>;

/// A page of metrics.
pub struct MetricsPage {
    exposed: Exposed,
    read: ReadPage,
    /// Hint if the page cannot be read; may be empty.
    hint: String,
    /// True if read every second; the API server's page is too long for that.
    is_sampled: bool,
}

impl MetricsPage {
    pub fn over_http(exposed: Exposed, url: &MetricsUrl, hint: &str) -> Self {
        let admin =
            Admin::new(exposed.name(), TcpPort { authority: url.authority.clone() }).within(RESPONSE_TIMEOUT);
        let (path, authority) = (url.path.clone(), url.authority.clone());
        let read = move || {
            let page = admin.ask(&path).context(format!("read http://{authority}{path}"))?;
            Ok(String::from_utf8_lossy(&page).into_owned())
        };
        Self { exposed, read: Box::new(read), hint: hint.to_owned(), is_sampled: true }
    }

    pub fn of_api_server(api: Arc<ApiClient>) -> Self {
        Self {
            exposed: Exposed::ApiServer,
            read: Box::new(move || api.get_text("query the metrics of the Kubernetes API", "/metrics")),
            hint: String::new(),
            is_sampled: false,
        }
    }

    fn reading(&self) -> Result<MetricsReading, EnvironmentError> {
        MetricsReading::parse(self.exposed, &(self.read)()?)
    }
}

struct Watched {
    page: MetricsPage,
    /// The error says why there is no window.
    window: Mutex<Result<MetricsWindow, String>>,
    /// Held while the page is read: readings are added in the order in which they were taken, even if a
    /// process ends in between.
    turn: Mutex<()>,
}

impl Watched {
    fn new(page: MetricsPage) -> Self {
        let first = page.reading().map(|reading| MetricsWindow::new(page.exposed, reading));
        let window = first.map_err(|error| {
            let hint = if page.hint.is_empty() { String::new() } else { format!(" ({})", page.hint) };
            error_chain(&error) + &hint
        });
        Self { page, window: Mutex::new(window), turn: Mutex::new(()) }
    }

    fn window(&self) -> MutexGuard<'_, Result<MetricsWindow, String>> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a reading. A failed one is skipped: an istiod that restarts responds later.
    fn sample(&self) {
        if self.window().is_err() {
            return;
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(reading) = self.page.reading()
            && let Ok(window) = self.window().as_mut()
        {
            window.add(reading);
        }
    }

    fn total(&self) -> Counted {
        self.window().as_ref().map(MetricsWindow::total).unwrap_or_default()
    }
}

/// Totals of every page at one moment.
pub type Totals = Vec<Counted>;

/// Totals at the end of each phase that the run reached.
#[derive(Clone, Debug, Default)]
pub struct Phases {
    /// When all proxies were complete.
    pub connected: Option<Totals>,
    /// When all changes had been followed.
    pub changed: Option<Totals>,
}

/// Reads the pages until [`Self::finish`].
pub struct MetricsSampler {
    pages: Arc<Vec<Watched>>,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl MetricsSampler {
    pub fn start(pages: Vec<MetricsPage>) -> Result<Self, EnvironmentError> {
        let pages: Arc<Vec<Watched>> = Arc::new(pages.into_iter().map(Watched::new).collect());
        let (stop, stopped) = channel();
        let sampled = Arc::clone(&pages);
        let sample = move || {
            while stopped.recv_timeout(SAMPLE_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                sampled.iter().filter(|watched| watched.page.is_sampled).for_each(Watched::sample);
            }
        };
        let thread = thread::Builder::new().name("control plane metrics".to_owned()).spawn(sample);
        Ok(Self { pages, stop, thread: thread.context("start a thread for the control plane's metrics")? })
    }

    /// Version of the first istiod that reports one.
    pub fn istiod_version(&self) -> Option<String> {
        let istiods = self.pages.iter().filter(|watched| watched.page.exposed == Exposed::Istiod);
        istiods.filter_map(|watched| watched.window().as_ref().ok()?.last().version.clone()).next()
    }

    /// Reads every page now.
    pub fn totals(&self) -> Totals {
        self.pages.iter().for_each(Watched::sample);
        self.pages.iter().map(Watched::total).collect()
    }

    /// CPU time of all istiods since the start, read now; `None` if one does not report it.
    pub fn istiods_cpu_s(&self) -> Option<f64> {
        let istiods = self.pages.iter().filter(|watched| watched.page.exposed == Exposed::Istiod);
        let cpu_s = |watched: &Watched| {
            watched.sample();
            watched.window().as_ref().ok().map(|window| window.total().cpu_s)
        };
        istiods.map(cpu_s).sum()
    }

    /// Figures of the window, in page order.
    pub fn finish(self, phases: &Phases) -> Vec<ControlPlaneFigures> {
        let Self { pages, stop, thread } = self;
        drop(stop);
        // A thread that panicked has already reported it.
        let _ = thread.join();
        pages.iter().for_each(Watched::sample);
        let figures = pages.iter().enumerate();
        figures.map(|(place, watched)| watched.figures(place, phases)).collect()
    }
}

impl Watched {
    fn figures(&self, place: usize, phases: &Phases) -> ControlPlaneFigures {
        let exposed = self.page.exposed;
        let failed = |why: &str| ControlPlaneFigures {
            name: exposed.name().to_owned(),
            failure: Some(why.to_owned()),
            ..ControlPlaneFigures::default()
        };
        let window = self.window();
        let window = match window.as_ref() {
            Ok(window) => window,
            Err(why) => return failed(why),
        };
        let at = |totals: &Option<Totals>| totals.as_ref().and_then(|totals| totals.get(place)).cloned();
        let (connected, changed) = (at(&phases.connected), at(&phases.changed));
        let changes = connected.as_ref().zip(changed).map(|(connected, changed)| changed.since(connected));
        let figures = window.figures(changes.as_ref());
        if exposed == Exposed::ApiServer && figures.restarts > 0 {
            return failed("it restarted, or several API servers respond at the kubeconfig's address");
        }
        ControlPlaneFigures {
            cpu_connecting_s: connected.map(|connected| connected.cpu_s),
            cpu_changing_s: changes.map(|changes| changes.cpu_s),
            ..figures
        }
    }
}
