use super::protocol::{Progress, StartArgument};
use super::*;
use mesh::admin::Admin;
use mesh::admin::dial::TcpPort;
use std::thread::JoinHandle;

/// A fake generator: writes a line, reads one, writes it back, and writes a result.
const SCRIPT: &str = "echo ready >&2; read line; echo \"$line\" >&2; printf '{\"a\":1}' > \"${1#--json=}\"";

struct Served {
    admin: Admin,
    thread: JoinHandle<Result<WorkerEnd>>,
    _directory: tempfile::TempDir,
}

fn served(abandoned_after: Duration) -> Served {
    let directory = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    let options = WorkerOptions {
        program: "/bin/sh".into(),
        directory: directory.path().to_path_buf(),
        abandoned_after,
    };
    let thread = std::thread::spawn(move || serve(listener, options));
    Served { admin: Admin::new("worker", TcpPort { authority }), thread, _directory: directory }
}

impl Served {
    fn start(&self, number: u64, script: &str) {
        let arguments = ["-c", script].map(|text| StartArgument::Text(text.to_owned())).to_vec();
        self.admin.post_json::<()>(START_PATH, &Start { number, arguments }).unwrap();
    }

    /// Lines from this one on, once there is one or the generator has ended.
    fn progress(&self, from: usize) -> Progress {
        loop {
            let progress: Progress = self.admin.get_json(&format!("{PROGRESS_PATH}?{from}")).unwrap();
            if !progress.lines.is_empty() || progress.ended.is_some() {
                return progress;
            }
        }
    }

    fn end(&self, mut from: usize) -> (Vec<String>, protocol::End) {
        let mut lines = Vec::new();
        loop {
            let progress = self.progress(from);
            from = progress.next;
            lines.extend(progress.lines);
            if let Some(end) = progress.ended {
                return (lines, end);
            }
        }
    }
}

#[test]
fn generator_is_started_and_released_and_its_result_kept_until_finish() {
    let worker = served(Duration::from_secs(600));
    worker.start(1, SCRIPT);
    assert_eq!(worker.progress(0).lines, ["ready"]);
    worker.admin.post_json::<()>(INPUT_PATH, &Input { line: "go".to_owned() }).unwrap();
    let (lines, end) = worker.end(1);
    assert_eq!((lines, end.exit_code, end.result_bytes), (vec!["go".to_owned()], Some(0), Some(7)));
    assert_eq!(worker.admin.ask(RESULT_PATH).unwrap(), b"{\"a\":1}");
    let status: Status = worker.admin.get_json(STATUS_PATH).unwrap();
    assert!(status.now_ns > 0);
    worker.admin.post_json::<()>(FINISH_PATH, &()).unwrap();
    assert_eq!(worker.thread.join().unwrap().unwrap(), WorkerEnd::Finished);
}

#[test]
fn killed_generator_has_no_exit_code_and_can_be_replaced() {
    let worker = served(Duration::from_secs(600));
    worker.start(1, "echo ready >&2; exec sleep 600");
    assert_eq!(worker.progress(0).lines, ["ready"]);
    worker.admin.post_json::<()>(SIGNAL_PATH, &Signal::Kill).unwrap();
    let (_, end) = worker.end(1);
    assert_eq!((end.exit_code, end.result_bytes), (None, None));
    worker.start(2, "exit 3");
    let progress = worker.progress(0);
    assert_eq!((progress.number, progress.ended.unwrap().exit_code), (2, Some(3)));
}

#[test]
fn events_are_reported_whatever_else_is_written() {
    let worker = served(Duration::from_secs(600));
    let script = "event() { echo \"{\\\"event\\\":\\\"$1\\\"}\" >&2; }; event window-opened; printf 'not UTF-8: \\377\\n' >&2; \
                  yes \"$(printf '%100s' x)\" | head -n 200000 >&2; event window-closed";
    worker.start(1, script);
    let (lines, end) = worker.end(0);
    assert_eq!(lines[0], r#"{"event":"window-opened"}"#);
    assert_eq!(lines[lines.len() - 1], r#"{"event":"window-closed"}"#);
    assert_eq!(end.exit_code, Some(0));
}

#[test]
fn idle_worker_ends() {
    let worker = served(Duration::from_millis(1));
    assert_eq!(worker.thread.join().unwrap().unwrap(), WorkerEnd::Abandoned);
}
