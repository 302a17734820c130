//! `meshmeter load --objective`: outcome and exit status.

mod command;

use command::{Serving, run, stderr, stdout};
use experiment::schema::LoadResult;

#[test]
fn an_objective_decides_the_exit_status_and_is_in_the_result() {
    let server = Serving::start(&["--delay", "5ms"]);
    let url = server.url();
    for (objective, duration, met) in [
        // Even a machine that is busy or stalled for half of the time keeps these bounds.
        ("p50=3s,p99=4s,errors=0,achieved=50%", "3s", true),
        ("p50=1ms,p90=3s", "1s", false),
        ("rate=5000", "1s", false),
    ] {
        let arguments =
            ["--rate", "500", "--duration", duration, "--objective", objective, "--json", "-", &url];
        let output = run(&[&["load", "--progress", "off"], &arguments[..]].concat());
        let result: LoadResult = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
        let judged = result.objective.expect("an objective was given");
        assert_eq!(judged.met, met, "{judged:?}");
        assert_eq!(judged.bounds.len(), objective.split(',').count());
        // A busy machine may make the result invalid, which is also status 1.
        assert_eq!(output.status.code(), Some(i32::from(!(met && result.verdict.valid))), "{judged:?}");
    }
}

#[test]
fn undecidable_objectives_are_rejected() {
    let url = "http://127.0.0.1:1/";
    for (arguments, expected) in [
        (&["--rate", "100", "--duration", "1s", "--objective", "p99=5ms"][..], "it takes 10s"),
        (&["--rate", "100", "--objective", "p99=11s"], "--timeout"),
        (&["--clients", "1", "--objective", "achieved=99%"], "closed loop"),
        (&["--rate", "100", "--objective", "p98=1ms"], "p98"),
        (&["--rate", "100", "--objective", "p50=5ms,p99=1ms"], "never smaller"),
    ] {
        let output = run(&[&["load"], arguments, &[url]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
}
