use super::*;
use mesh::admin::Admin;
use mesh::admin::dial::TcpPort;
use std::fs;
use std::io::Read;
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
        let (mut lines, mut next) = (Vec::new(), 0);
        loop {
            let progress: RunProgress = self.runner.get_json(&format!("{PROGRESS_PATH}?{next}")).unwrap();
            next = progress.next;
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
    let begins = RunProgress { lines: vec!["begins".to_owned()], next: 1, ended: None };
    while served.runner.get_json::<RunProgress>(&format!("{PROGRESS_PATH}?0")).unwrap() != begins {}
    assert!(served.ended.ask("/").is_err());
    assert!(served.runner.stream(FOLDER_PATH).is_err());

    served.runner.post_json::<()>(INTERRUPT_PATH, &()).unwrap();
    assert_eq!(served.end(), (vec!["begins".to_owned(), "stops".to_owned()], 1));
    assert_eq!(served.ended.ask("/").unwrap(), b"1");
    let archive = whole(served.runner.stream(FOLDER_PATH).unwrap());
    let copy = tempfile::tempdir().unwrap();
    tar::Archive::new(&*archive).unpack(copy.path()).unwrap();
    assert_eq!(fs::read_to_string(copy.path().join("trials.jsonl")).unwrap(), "1\n");
    served.runner.post_json::<()>(FETCHED_PATH, &()).unwrap();
    assert_eq!(served.thread.join().unwrap().unwrap(), 1);
    drop(served.folder);
}

fn whole(mut archive: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    archive.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn archive_is_continued_at_any_byte() {
    let script = "mkdir -p \"$1/logs/b\"; for name in 2 1 3; do echo $name > \"$1/logs/b/$name\"; done; ln -s /etc \"$1/etc\"";
    let served = served(script, Duration::from_secs(600));
    assert_eq!(served.end().1, 0);
    fs::write(served.folder.path().join("trials.jsonl"), vec![b'x'; 300_000]).unwrap();
    let archive = whole(served.runner.stream(FOLDER_PATH).unwrap());
    let paths: Vec<String> = tar::Archive::new(&*archive)
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().display().to_string())
        .collect();
    assert_eq!(paths, ["logs", "logs/b", "logs/b/1", "logs/b/2", "logs/b/3", "trials.jsonl"]);
    for from in [1, 512, 100_000, archive.len(), archive.len() + 1] {
        let rest = whole(served.runner.stream(&format!("{FOLDER_PATH}?{from}")).unwrap());
        assert_eq!(rest, archive.get(from..).unwrap_or_default(), "from {from}");
    }
    served.runner.post_json::<()>(FETCHED_PATH, &()).unwrap();
    assert_eq!(served.thread.join().unwrap().unwrap(), 0);
}

#[test]
fn runner_stays_while_another_client_copies() {
    let served = served("exit 0", Duration::from_secs(600));
    assert_eq!(served.end().1, 0);
    // More than the buffers between the two.
    let content = vec![b'x'; 64 << 20];
    fs::write(served.folder.path().join("trials.jsonl"), &content).unwrap();
    let archive = served.runner.stream(FOLDER_PATH).unwrap();
    served.runner.post_json::<()>(FETCHED_PATH, &()).unwrap();
    thread::sleep(2 * QUIET_TIME);
    assert!(whole(archive).len() > content.len());
    assert_eq!(served.thread.join().unwrap().unwrap(), 0);
}

#[test]
fn lines_of_any_bytes_are_kept() {
    let served = served("printf 'one\\377\\ntwo\\n' >&2; exit 1", Duration::from_secs(600));
    assert_eq!(served.end(), (vec!["one\u{fffd}".to_owned(), "two".to_owned()], 1));
    served.runner.post_json::<()>(FETCHED_PATH, &()).unwrap();
    assert_eq!(served.thread.join().unwrap().unwrap(), 1);
}

#[test]
fn runner_exits_when_folder_is_not_fetched_in_time() {
    let served = served("exit 2", Duration::ZERO);
    assert_eq!(served.thread.join().unwrap().unwrap(), 2);
}
