#!/usr/bin/env python3
"""Builds the test programs and runs a selection of their tests.

  scripts/tests.py quick                 `make test`: nothing that takes minutes, nothing that judges a time
  scripts/tests.py all                   `make test-all`: everything
  scripts/tests.py build                 builds the test programs
  scripts/tests.py rates RESULT...       failures per test in results of several runs (scripts/flakes.sh)

Options of quick and all:
  --results FILE       write the outcome of each test as JSON
  --only TEXT          programs whose name (crate/target) contains TEXT
  --no-build           run the programs of the last build
  --timeout SECONDS    a program that takes longer hangs (default: 3600)
  --stall SECONDS      stop all programs for this long, again and again, as a machine that stalls does
Option of build:
  --config SETTING     handed to Cargo

scripts/test-programs.toml says which programs and tests are selected, and which tests measure. Tests of behaviour run side by
side, the longest programs first. Tests that measure run afterwards, one at a time. Every test runs once.
"""

import argparse
import contextlib
import json
import os
import queue
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Programs at once: most tests wait, or use one CPU.
SLOTS = 4
# The longest program takes eight minutes on two cores.
DEFAULT_TIMEOUT_S = 3600
# Programs that are interrupted take down their labs and clusters.
INTERRUPTION_TIMEOUT_S = 30
SLOWEST = 10
# Time in which an interruption is noticed at the latest.
SIGNAL_INTERVAL_S = 0.5
# Shortest and longest time between two stalls.
STALL_INTERVALS_S = (1, 6)
# Exit status after an interruption, as a shell gives it.
INTERRUPTED = 128 + signal.SIGINT
# Processes that tests start may write to the output at any time: before the name, on the same line, and, if tests run one at a
# time, between a name and its outcome, which then ends a line. libtest-mimic pads names.
NAME = re.compile(r"test (\S+)(?: - should panic)? +\.\.\. ")
OUTCOME = re.compile(r"(ok|FAILED|ignored|not run)(?=[ ,:]|$)", re.MULTILINE)
LATER_OUTCOME = re.compile(r"(ok|FAILED)$", re.MULTILINE)
END_OF_OUTCOMES = re.compile(r"^(failures:|test result: )", re.MULTILINE)
ANNOUNCEMENT = re.compile(r"^running (\d+) tests?$", re.MULTILINE)
SUMMARY = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored; (\d+) measured", re.MULTILINE)


@dataclass
class Program:
    """A test program, and how it is run."""

    name: str
    folder: str
    path: str
    arguments: list[str] = field(default_factory=list)
    # Tests that the selection names. One that does not run was renamed, or lacks what it needs: neither passes.
    named: list[str] = field(default_factory=list)
    measures: bool = False
    # False for a benchmark: it prints figures, and its exit status alone says how it ended.
    has_result: bool = True


def outcomes_in(output):
    """Name and outcome of each test of an output, in order; tests without an outcome are left out."""
    names = list(NAME.finditer(output))
    outcomes = []
    for name, following in zip(names, [*names[1:], None]):
        end = following or END_OF_OUTCOMES.search(output, name.end())
        text = output[name.end() : end.start() if end else None]
        at_once = OUTCOME.match(text)
        found = [at_once[1]] if at_once else LATER_OUTCOME.findall(text)
        outcomes += [(name[1], outcome) for outcome in found[-1:]]
    return outcomes


@dataclass
class Ended:
    """How a program ended."""

    program: Program
    status: int | None
    output: str = ""
    # Apart from the output: tests write to it while outcomes are printed.
    errors: str = ""
    wall_s: float = 0
    cpu_s: float = 0
    # Why the program has no outcomes.
    fault: str | None = None

    def outcomes(self):
        return outcomes_in(self.output)

    def failures(self):
        """Names of failed tests and of named tests that did not run; the program itself if it failed without naming one."""
        if self.fault:
            return [f"({self.fault})"]
        outcomes = dict(self.outcomes())
        failed = [name for name, outcome in outcomes.items() if outcome == "FAILED"]
        if self.status == 0:
            skipped = [name for name in self.program.named if outcomes.get(name) != "ok"]
            failed += [f"{name} (named in test-programs.toml, and did not run)" for name in skipped]
            failed += self.lacks() if self.program.has_result else []
        if self.status != 0 and not failed:
            failed = ["(killed: it hung)" if self.status is None else f"(exit status {self.status})"]
        return failed

    def lacks(self):
        """A program that says it succeeded may have ended too early: what its output lacks."""
        summaries = SUMMARY.findall(self.output)
        if not summaries:
            return ["(it printed no test result)"]
        announcement = ANNOUNCEMENT.search(self.output)
        counted = sum(map(int, summaries[-1]))
        announced = int(announcement[1]) if announcement else counted
        seen = len(self.outcomes())
        if min(counted, seen) < announced:
            return [f"({announced} tests announced, {counted} counted in its test result, outcomes of {seen})"]
        return []


