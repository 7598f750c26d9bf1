"""Check the labelled programs in tests/simt/checks: count the defects that simt finds, and the false alarms.

    python benchmarks/validate/checks.py [NAME …] [--json] [--readme]

Each program runs under `python -m simt check`. A defect counts as found if any finding has its check's name, and as
rightly named if it is the first finding, with the right line, threads and array. A sound program must give no finding.
The table also has what NVIDIA's compute-sanitizer reports on an H200 (sanitizer.py). The exit status is 1 if any
program's findings do not match its labels.

The head of a program holds its labels:

    // check: race              the defect's check, or `sound`
    // near: race               of a sound program: the check that it is a hard case for
    // allows: race             of a sound program: a warning of this check is no false alarm
    // what: …                  what is wrong, or why it is sound although it looks wrong
    // severity: warning        of a defect that may be harmless, so that a warning is right
    // source: name.h           the included file in which the marked lines are
    // says: …                  words of the message; more than one such line is allowed
    // array, index, block, thread, other_thread: …      where only one answer is right; `thread: none`: host code

The line at fault ends with `// defect`; other lines at which the same fault shows, or the other access of a race, end
with `// other`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT
from benchmarks.publish.tables import make_table_with_source, show_table, write_section
from benchmarks.validate.sanitizer import DATA as SANITIZER
from benchmarks.validate.sanitizer import SPECIMENS, TOOLS, digest

DATA = DATA_FOLDER / "checks.json"
CHECKS = (
    *("out_of_bounds", "illegal_address", "misaligned", "uninitialized", "race", "barrier_divergence"),
    *("warp_divergence", "int_overflow", "schedule", "leak", "unchecked_error", "device_assert"),
)
TIMEOUT_S = 240  # of one program, including its build
# These have no thread at fault, and a schedule finding has no line either.
NO_THREAD = ("schedule", "leak", "unchecked_error")
NO_LINE = ("schedule",)
HEADS = ["check", "defects found", "rightly named", "false alarms", "sanitizer: found", "sanitizer: alarms"]


@dataclass(frozen=True)
class Specimen:
    """A program of the labelled set. check: a name of CHECKS, or "sound"; near: the check whose row it counts in."""

    path: Path
    check: str
    near: str
    what: str
    allows: frozenset[str]
    defect: frozenset[int]  # lines
    other: frozenset[int]
    labels: dict[str, object]  # array, index, block, thread, other_thread
    severity: str = "error"
    source: str = ""
    says: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.path.stem


def read_labels(path: Path) -> Specimen:
    """Read the labels of a program. Raises ValueError if they are incomplete or contradictory."""
    text = path.read_text()
    lines = re.findall(r"^// (\w+): (.*)$", text, re.M)
    head = dict(lines)
    source = head.get("source", path.name)
    marked_text = path.with_name(source).read_text()
    marked = {
        mark: frozenset(n for n, line in enumerate(marked_text.splitlines(), 1) if line.endswith(f"// {mark}"))
        for mark in ("defect", "other")
    }
    check = head.get("check", "")
    near = head.get("near", check)
    if (
        near not in CHECKS
        or check not in (near, "sound")
        or not head.get("what")
        or bool(marked["defect"]) != (check != "sound")
    ):
        raise ValueError(f"{path.name}: its labels are not complete, or do not fit together")
    labels: dict[str, object] = {}
    for name in ("array", "index", "block", "thread", "other_thread"):
        if name in head:
            numbers = [int(n) for n in re.findall(r"-?\d+", head[name])]
            labels[name] = head[name] if name == "array" else numbers[0] if name == "index" else numbers or None
    return Specimen(
        path,
        check,
        near,
        head["what"],
        frozenset(head.get("allows", "").split()),
        marked["defect"],
        marked["other"],
        labels,
        head.get("severity", "error"),
        source,
        tuple(value for name, value in lines if name == "says"),
    )


def read_specimens(names: tuple[str, ...] = ()) -> list[Specimen]:
    """Return the whole set, or the named programs."""
    return [read_labels(p) for p in sorted(SPECIMENS.glob("*.cu")) if not names or p.stem in names]


# ---- running ----


def find_findings(specimen: Specimen) -> list[dict]:
    """Return the findings of `python -m simt check`. Raises RuntimeError if the program cannot be checked."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "findings.json"
        command = [sys.executable, "-m", "simt", *_make_arguments(specimen, report)]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S)
        return _read_report(report, result.returncode, result.stderr)


