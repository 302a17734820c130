//! `meshmeter view`: who is answered, with which files, and how an open page is kept up to date.

mod command;
#[path = "../../report/tests/fixture/mod.rs"]
mod fixture;

use command::{meshmeter, run, start, stderr};
use report::folder::{Existing, ProgressFile, RunFolder, TRIALS_FILE};
use results::{
    ComponentSecond, ComponentsSecond, HISTORY_SCHEMA, HistoryRun, SeriesPoint, TrialRecord, TrialUnderWay,
};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

/// A page that never comes would hang the test.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// `meshmeter view` of a directory; killed when dropped.
struct Viewing {
    child: Child,
    /// `127.0.0.1:PORT`.
    host: String,
    token: String,
}

impl Viewing {
    fn start(folder: &Path) -> Self {
        let mut child = start(meshmeter().arg("view").arg(folder));
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let (host, token) = address.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
        let token = token.strip_suffix('/').unwrap().to_owned();
        assert!(host.starts_with("127.0.0.1:") && token.len() >= 32, "{address}");
        Self { host: host.to_owned(), token, child }
    }

    fn connect(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// Status, head and body of the response to a request.
    fn exchange(&self, request: &str) -> (u16, String, String) {
        let mut response = String::new();
        self.connect(request).read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{response}"));
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_lowercase(), body.to_owned())
    }

    fn request(&self, method: &str, path: &str, host: &str, further: &str) -> String {
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{further}\r\n")
    }

    /// Response to `GET` of a page, with the token.
    fn get(&self, page: &str) -> (u16, String, String) {
        self.exchange(&self.request("GET", &format!("/{}/{page}", self.token), &self.host, ""))
    }

    /// Lines of the events of a run, as a page gets them that has received the event `last`.
    fn events(&self, run: &str, last: Option<&str>) -> impl Iterator<Item = String> + use<> {
        let last = last.map_or_else(String::new, |id| format!("Last-Event-ID: {id}\r\n"));
        let path = format!("/{}/run/-{run}/events?after=0-0", self.token);
        BufReader::new(self.connect(&self.request("GET", &path, &self.host, &last)))
            .lines()
            .map_while(Result::ok)
    }
}

impl Drop for Viewing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run_folder(path: &Path, trials: &[TrialRecord]) -> RunFolder {
    let run = fixture::run(trials.to_vec());
    let mut folder = RunFolder::create(path, Existing::Keep).unwrap();
    folder.write_experiment(&run.experiment_yaml).unwrap();
    folder.write_host(&run.host).unwrap();
    trials.iter().for_each(|trial| folder.append_trial(trial).unwrap());
    folder
}

/// Ids and rows of the next events of trials.
fn trials(lines: &mut impl Iterator<Item = String>, number: usize) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut id = String::new();
    while found.len() < number {
        let line = lines.next().expect("the events go on");
        if let Some(own) = line.strip_prefix("id: ") {
            own.clone_into(&mut id);
        } else if let Some(row) = line.strip_prefix("data: <tr><th scope=\"row\">").filter(|_| !id.is_empty())
        {
            found.push((std::mem::take(&mut id), row.split('<').next().unwrap().to_owned()));
        }
    }
    found
}

/// The next data of a part.
fn part(lines: &mut impl Iterator<Item = String>, name: &str, expected: &str) -> String {
    let event = format!("event: part-{name}");
    loop {
        assert!(lines.any(|line| line == event), "{name} with {expected}");
        let data: String = lines.by_ref().take_while(|line| line.starts_with("data:")).collect();
        if data.contains(expected) {
            return data;
        }
    }
}

#[test]
fn addresses_without_their_last_slash_lead_to_the_page() {
    let root = tempfile::tempdir().unwrap();
    run_folder(&root.path().join("a run"), &[]);
    let viewing = Viewing::start(root.path());
    for address in [format!("/{}", viewing.token), format!("/{}/run/-a%20run", viewing.token)] {
        let (status, head, _) = viewing.exchange(&viewing.request("GET", &address, &viewing.host, ""));
        let location = format!("location: {}/\r\n", address.to_lowercase());
        assert!(status == 308 && head.contains(&location), "{head}");
        let (status, ..) =
            viewing.exchange(&viewing.request("GET", &format!("{address}/"), &viewing.host, ""));
        assert_eq!(status, 200);
    }
}

