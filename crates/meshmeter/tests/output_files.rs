//! Destinations of results: every output option with every kind of target, inputs among them, and standard streams that take
//! nothing.

mod command;
#[path = "../../report/tests/fixture/mod.rs"]
mod fixture;

use command::{Serving, meshmeter, stderr};
use report::folder::{Existing, RunFolder};
use rustix::fs::{CWD, FileType, Mode, inotify, mknodat};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::mem::MaybeUninit;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

/// Options that write a file, with the commands that have them, save those whose table is empty for this run.
/// FOLDER, RESULT, OTHER and URL are replaced.
const OPTIONS: [(&str, &[&str]); 6] = [
    (
        "report FOLDER",
        &["--output", "--csv", "--latency-csv", "--drivers-csv", "--services-csv", "--junit", "--markdown"],
    ),
    ("load URL --rate 50 --duration 100ms", &["--json", "--csv", "--hdr", "--percentiles", "--fortio"]),
    ("load merge RESULT OTHER", &["--json", "--csv", "--hdr", "--percentiles", "--fortio"]),
    ("topology generate emojivoto", &["--out"]),
    ("topology draw emojivoto", &["--out"]),
    ("topology convert emojivoto --to kubernetes --image a", &["--out"]),
];

/// Commands that read files and write others: their output options, and the files that they read. Words in capitals are replaced
/// as above, or by the files of these names.
const READERS: [(&str, &[&str], &[&str]); 15] = [
    (
        "report FOLDER",
        &[
            "--output",
            "--csv",
            "--latency-csv",
            "--drivers-csv",
            "--services-csv",
            "--edges-csv",
            "--junit",
            "--markdown",
        ],
        &["run/trials.jsonl", "run/experiment.yaml", "run/host.json", "run/logs/envoy.log"],
    ),
    ("report FOLDER --beside SECOND", &["--output"], &["run/trials.jsonl", "second/trials.jsonl"]),
    (
        "load URL --rate 50 --duration 100ms --body @BODY --cacert CA",
        &["--json", "--csv", "--hdr", "--percentiles", "--fortio"],
        &["BODY", "CA"],
    ),
    (
        "load merge RESULT OTHER",
        &["--json", "--csv", "--hdr", "--percentiles", "--fortio"],
        &["result.json", "other.json"],
    ),
    ("topology draw TOPOLOGY", &["--out"], &["TOPOLOGY"]),
    ("topology convert TOPOLOGY --to meshmeter", &["--out"], &["TOPOLOGY"]),
    ("run TOPOLOGY", &["--junit", "--markdown"], &["TOPOLOGY"]),
    ("run --resume FOLDER", &["--junit", "--markdown"], &["run/trials.jsonl", "run/summary.json"]),
    ("compare FOLDER SECOND", &["--junit", "--markdown"], &["run/trials.jsonl", "second/host.json"]),
    ("compare RESULT OTHER --history HISTORY", &["--junit", "--markdown"], &["other.json", "HISTORY"]),
    ("compare --base BODY --head TOPOLOGY", &["--junit", "--markdown"], &["BODY", "TOPOLOGY"]),
    (
        "size --target 1rps --from FOLDER --prices PRICES",
        &["--output", "--markdown"],
        &["run/trials.jsonl", "run/report.html", "PRICES"],
    ),
    (
        "learn --prometheus BODY --objects OBJECTS --anonymise --salt @CA",
        &["--out"],
        &["BODY", "OBJECTS", "CA"],
    ),
    ("serve --tls --client-ca CA", &["--tls-ca-out"], &["CA"]),
    ("fleet --istiod 127.0.0.1:1 --kubeconfig CA", &["--json"], &["CA"]),
];