def _make_arguments(specimen: Specimen, report: Path) -> list[str]:
    return ["check", "--json", str(report), str(specimen.path)]


def _read_report(report: Path, status: int, output: str) -> list[dict]:
    if status not in (0, 1) or not report.exists():
        raise RuntimeError(f"exit status {status}: {output.strip()[-600:]}")
    return json.loads(report.read_text())["findings"]


def _start_check(specimen: Specimen, report: Path, printed: Path) -> int:
    """Check a program in a fork of this process, which has loaded all modules already. Return its process id."""
    pid = os.fork()
    if pid:
        return pid
    status = 255
    try:
        os.setpgid(0, 0)
        signal.alarm(TIMEOUT_S)  # by default it ends the process
        output = os.open(printed, os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.argv = ["simt", *_make_arguments(specimen, report)]
        from simt.cli import main as simt_main

        simt_main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 255
    finally:
        os._exit(status)


def find_mismatches(specimen: Specimen, findings: list[dict]) -> list[str]:
    """Return how the findings differ from the labels; empty if they match."""
    if specimen.check == "sound":
        wrong = [f for f in findings if f["severity"] != "warning" or f["check"] not in specimen.allows]
        return [f"false alarm: {f['check']}, line {f['line']}: {f['message']}" for f in wrong]
    if not findings:
        return ["nothing found"]
    first = findings[0]
    if first["check"] != specimen.check or first["severity"] != specimen.severity:
        where = "not first" if is_found(specimen, findings) else "not found"
        return [f"{where}; first comes {first['severity']} {first['check']}, line {first['line']}: {first['message']}"]
    return [
        *_compare_source(specimen, first),
        *_compare_lines(specimen, first),
        *_compare_threads(specimen, first),
        *(
            f"its message does not say {words!r}: {first['message']}"
            for words in specimen.says
            if words not in first["message"]
        ),
    ]


def is_found(specimen: Specimen, findings: list[dict]) -> bool:
    """Return whether a finding has the name of the defect's check."""
    return any(f["check"] == specimen.check for f in findings)


def _compare_source(specimen: Specimen, first: dict) -> list[str]:
    name = Path(first["source"]).name
    return [f"file {name} and not {specimen.source}"] if specimen.source and name not in ("", specimen.source) else []


def _compare_lines(specimen: Specimen, first: dict) -> list[str]:
    line, other = first["line"], first["other_line"]
    if specimen.check == "race":
        right = (
            {line, other} & specimen.defect
            and (not specimen.other or {line, other} & specimen.other)
            and {line, other} <= specimen.defect | specimen.other
        )
    elif not line:
        right = specimen.check in NO_LINE
    else:
        right = line in specimen.defect | specimen.other
    expected = sorted(specimen.defect | specimen.other)
    return (
        []
        if right
        else [f"line {line}" + (f" with {other}" if other else "") + f" and not {' or '.join(map(str, expected))}"]
    )


def _compare_threads(specimen: Specimen, first: dict) -> list[str]:
    wrong = []
    in_host_code = specimen.labels.get("thread", "any") is None
    needed = [] if specimen.check in NO_THREAD or in_host_code else ["block", "thread"]
    needed += ["other_block", "other_thread"] if specimen.check == "race" else []
    wrong += [f"no {name}" for name in needed if first[name] is None]
    for name, value in specimen.labels.items():
        if first[name] != value and not (first[name] is None and name in wrong):
            wrong.append(f"{name} {first[name]!r} and not {value!r}")
    return wrong


# ---- figures ----


def run_all(chosen: list[Specimen], jobs: int) -> dict[str, dict]:
    """Return for each program its findings, whether its defect is among them, and how they differ from the labels."""
    import simt
    import simt.cli  # noqa: F401

    waiting, running, results = list(reversed(chosen)), {}, {}
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < jobs:
                specimen = waiting.pop()
                files = Path(folder) / f"{specimen.name}.json", Path(folder) / f"{specimen.name}.txt"
                running[_start_check(specimen, *files)] = specimen, *files, time.perf_counter()
            pid, status = os.wait()
            specimen, report, printed, start = running.pop(pid)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # processes that a hung or crashed program left
            try:
                findings = _read_report(report, os.waitstatus_to_exitcode(status), printed.read_text(errors="replace"))
                wrong = find_mismatches(specimen, findings)
            except (RuntimeError, OSError, ValueError, KeyError) as error:
                findings, wrong = [], [f"could not be checked: {error}"]
            results[specimen.name] = {
                "check": specimen.check,
                "near": specimen.near,
                "found": is_found(specimen, findings),
                "complaints": wrong,
                "findings": [f"{f['severity']} {f['check']}, line {f['line']}" for f in findings],
                "seconds": round(time.perf_counter() - start, 2),
            }
    return {s.name: results[s.name] for s in chosen}


def read_sanitizer_data() -> dict[str, dict]:
    """Return compute-sanitizer's results on the programs that have not changed since."""
    if not SANITIZER.exists():
        return {}
    data = json.loads(SANITIZER.read_text())["specimens"]
    return {
        name: result
        for name, result in data.items()
        if (SPECIMENS / f"{name}.cu").exists() and result["source"] == digest(SPECIMENS / f"{name}.cu")
    }


def _format_share(names: list[str], counted: set[str]) -> str:
    return f"{sum(name in counted for name in names)} of {len(names)}" if names else "–"


def make_rows(results: dict[str, dict], sanitizer: dict[str, dict]) -> list[list[str]]:
    """Return a row for each check, and one for all."""
    reported = {name for name, found in sanitizer.items() if any(found[tool]["errors"] for tool in TOOLS)}
    found = {name for name, result in results.items() if result["found"]}
    mismatched = {name for name, result in results.items() if result["complaints"]}
    made = []
    for check in (*CHECKS, "all"):
        names = [name for name, result in results.items() if check in (result["near"], "all")]
        sound = [name for name in names if results[name]["check"] == "sound"]
        defects = [name for name in names if name not in sound]
        made.append(
            [
                check,
                _format_share(defects, found),
                _format_share(defects, set(defects) - mismatched),
                _format_share(sound, mismatched),
                _format_share([name for name in defects if name in sanitizer], reported),
                _format_share([name for name in sound if name in sanitizer], reported),
            ]
        )
    return made


@click.command()
@click.argument("names", nargs=-1)
@click.option("--jobs", default=2, help="How many programs at a time.")
@click.option("--json", "write", is_flag=True, help=f"Write {DATA.relative_to(ROOT)}.")
@click.option("--readme", is_flag=True, help="Only write the data file's table into benchmarks/README.md.")
def main(names: tuple[str, ...], jobs: int, write: bool, readme: bool) -> None:
    """Check all programs of the labelled set, or those named, and print the rates."""

    if readme:
        data = json.loads(DATA.read_text())
        m = data["machine"]
        source = (
            f"{m['date']}, {m['processor']}, {m['compiler']}; `python benchmarks/validate/checks.py --json` made this."
        )
        sanitizer = read_sanitizer_data()
        if missing := len(data["specimens"].keys() - sanitizer.keys()):
            source += f" The sanitizer's columns leave out {missing} programs that have not run under it yet."
        write_section("checks", make_table_with_source(HEADS, make_rows(data["specimens"], sanitizer), source))
        return
    start = time.perf_counter()
    results = run_all(read_specimens(names), jobs)
    took = time.perf_counter() - start
    show_table(HEADS, make_rows(results, read_sanitizer_data()))
    failed = {name: r["complaints"] for name, r in results.items() if r["complaints"]}
    for name, wrong in failed.items():
        print(f"{name}: {'; '.join(wrong)}")
    print(f"{len(results)} programs in {took:.0f} s; {len(failed)} do not match their labels")
    if write:
        DATA.write_text(
            json.dumps({"machine": describe_machine(), "seconds": round(took), "specimens": results}, indent=1) + "\n"
        )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