#[test]
fn silent_connections_make_room_for_a_page() {
    let root = tempfile::tempdir().unwrap();
    let viewing = Viewing::start(root.path());
    let mut silent: Vec<TcpStream> = (0..80).map(|_| viewing.connect("")).collect();
    assert_eq!(viewing.get("").0, 200);
    assert_eq!(silent[0].read(&mut [0]).unwrap(), 0, "the oldest is closed");
}

#[test]
fn only_browsers_of_this_machine_with_the_token_are_answered() {
    let root = tempfile::tempdir().unwrap();
    let viewing = Viewing::start(root.path());
    let Viewing { host, token, .. } = &viewing;
    let port = host.split_once(':').unwrap().1;
    let page = format!("/{token}/");
    let wrong = format!("/{}/", "0".repeat(token.len()));
    for (method, path, host, expected) in [
        ("GET", page.as_str(), host.clone(), 200),
        ("GET", &page, format!("localhost:{port}"), 200),
        ("GET", &page, format!("[::1]:{port}"), 200),
        ("HEAD", &page, host.clone(), 200),
        ("GET", &wrong, host.clone(), 403),
        ("GET", &page[..page.len() - 2], host.clone(), 403),
        ("GET", &format!("/{token}0/"), host.clone(), 403),
        ("GET", "/", host.clone(), 403),
        ("GET", &page, "127.0.0.1".to_owned(), 421),
        ("GET", &page, format!("evil.example:{port}"), 421),
        ("GET", &page, format!("{host}\r\nHost: {host}"), 421),
        ("GET", &wrong, "evil.example".to_owned(), 421),
        ("POST", &page, host.clone(), 405),
        ("DELETE", &page, host.clone(), 405),
        ("POST", &wrong, host.clone(), 403),
        ("GET", &format!("/{token}"), host.clone(), 308),
        ("GET", &format!("/{token}/absent"), host.clone(), 404),
    ] {
        let (status, head, body) = viewing.exchange(&viewing.request(method, path, &host, ""));
        assert_eq!(status, expected, "{method} {path} {host}: {head}");
        for header in ["content-security-policy: default-src 'none'", "nosniff", "no-referrer", "no-store"] {
            assert!(head.contains(header), "{header}: {head}");
        }
        assert!(!head.contains("unsafe-eval") && !head.contains("script-src 'unsafe-inline'"), "{head}");
        assert_eq!(body.is_empty(), method == "HEAD", "{body}");
    }
    let (status, ..) = viewing.exchange(&format!("GET {page} HTTP/1.0\r\n\r\n"));
    assert_eq!(status, 421, "a request without a host");
}

#[test]
fn only_known_files_of_runs_are_served() {
    let root = tempfile::tempdir().unwrap();
    let viewed = root.path().join("viewed");
    fs::create_dir(&viewed).unwrap();
    let usual = fixture::usual_trials();
    run_folder(&viewed.join("one"), &usual[..2]).write_report("<script>alert(1)</script>").unwrap();
    run_folder(&root.path().join("outside"), &usual[..1]).write_report("secret").unwrap();
    run_folder(&viewed.join("linked files"), &usual[..1]);
    symlink(root.path().join("outside/report.html"), viewed.join("linked files/report.html")).unwrap();
    symlink(root.path().join("outside"), viewed.join("link")).unwrap();
    fs::create_dir(viewed.join("no run")).unwrap();
    fs::write(viewed.join("no run/report.html"), "secret").unwrap();
    fs::write(viewed.join("notes.jsonl"), "secret\n").unwrap();
    let history = HistoryRun {
        schema: HISTORY_SCHEMA.to_owned(),
        run: "nightly-1".to_owned(),
        ..HistoryRun::default()
    };
    fs::write(viewed.join("history.jsonl"), serde_json::to_string(&history).unwrap() + "\n").unwrap();
    let viewing = Viewing::start(&viewed);
    for page in ["", "view.js", "run/-one/", "run/-linked%20files/", "history/-history.jsonl"] {
        assert_eq!(viewing.get(page).0, 200, "{page}");
    }
    let (status, head, body) = viewing.get("run/-one/report.html");
    assert_eq!((status, body.as_str()), (200, "<script>alert(1)</script>"));
    assert!(head.contains("content-security-policy: sandbox; default-src 'none'"), "{head}");
    for page in [
        "run/one/",
        "run/-one/trials.jsonl",
        "run/-one/host.json",
        "run/-one/comparison.html",
        "run/-one/logs/",
        "run/-one/..%2Fone/report.html",
        "run/-linked%20files/report.html",
        "run/-link/",
        "run/-link/report.html",
        "run/-no%20run/",
        "run/-no%20run/report.html",
        "run/-..%2Foutside/",
        "run/-..%2Foutside/report.html",
        "run/-one%2F..%2F..%2Foutside/report.html",
        "run/-%2Fetc/",
        "run/-/",
        "run/../one/",
        "../etc/passwd",
        "history/-notes.jsonl",
        "history/-one%2Ftrials.jsonl",
        "history/-..%2Foutside%2Ftrials.jsonl",
        "history/-%2Fetc%2Fpasswd",
        "history/-link%2Ftrials.jsonl",
    ] {
        let (status, _, body) = viewing.get(page);
        assert_eq!(status, 404, "{page}");
        assert!(!body.contains("secret") && !body.contains("root:"), "{page}: {body}");
    }
}