def build(config=()):
    """Builds all test programs, with more settings of Cargo. Returns them by name, and keeps the list for --no-build."""
    cargo = os.environ.get("CARGO", "cargo")
    command = [cargo, "test", "--locked", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"]
    command += [option for setting in config for option in ("--config", setting)]
    # Linted while it is compiled. `make program` does the same, so that it is compiled once.
    environment = os.environ | {"RUSTC_WORKSPACE_WRAPPER": str(ROOT / "scripts/rustc-with-lints.sh")}
    messages = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=False)
    if messages.returncode != 0:
        sys.exit(messages.returncode)
    programs = {}
    for line in messages.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            program = described(message)
            programs[program.name] = program
    built_list().parent.mkdir(parents=True, exist_ok=True)
    built_list().write_text(json.dumps([[p.name, p.folder, p.path] for p in programs.values()]))
    return programs


def built_list():
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "tests" / "programs.json"


def described(message):
    """The program of a message of Cargo's. A library's own tests have the name of the crate."""
    folder = str(Path(message["manifest_path"]).parent)
    kind, target = message["target"]["kind"][0], message["target"]["name"]
    crate = Path(folder).name
    return Program(f"{crate}/{target}" if kind in ("test", "bench") else f"{crate} ({kind})", folder, message["executable"])


def select(programs, table, everything):
    """Programs to run: those of behaviour, the longest first, and those that measure."""
    check_names(programs, table)
    order = {name: place for place, name in enumerate(table["longest-first"])}
    behaviour, measuring = [], []
    for name in sorted(programs, key=lambda name: (order.get(name, len(order)), name)):
        program = replace(programs[name], has_result=name not in table["benchmarks"])
        measured = table["measuring"].get(name, [])
        if everything:
            if measured != ["*"]:
                behaviour.append(with_arguments(program, excluding(measured)))
            if measured:
                names = [] if measured == ["*"] else measured
                measuring.append(with_arguments(program, only(measured), names, measures=True))
        elif name in table["cases-of-quick"]:
            cases = table["cases-of-quick"][name]
            behaviour.append(with_arguments(program, cases, cases))
        elif name not in table["not-in-quick"] and measured != ["*"]:
            behaviour.append(with_arguments(program, excluding(measured)))
    return behaviour, measuring


def check_names(programs, table):
    rows_named = [name for row in table["in-a-row"] for name in row]
    lists = ("longest-first", "benchmarks", "measuring", "cases-of-quick", "not-in-quick")
    named = [*rows_named, *(name for key in lists for name in table[key])]
    unknown = sorted(set(named) - set(programs))
    if unknown:
        sys.exit(f"tests: scripts/test-programs.toml names programs that do not exist: {', '.join(unknown)}")


def with_arguments(program, arguments, named=(), measures=False):
    return replace(program, arguments=arguments, named=list(named), measures=measures)


def excluding(tests):
    return ["--exact", *(part for test in tests for part in ("--skip", test))] if tests else []


def only(tests):
    return ["--test-threads=1", *([] if tests == ["*"] else ["--exact", *tests])]


