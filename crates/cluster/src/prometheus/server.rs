//! For tests: a real Prometheus that scrapes a page.

use super::process::PrometheusProcess;
use mesh::kubernetes::client::ApiClient;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Only a failing wait takes this long.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns a page on every connection. Dropping it ends it.
pub(crate) struct PageServer {
    authority: String,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PageServer {
    /// `page` is called per request.
    pub fn start(page: impl Fn() -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                // Clients may disconnect.
                let _ = respond(connection, &page());
            }
        });
        Self { authority, is_over, thread: Some(thread) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.authority)
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // The server checks when a client connects.
        drop(TcpStream::connect(&self.authority));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A cluster that does not respond.
pub(crate) fn nobody() -> Arc<ApiClient> {
    super::client_of("http://127.0.0.1:1").unwrap()
}

fn respond(mut connection: TcpStream, page: &str) -> std::io::Result<()> {
    connection.set_read_timeout(Some(TIMEOUT))?;
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let length = connection.read(&mut part)?;
        if length == 0 {
            return Ok(());
        }
        head.extend_from_slice(&part[..length]);
    }
    write!(
        connection,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    )
}

/// Scrapes a page every second.
pub(crate) struct PrometheusServer(PrometheusProcess);

impl PrometheusServer {
    pub fn start(page: &PageServer) -> Self {
        let configuration = format!(
            "scrape_configs: [{{job_name: kubelet, scrape_interval: 1s, scrape_timeout: 1s, static_configs: [{{targets: ['{}']}}]}}]\n",
            page.authority
        );
        Self(PrometheusProcess::start(&configuration, &[]))
    }

    pub fn url(&self) -> String {
        self.0.url()
    }

    /// Repeats the query until it returns something.
    pub fn wait_for<T>(&self, ask: impl Fn() -> Vec<T>) -> Vec<T> {
        let began = Instant::now();
        loop {
            let found = ask();
            if !found.is_empty() {
                return found;
            }
            assert!(began.elapsed() < TIMEOUT, "prometheus has scraped nothing");
            thread::yield_now();
        }
    }
}