struct Scene {
    folder: tempfile::TempDir,
    server: Serving,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let run = fixture::run(fixture::usual_trials());
        let mut written = RunFolder::create(&folder.path().join("run"), Existing::Keep).unwrap();
        written.write_experiment(&run.experiment_yaml).unwrap();
        written.write_host(&run.host).unwrap();
        run.trials.iter().for_each(|trial| written.append_trial(trial).unwrap());
        let scene = Self { folder, server: Serving::start(&[]) };
        for result in ["result.json", "other.json"] {
            let mut load = scene.command("load URL --rate 50 --duration 100ms --series-histograms --json");
            assert_ran(&load.arg(scene.path(result)).output().unwrap(), result);
        }
        scene
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("a plain name").to_owned()
    }

    fn command(&self, text: &str) -> Command {
        let mut command = meshmeter();
        command.args(text.split(' ').map(|word| match word {
            "FOLDER" => self.path("run"),
            "RESULT" => self.path("result.json"),
            "OTHER" => self.path("other.json"),
            "SECOND" => self.path("second"),
            "URL" => self.server.url(),
            "BODY" | "CA" | "TOPOLOGY" | "HISTORY" | "PRICES" | "OBJECTS" => self.path(word),
            "@BODY" | "@CA" => format!("@{}", self.path(&word[1..])),
            other => other.to_owned(),
        }));
        command
    }
}

/// A usable outcome: a busy machine may have made the load itself invalid.
fn assert_ran(output: &Output, what: &str) {
    assert!(output.status.code().is_some_and(|code| code <= 1), "{what}: {}", stderr(output));
}

/// Each option, with the command that has it.
fn each_option() -> impl Iterator<Item = (&'static str, &'static str)> {
    OPTIONS.into_iter().flat_map(|(command, options)| options.iter().map(move |option| (command, *option)))
}