class Runner:
    """Runs programs, each in a process group of its own, which ends with this script and if the program hangs."""

    def __init__(self, timeout_s):
        self.timeout_s = timeout_s
        self.lock = threading.Lock()
        self.groups = set()
        self.is_stopped = False

    def start(self, program, output, errors):
        """Starts a program. Its tests read CARGO_MANIFEST_DIR, as under Cargo."""
        with self.lock:
            if self.is_stopped:
                return None
            child = subprocess.Popen(
                [program.path, *program.arguments],
                cwd=program.folder, env={**os.environ, "CARGO_MANIFEST_DIR": program.folder}, stdin=subprocess.DEVNULL,
                stdout=output, stderr=errors, start_new_session=True,
            )
            self.groups.add(child.pid)
            return child

    def run(self, program):
        """Runs a program to its end. None if this script was interrupted before."""
        began = time.monotonic()
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            try:
                child = self.start(program, output, errors)
            except OSError as error:
                return Ended(program, None, fault=f"it cannot be started: {error}")
            if child is None:
                return None
            hung, usage = self.wait(child)
            texts = [written(file) for file in (output, errors)]
        wall_s = time.monotonic() - began
        return Ended(program, None if hung else child.returncode, *texts, wall_s, usage.ru_utime + usage.ru_stime)

    def wait(self, child):
        """Waits for the end of a program. Returns whether it hung, and what it used."""
        hung = threading.Event()

        def end_hung():
            hung.set()
            self.send(signal.SIGKILL, [child.pid])

        timer = threading.Timer(self.timeout_s, end_hung)
        timer.start()
        # The number of the group stays its own until the program is reaped.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        timer.cancel()
        with self.lock:
            self.groups.discard(child.pid)
        _, status, usage = os.wait4(child.pid, 0)
        # Popen must not wait for a process that is gone.
        child.returncode = os.waitstatus_to_exitcode(status)
        return hung.is_set(), usage

    def stop(self, threads):
        """Starts nothing more and interrupts the programs; those that do not end are killed."""
        with self.lock:
            self.is_stopped = True
            groups = list(self.groups)
        try:
            self.send(signal.SIGINT, groups)
            deadline = time.monotonic() + INTERRUPTION_TIMEOUT_S
            # The interruption may have come while threads were being started.
            for thread in threads:
                if thread.ident is not None:
                    thread.join(max(0, deadline - time.monotonic()))
        finally:
            self.send(signal.SIGKILL, groups)

    @contextlib.contextmanager
    def stalling(self, length_s):
        """Stops all programs for this long at random times, if at all."""
        ended = threading.Event()

        def stall():
            while not ended.wait(random.uniform(*STALL_INTERVALS_S)):
                with self.lock:
                    groups = list(self.groups)
                self.send(signal.SIGSTOP, groups)
                ended.wait(length_s)
                self.send(signal.SIGCONT, groups)

        thread = threading.Thread(target=stall)
        if length_s:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            if length_s:
                thread.join()

    def send(self, number, groups):
        """Sends a signal to process groups that still run."""
        with self.lock:
            for group in self.groups.intersection(groups):
                os.killpg(group, number)


def written(file):
    file.seek(0)
    return file.read().decode(errors="replace")


def rows(programs, in_a_row):
    """Programs in rows: those of a row run one after the other. The place of a row is that of its first program."""
    rows, row_of = [], {}
    for program in programs:
        key = next((number for number, names in enumerate(in_a_row) if program.name in names), program.name)
        if key not in row_of:
            row_of[key] = []
            rows.append(row_of[key])
        row_of[key].append(program)
    return rows