#[test]
fn damaged_histories_are_shown_as_far_as_they_can_be_read() {
    let root = tempfile::tempdir().unwrap();
    let run = |seed, label: &str| {
        let run = HistoryRun {
            schema: HISTORY_SCHEMA.to_owned(),
            run: format!("nightly-{seed}"),
            label: Some(label.to_owned()),
            seed: Some(seed),
            ..HistoryRun::default()
        };
        serde_json::to_string(&run).unwrap()
    };
    let (good, later) = (run(1, "\u{202e}moc"), run(2, "v2").replace("history/1", "history/2"));
    let write = |name: &str, text: String| fs::write(root.path().join(name), text).unwrap();
    write("cut.jsonl", format!("{good}\n{}", &good[..good.len() - 9]));
    write("later.jsonl", format!("{later}\n{good}\n"));
    write("only-later.jsonl", format!("{later}\n"));
    let viewing = Viewing::start(root.path());
    let (_, _, list) = viewing.get("");
    for (name, said) in [
        ("cut.jsonl", "1 run; line 2 cannot be read and is left out"),
        ("later.jsonl", "1 run; line 1 cannot be read and is left out"),
        ("only-later.jsonl", "0 runs; line 1 cannot be read and is left out"),
    ] {
        assert!(list.contains(said), "{name}: {list}");
        let (status, _, page) = viewing.get(&format!("history/-{name}"));
        assert_eq!(status, 200, "{name}");
        assert!(page.contains(said) && !page.contains('\u{202e}'), "{name}: {page}");
    }
    write("cut.jsonl", format!("{good}\n"));
    let (_, _, list) = viewing.get("");
    assert!(!list.contains("line 2"), "it was mended: {list}");
}

#[test]
fn damaged_runs_and_hostile_names_are_shown_as_what_they_are() {
    let root = tempfile::tempdir().unwrap();
    let name = "<img src=x onerror=alert(1)>\"'&";
    drop(run_folder(&root.path().join(name), &fixture::usual_trials()[..2]));
    let trials = root.path().join(name).join(TRIALS_FILE);
    let text = fs::read_to_string(&trials).unwrap();
    fs::write(&trials, format!("{{\"<b>\": 1}}\n{}", &text[..text.len() - 5])).unwrap();
    fs::remove_file(root.path().join(name).join("host.json")).unwrap();
    let viewing = Viewing::start(root.path());
    let (_, _, list) = viewing.get("");
    assert!(list.contains("damaged: no host.json") && !list.contains("<img"), "{list}");
    let address = list.split("<a href=\"").nth(1).unwrap().split('"').next().unwrap().replace("&#x2f;", "/");
    let (status, _, page) = viewing.get(&address);
    assert_eq!(status, 200, "{address}");
    for expected in [
        "host.json is not there.",
        "Line 1 of trials.jsonl cannot be read",
        "The last line of trials.jsonl was cut short",
        "1 trial and no summary",
        "<tr><th scope=\"row\">1</th>",
    ] {
        assert!(page.contains(expected), "{expected} is missing in {page}");
    }
    assert!(!page.contains("<img") && !page.contains("<b>\":"), "{page}");
}