#[test]
fn links_and_pipes_are_written_to_and_stay() {
    let scene = Scene::new();
    let is_link = |name: &str| fs::symlink_metadata(scene.path(name)).unwrap().is_symlink();
    let fifo = scene.path("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
    symlink("fifo", scene.path("link-to-fifo")).unwrap();
    // What /dev/stdout is; the machine's own would be lost if this failed.
    symlink("/proc/self/fd/1", scene.path("stdout")).unwrap();
    for (command, option) in each_option() {
        let what = format!("{command} {option}");
        // Standard output, as a link to a pipe.
        let output = scene.command(command).arg(option).arg(scene.path("stdout")).output().unwrap();
        assert_ran(&output, &what);
        assert!(!output.stdout.is_empty(), "{what}");
        // A FIFO behind a link, with a reader that is read meanwhile: pipes hold less than a page.
        let reader = Command::new("cat").arg(&fifo).stdout(Stdio::piped()).spawn().unwrap();
        let reader = thread::spawn(|| reader.wait_with_output());
        let output = scene.command(command).arg(option).arg(scene.path("link-to-fifo")).output().unwrap();
        assert_ran(&output, &what);
        assert!(!reader.join().unwrap().unwrap().stdout.is_empty(), "{what}");
        // A link to a file that is not there, then to one that is.
        let _ = fs::remove_file(scene.path("file"));
        let _ = fs::remove_file(scene.path("link"));
        symlink("file", scene.path("link")).unwrap();
        for _ in 0..2 {
            let output = scene.command(command).arg(option).arg(scene.path("link")).output().unwrap();
            assert_ran(&output, &what);
            assert!(fs::metadata(scene.path("file")).is_ok_and(|file| file.len() > 0), "{what}");
        }
        for name in ["stdout", "link-to-fifo", "link"] {
            assert!(is_link(name), "{what}: {name} is not a link any more");
        }
    }
}

/// Names of the files that a command creates in a folder, but for its output: others who may write there see them.
fn created_beside(output: &Path, ran: impl FnOnce()) -> BTreeSet<String> {
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&watch, output.parent().unwrap(), inotify::WatchFlags::CREATE).unwrap();
    ran();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(&watch, &mut buffer);
    let mut names = BTreeSet::new();
    while let Ok(event) = reader.next() {
        names.extend(event.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    names.remove(output.file_name().unwrap().to_str().unwrap());
    names
}

#[test]
fn nobody_can_put_a_link_where_an_unfinished_output_will_be() {
    let scene = Scene::new();
    let outputs = tempfile::tempdir().unwrap();
    let output = outputs.path().join("output");
    let mut unfinished = 0;
    for (command, option) in each_option() {
        let once = || {
            created_beside(&output, || {
                assert_ran(&scene.command(command).arg(option).arg(&output).output().unwrap(), option);
            })
        };
        let (first, second) = (once(), once());
        assert!(first.is_disjoint(&second), "{command} {option}: {first:?} and {second:?}");
        unfinished += first.len();
    }
    assert!(unfinished > 5, "files that others read are replaced whole");
}

/// A directory may be somebody else's: what its links lead to is not overwritten by names that the user did not type.
#[test]
fn names_that_a_command_chooses_itself_are_not_written_through_links() {
    let scene = Scene::new();
    assert_ran(&scene.command("report FOLDER").output().unwrap(), "report");
    let precious = scene.path("precious");
    for name in ["report.html", "summary.json"] {
        let file = scene.folder.path().join("run").join(name);
        fs::write(&precious, "precious").unwrap();
        fs::remove_file(&file).unwrap();
        symlink(&precious, &file).unwrap();
        let output = scene.command("report FOLDER").output().unwrap();
        assert!(stderr(&output).contains("it is a symbolic link"), "{}", stderr(&output));
        assert_eq!(
            (output.status.code(), fs::read_to_string(&precious).unwrap().as_str()),
            (Some(3), "precious")
        );
        fs::remove_file(&file).unwrap();
        assert_ran(&scene.command("report FOLDER").output().unwrap(), "report");
    }
}

#[test]
fn hyphen_is_standard_output_without_anything_else() {
    let scene = Scene::new();
    for (command, option) in each_option() {
        let what = format!("{command} {option}");
        let file = scene.path("file");
        let written = scene.command(command).arg(option).arg(&file).output().unwrap();
        assert_ran(&written, &what);
        let output = scene.command(command).args([option, "-"]).output().unwrap();
        assert_ran(&output, &what);
        // Two loads measure two things.
        if !command.starts_with("load URL") {
            assert_eq!(output.stdout, fs::read(&file).unwrap(), "{what}");
        }
        assert!(!output.stdout.is_empty() && !Path::new("-").exists(), "{what}");
    }
}

#[test]
fn outputs_that_are_inputs_are_refused_before_anything_is_written() {
    let scene = Scene::new();
    let at = |name: &str| scene.folder.path().join(name);
    for folder in ["second", "run/logs"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    for name in READERS.iter().flat_map(|(_, _, inputs)| *inputs) {
        if !at(name).exists() {
            fs::write(at(name), name).unwrap();
        }
    }
    let refused = |command: &str, option: &str, path: &Path, input: &str| {
        let before = fs::read(at(input)).unwrap();
        let output = scene.command(command).arg(option).arg(path).output().unwrap();
        let expected = format!("{option} would overwrite the input {}", scene.path(input));
        let what = format!("{command} {option} {}: {}", path.display(), stderr(&output));
        assert!(stderr(&output).contains(&expected) && output.status.code() == Some(2), "{what}");
        assert!(output.stdout.is_empty() && fs::read(at(input)).unwrap() == before, "{what}");
    };
    let (link, hard_link) = (at("a-link"), at("a-hard-link"));
    for (command, options, inputs) in READERS {
        for input in inputs {
            symlink(at(input), &link).unwrap();
            fs::hard_link(at(input), &hard_link).unwrap();
            let dotted = at("./run/..").join(input);
            for option in options {
                for path in [&at(input), &dotted, &link, &hard_link] {
                    refused(command, option, path, input);
                }
            }
            fs::remove_file(&link).unwrap();
            fs::remove_file(&hard_link).unwrap();
        }
    }
    // The provenance is written beside the topology; a history is appended to.
    fs::write(at("a.provenance.json"), "answers").unwrap();
    let learn = format!("learn --prometheus {}", scene.path("a.provenance.json"));
    refused(&learn, "--out", &at("a.yaml"), "a.provenance.json");
    let output = scene.command("history add RESULT RESULT").output().unwrap();
    assert!(stderr(&output).contains("FILE would overwrite the input"), "{}", stderr(&output));
    // An experiment names its topology.
    fs::write(at("shop.yaml"), "services: []").unwrap();
    fs::write(at("experiment.yaml"), "name: a\ntopology: shop.yaml\nmodes: [none]\n").unwrap();
    let experiment = format!("run {} --dry-run --junit", scene.path("experiment.yaml"));
    let output = scene.command(&experiment).arg(at("shop.yaml")).output().unwrap();
    assert!(stderr(&output).contains("--junit would overwrite it"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(2));
    // What the command writes by itself is written once; earlier reports and other files of the folder may be replaced.
    let output = scene.command("report FOLDER --csv").arg(at("run/report.html")).output().unwrap();
    assert!(
        stderr(&output).contains("--csv and the command itself cannot both write to"),
        "{}",
        stderr(&output)
    );
    fs::write(at("run/table.csv"), "an earlier table").unwrap();
    let output = scene.command("report FOLDER --csv").arg(at("run/table.csv")).output().unwrap();
    assert_ran(&output, "report --csv run/table.csv");
    let output = scene.command("report FOLDER -o").arg(at("run/report.html")).output().unwrap();
    assert_ran(&output, "report -o run/report.html");
    assert!(fs::read_to_string(at("run/table.csv")).unwrap().contains("component"));
}

#[test]
fn one_output_at_most_is_standard_output() {
    let scene = Scene::new();
    let before = fs::read_dir(scene.path("run")).unwrap().count();
    for (command, options) in [
        ("report FOLDER --json --csv -", "--json and --csv"),
        ("report FOLDER --output - --markdown -", "--output and --markdown"),
        ("report FOLDER --latency-csv - --junit -", "--latency-csv and --junit"),
        ("report FOLDER --beside FOLDER --json --output -", "--json and --output"),
        ("run sidecar-cost --json --junit -", "--json and --junit"),
        ("run sidecar-cost --markdown - --junit -", "--junit and --markdown"),
        ("cluster attach --json --markdown -", "--json and --markdown"),
        ("load URL --json - --csv -", "--json and --csv"),
        ("load merge RESULT OTHER --json - --hdr -", "--json and --hdr"),
    ] {
        let output = scene.command(command).output().unwrap();
        let expected = format!("{options} cannot both write to standard output");
        assert!(stderr(&output).contains(&expected), "{command}: {}", stderr(&output));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{command}");
    }
    assert_eq!(fs::read_dir(scene.path("run")).unwrap().count(), before, "nothing is written");
    // The result for people gives way to one output.
    let output = scene.command("report FOLDER --csv -").output().unwrap();
    assert_ran(&output, "report --csv -");
}

#[test]
fn streams_that_take_nothing_cost_no_file() {
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let scene = Scene::new();
    let files = [scene.path("run/report.html"), scene.path("run/summary.json")];
    let mut report = scene.command("report FOLDER");
    for (status, command) in [
        (0, report.stderr(full()).stdout(Stdio::null())),
        (3, scene.command("report FOLDER").stdout(full())),
        (3, scene.command("report FOLDER").stdout(full()).stderr(full())),
    ] {
        files.iter().for_each(|file| drop(fs::remove_file(file)));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        assert!(files.iter().all(|file| Path::new(file).exists()), "{files:?}");
    }
    // A load keeps its results too.
    let json = scene.path("later.json");
    let mut load = scene.command("load URL --rate 50 --duration 100ms --progress plain --json");
    let output = load.arg(&json).stdout(full()).stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(fs::metadata(&json).is_ok_and(|file| file.len() > 0));
    // Whatever prints says so once, with its status, instead of a panic.
    for command in [
        "completion bash",
        "schema experiment",
        "topology generate emojivoto",
        "doctor --json",
        "run sidecar-cost --dry-run",
    ] {
        let output = scene.command(command).stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{command}: {}", stderr(&output));
        assert!(
            stderr(&output).contains("write to standard output: No space left"),
            "{command}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn standard_output_in_a_file_keeps_what_was_before() {
    let scene = Scene::new();
    symlink("/proc/self/fd/1", scene.path("stdout")).unwrap();
    let path = scene.path("shared");
    fs::write(&path, "before\n").unwrap();
    let shared: File = OpenOptions::new().append(true).open(&path).unwrap();
    let output =
        scene.command("report FOLDER --csv").arg(scene.path("stdout")).stdout(shared).output().unwrap();
    assert_ran(&output, "report");
    let text = fs::read_to_string(&path).unwrap();
    let table = text.find("component").expect("the table is there");
    assert!(text.starts_with("before\n") && table > 0, "{text}");
    assert!(text.contains("sidecar"), "the result for people follows: {text}");
}
