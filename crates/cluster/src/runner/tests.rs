use super::*;
use mesh::admin::Admin;
use mesh::admin::dial::TcpPort;
use std::thread::JoinHandle;

struct Served {
    runner: Admin,
    ended: Admin,
    thread: JoinHandle<Result<u8>>,
    folder: tempfile::TempDir,
}

/// A runner that runs a script. The script's argument is the run folder.
fn served(script: &str, keep_for: Duration) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let options = RunnerOptions {
        program: "/usr/bin/env".into(),
        // A shell that starts with the signal ignored, as in the background of another shell, cannot set a
        // trap for it.
        arguments: ["--default-signal=INT", "sh", "-c", script, "run"]
            .map(OsString::from)
            .into_iter()
            .chain([folder.path().into()])
            .collect(),
        folder: folder.path().to_path_buf(),
        keep_for,
    };
    let listeners = [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let admin = |listener: &TcpListener| {
        Admin::new("runner", TcpPort { authority: listener.local_addr().unwrap().to_string() })
    };
    let [runner, ended] = [&listeners[0], &listeners[1]].map(admin);
    let thread = thread::spawn(move || {
        let [own, of_kubelet] = listeners;
        serve(own, of_kubelet, &options)
    });
    Served { runner, ended, thread, folder }
}

impl Served {
    /// All lines and the exit status.
    fn end(&self) -> (Vec<String>, u8) {
        let mut lines = Vec::new();
        loop {
            let path = format!("{PROGRESS_PATH}?{}", lines.len());
            let progress: RunProgress = self.runner.get_json(&path).unwrap();
            lines.extend(progress.lines);
            if let Some(status) = progress.ended {
                return (lines, status);
            }
        }
    }
}

#[test]
fn runner_keeps_results_until_fetched_and_exits_with_run_status() {
    let script = "trap 'echo stops >&2; echo 1 > \"$1/trials.jsonl\"; exit 1' INT; echo begins >&2; while :; do sleep 0.05; done";
    let served = served(script, Duration::from_secs(600));
    let begins = RunProgress { lines: vec!["begins".to_owned()], ended: None };
    while served.runner.get_json::<RunProgress>(&format!("{PROGRESS_PATH}?0")).unwrap() != begins {}
    assert!(served.ended.ask("/").is_err());
    assert!(served.runner.get_long(FOLDER_PATH).is_err());

    served.runner.post_json::<()>(INTERRUPT_PATH, &()).unwrap();
    assert_eq!(served.end(), (vec!["begins".to_owned(), "stops".to_owned()], 1));
    assert_eq!(served.ended.ask("/").unwrap(), b"1");
    let archive = served.runner.get_long(FOLDER_PATH).unwrap();
    let copy = tempfile::tempdir().unwrap();
    tar::Archive::new(&*archive).unpack(copy.path()).unwrap();
    assert_eq!(std::fs::read_to_string(copy.path().join("trials.jsonl")).unwrap(), "1\n");
    served.runner.post_json::<()>(FETCHED_PATH, &()).unwrap();
    assert_eq!(served.thread.join().unwrap().unwrap(), 1);
    drop(served.folder);
}

#[test]
fn runner_exits_when_folder_is_not_fetched_in_time() {
    let served = served("exit 2", Duration::ZERO);
    assert_eq!(served.thread.join().unwrap().unwrap(), 2);
}