#[test]
fn lost_connection_resumes_without_gap_and_without_repetition() {
    let root = tempfile::tempdir().unwrap();
    let usual = fixture::usual_trials();
    let mut folder = run_folder(&root.path().join("run"), &usual[..3]);
    let viewing = Viewing::start(root.path());
    let mut page = viewing.events("run", None);
    let mut seen = trials(&mut page, 3);
    folder.append_trial(&usual[3]).unwrap();
    seen.extend(trials(&mut page, 1));
    // Trials end while the page has no connection, and one is half written.
    drop(page);
    folder.append_trial(&usual[4]).unwrap();
    folder.append_trial(&usual[5]).unwrap();
    let mut page = viewing.events("run", Some(&seen[3].0));
    seen.extend(trials(&mut page, 2));
    folder.append_trial(&usual[6]).unwrap();
    seen.extend(trials(&mut page, 1));
    assert_eq!(
        seen.iter().map(|(_, number)| number.as_str()).collect::<Vec<_>>(),
        ["1", "2", "3", "4", "5", "6", "7"]
    );
    // A page that has everything gets no trial again, and its other parts.
    let mut page = viewing.events("run", Some(&seen[6].0));
    let before: Vec<String> = page.by_ref().take_while(|line| line != "event: part-last").collect();
    assert!(
        before.iter().any(|line| line == "event: part-now")
            && !before.iter().any(|line| line == "event: trial")
    );
    // Another run replaces this one: what the page has is not part of it.
    drop(folder);
    drop(run_folder(&root.path().join("other"), &usual[..1]));
    fs::rename(root.path().join("other").join(TRIALS_FILE), root.path().join("run").join(TRIALS_FILE))
        .unwrap();
    assert!(page.any(|line| line == "event: reset"));
    assert!(viewing.events("run", Some(&seen[6].0)).any(|line| line == "event: reset"));
    assert_eq!(trials(&mut viewing.events("run", Some("no id")), 1)[0].1, "1");
}

#[test]
fn run_in_progress_is_followed_second_by_second_until_its_folder_is_gone() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("run");
    let usual = fixture::usual_trials();
    let mut folder = run_folder(&path, &usual[..1]);
    let mut progress = ProgressFile::new(&path);
    let under_way = |ended| TrialUnderWay {
        ended,
        trials: 20,
        title: "sidecar at 1000/s".to_owned(),
        started_at: jiff::Timestamp::now().to_string(),
        rest_s: 1e6,
        ..TrialUnderWay::default()
    };
    progress.begin(under_way(1));
    let viewing = Viewing::start(root.path());
    assert!(viewing.get("").2.contains("in progress: trial 2 of 20"));
    let page = viewing.get("run/-run/").2;
    assert!(
        page.contains("In progress: trial 2 of 20.") && page.contains("Under way: sidecar at 1000&#x2f;s"),
        "{page}"
    );
    assert!(page.contains("No second has been reported yet."), "{page}");
    let mut events = viewing.events("run", None);
    let drivers: Vec<String> = (1..=50).map(|number| format!("driver-{number}")).collect();
    let second = |t_s: f64| SeriesPoint { t_s, completed: 20, p50_us: Some(900.0), ..SeriesPoint::default() };
    for t_s in 0..3 {
        drivers.iter().for_each(|driver| progress.second(driver, &second(f64::from(t_s))));
        part(&mut events, "now", "The last second: 1000/s".replace('/', "&#x2f;").as_str());
    }
    let component = |cpu_cores| ComponentSecond {
        name: "server-proxy".to_owned(),
        cpu_cores,
        memory_bytes: Some(52_428_800),
    };
    for (t_s, cpu_cores) in [(1.0, 0.25), (2.0, 0.75)] {
        progress.components(&ComponentsSecond { t_s, components: vec![component(cpu_cores)] });
        let now = part(&mut events, "now", &format!("{cpu_cores:.3}\u{a0}cores"));
        assert!(
            now.contains("server-proxy, CPU and memory by second") && now.contains("52.4\u{a0}MB"),
            "{now}"
        );
    }
    folder.append_trial(&usual[1]).unwrap();
    progress.begin(under_way(2));
    part(&mut events, "state", "In progress: trial 3 of 20.");
    drop((progress, folder));
    part(&mut events, "state", "2 trials and no summary");
    fs::remove_dir_all(&path).unwrap();
    part(&mut events, "notes", "trials.jsonl is not there.");
    assert_eq!(viewing.get("run/-run/").0, 404);
}

#[test]
fn interruption_ends_it_with_success_and_a_missing_folder_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    let _folder = run_folder(root.path(), &fixture::usual_trials()[..1]);
    let mut viewing = Viewing::start(root.path());
    assert!(viewing.get("").2.contains("<a href=\"run&#x2f;-&#x2f;\">this folder</a>"));
    let mut page = viewing.events("", None);
    assert_eq!(trials(&mut page, 1)[0].1, "1", "a page is open");
    kill_process(Pid::from_child(&viewing.child), Signal::INT).unwrap();
    assert_eq!(viewing.child.wait().unwrap().code(), Some(0));
    let output = run(&["view", "/absent/folder"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("view /absent/folder"), "{}", stderr(&output));
}