def run_side_by_side(runner, rows, slots, report):
    waiting = queue.SimpleQueue()
    for row in rows:
        waiting.put(row)
    lock = threading.Lock()

    def work():
        while True:
            try:
                row = waiting.get_nowait()
            except queue.Empty:
                return
            for program in row:
                ended = runner.run(program)
                if ended is None:
                    return
                with lock:
                    report(ended)

    threads = [threading.Thread(target=work) for _ in range(slots)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            # A signal between Python's last look and the wait does not end the wait: one without an end would lose it.
            while thread.is_alive():
                thread.join(SIGNAL_INTERVAL_S)
    except KeyboardInterrupt:
        runner.stop(threads)
        raise


def show(ended):
    print(f"     Running {ended.program.name} ({ended.wall_s:.0f} s)\n{ended.output}{ended.errors}", flush=True)


def not_run(selected, all_ended):
    """Programs that have no end, for example because a thread of this script died."""
    ended = {id(end.program) for end in all_ended}
    return [Ended(program, None, fault="it did not run") for program in selected if id(program) not in ended]


def summarise(all_ended, began):
    """Prints what failed, with its kind, and the counts. Returns the exit status."""
    print(f"\nAll tests took {time.monotonic() - began:.0f} s. Longest programs:")
    for ended in sorted(all_ended, key=lambda ended: -ended.wall_s)[:SLOWEST]:
        print(f"{ended.wall_s:6.0f} s, CPU {ended.cpu_s:4.0f} s  {ended.program.name}")
    outcomes = Counter(outcome for ended in all_ended for _, outcome in ended.outcomes())
    failed = [(ended.program, test) for ended in all_ended for test in ended.failures()]
    for program, test in failed:
        print(f"failed ({'measurement' if program.measures else 'behaviour'}): {program.name} {test}")
    print(f"\n{outcomes['ok']} passed, {len(failed)} failed, {outcomes['ignored'] + outcomes['not run']} skipped")
    return 1 if failed else 0


def write_results(path, all_ended):
    rows = [
        {"program": ended.program.name, "test": test, "failed": outcome == "FAILED", "measures": ended.program.measures}
        for ended in all_ended
        for test, outcome in ended.outcomes()
    ]
    known = {(row["program"], row["test"]) for row in rows}
    for ended in all_ended:
        for test in ended.failures():
            if (ended.program.name, test) not in known:
                rows.append({"program": ended.program.name, "test": test, "failed": True, "measures": ended.program.measures})
    Path(path).write_text(json.dumps(rows, indent=1))


def print_rates(paths):
    """Prints each test that failed in a run, with its rate. Names of files say the condition: CONDITION-NUMBER.json."""
    runs, failures = Counter(), {}
    for path in map(Path, paths):
        condition = path.stem.split("-")[0]
        runs[condition] += 1
        for row in json.loads(path.read_text()):
            if row["failed"]:
                failures.setdefault(f"{row['program']} {row['test']}", Counter())[condition] += 1
    conditions = sorted(runs)
    print("runs: " + ", ".join(f"{runs[condition]} {condition}" for condition in conditions))
    for test, count in sorted(failures.items(), key=lambda item: -item[1].total()):
        print("  ".join(f"{count[condition]}/{runs[condition]} {condition}" for condition in conditions), " ", test)
    print(f"{len(failures)} tests failed in at least one run")
    return 1 if failures else 0


def heed_signals():
    """Interruptions end this script, whatever it was started with. Programs would inherit signals that are ignored: SIGINT in the
    background of a shell, SIGHUP under nohup."""
    is_hangup_ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    signal.signal(signal.SIGHUP, (lambda *_: None) if is_hangup_ignored else signal.default_int_handler)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["quick", "all", "build", "rates"])
    parser.add_argument("files", nargs="*", metavar="RESULT")
    parser.add_argument("--results", metavar="FILE")
    parser.add_argument("--only", metavar="TEXT", default="")
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=DEFAULT_TIMEOUT_S)
    parser.add_argument("--stall", metavar="SECONDS", type=float, default=0)
    parser.add_argument("--config", metavar="SETTING", action="append", default=[])
    return parser.parse_args()


def main():
    options = parse()
    if options.what == "rates":
        return print_rates(options.files)
    if options.what == "build":
        build(options.config)
        return 0
    if options.no_build:
        programs = {name: Program(name, folder, path) for name, folder, path in json.loads(built_list().read_text())}
    else:
        programs = build(options.config)
    table = tomllib.loads((ROOT / "scripts/test-programs.toml").read_text())
    selected = select(programs, table, options.what == "all")
    behaviour, measuring = ([program for program in some if options.only in program.name] for some in selected)
    if not behaviour and not measuring:
        sys.exit("tests: no test program is selected")
    in_a_row = table["in-a-row"] if options.what == "all" else [list(table["cases-of-quick"])]
    began, all_ended = time.monotonic(), []

    def report(ended):
        all_ended.append(ended)
        show(ended)

    runner = Runner(options.timeout)
    heed_signals()
    try:
        with runner.stalling(options.stall):
            run_side_by_side(runner, rows(behaviour, in_a_row), SLOTS, report)
            run_side_by_side(runner, rows(measuring, []), 1, report)
    except KeyboardInterrupt:
        print(f"tests: interrupted; {len(all_ended)} of {len(behaviour + measuring)} programs have ended", file=sys.stderr)
        return INTERRUPTED
    all_ended += not_run(behaviour + measuring, all_ended)
    if options.results:
        write_results(options.results, all_ended)
    return summarise(all_ended, began)


if __name__ == "__main__":
    sys.exit(main())
