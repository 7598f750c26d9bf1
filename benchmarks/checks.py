"""Which defects the checks find, and on which sound programs they raise a false alarm, over the labelled set in tests/simt/checks.

    python benchmarks/checks.py [NAME …] [--json] [--readme]

Each program runs under `python -m simt check`. A defect counts as found if any finding has its check's name, and as rightly
named if it is the first finding, with the right line, threads and array. A sound program must give no finding at all. Beside
that stands what NVIDIA's compute-sanitizer reports on an H200 (sanitizer.py). Exit status 1 if anything is not as it should be.

A program's head says what is to be found:

    // check: race              the defect's check, or `sound`
    // near: race               of a sound program: the check that it is a hard case for
    // allows: race             of a sound program: a warning of this check is all right
    // what: …                  what is wrong, or why it is sound although it looks wrong
    // array, index, block, thread, other_thread: …      where there is only one right answer

and the line at fault ends with `// defect`; further lines that the same fault shows at, or the other access of a race, with `// other`.
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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from sanitizer import DATA as SANITIZER, SPECIMENS, TOOLS, digest  # noqa: E402

DATA = ROOT / "benchmarks" / "data" / "checks.json"
CHECKS = (
    *("out_of_bounds", "misaligned", "uninitialized", "race", "barrier_divergence", "warp_divergence"),
    *("int_overflow", "schedule", "leak", "unchecked_error"),
)
LIMIT = 240  # seconds for one program, its building included
# No thread is at fault for these, and the order of output shows no line either.
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

    @property
    def name(self) -> str:
        return self.path.stem


def read(path: Path) -> Specimen:
    """Reads the labels of a program. ValueError for one that says too little or too much."""
    text = path.read_text()
    head = dict(re.findall(r"^// (\w+): (.*)$", text, re.M))
    marked = {mark: frozenset(n for n, line in enumerate(text.splitlines(), 1) if line.endswith(f"// {mark}")) for mark in ("defect", "other")}
    check = head.get("check", "")
    near = head.get("near", check)
    if near not in CHECKS or check not in (near, "sound") or not head.get("what") or bool(marked["defect"]) != (check != "sound"):
        raise ValueError(f"{path.name}: its labels are not complete, or do not fit together")
    labels: dict[str, object] = {}
    for name in ("array", "index", "block", "thread", "other_thread"):
        if name in head:
            numbers = [int(n) for n in re.findall(r"-?\d+", head[name])]
            labels[name] = head[name] if name == "array" else numbers[0] if name == "index" else numbers
    return Specimen(path, check, near, head["what"], frozenset(head.get("allows", "").split()), marked["defect"], marked["other"], labels)


def specimens(names: tuple[str, ...] = ()) -> list[Specimen]:
    """The whole set, or those named."""
    return [read(p) for p in sorted(SPECIMENS.glob("*.cu")) if not names or p.stem in names]


# ---- running ----


def findings_of(specimen: Specimen) -> list[dict]:
    """What `python -m simt check` finds in it. RuntimeError where the program can't be checked."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "findings.json"
        command = [sys.executable, "-m", "simt", *_arguments(specimen, told)]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)
        return _told(told, result.returncode, result.stderr)


def _arguments(specimen: Specimen, told: Path) -> list[str]:
    return ["check", "--json", str(told), str(specimen.path)]


def _told(told: Path, status: int, said: str) -> list[dict]:
    if status not in (0, 1) or not told.exists():
        raise RuntimeError(f"exit status {status}: {said.strip()[-600:]}")
    return json.loads(told.read_text())["findings"]


def _start(specimen: Specimen, told: Path, said: Path) -> int:
    """The same in a process forked from this one, which has loaded what each of them needs. Returns its id."""
    pid = os.fork()
    if pid:
        return pid
    status = 255
    try:
        os.setpgid(0, 0)
        signal.alarm(LIMIT)  # its action is to end the process
        output = os.open(said, os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.argv = ["simt", *_arguments(specimen, told)]
        from simt.cli import main as simt_main

        simt_main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 255
    finally:
        os._exit(status)


def complaints(specimen: Specimen, findings: list[dict]) -> list[str]:
    """What is not as the labels say; empty where all is right."""
    if specimen.check == "sound":
        wrong = [f for f in findings if f["severity"] != "warning" or f["check"] not in specimen.allows]
        return [f"false alarm: {f['check']}, line {f['line']}: {f['message']}" for f in wrong]
    if not findings:
        return ["nothing found"]
    first = findings[0]
    if first["check"] != specimen.check or first["severity"] != "error":
        where = "not first" if found(specimen, findings) else "not found"
        return [f"{where}; first comes {first['severity']} {first['check']}, line {first['line']}: {first['message']}"]
    return [*_lines(specimen, first), *_threads(specimen, first)]


def found(specimen: Specimen, findings: list[dict]) -> bool:
    return any(f["check"] == specimen.check for f in findings)


def _lines(specimen: Specimen, first: dict) -> list[str]:
    line, other = first["line"], first["other_line"]
    if specimen.check == "race":
        right = {line, other} & specimen.defect and (not specimen.other or {line, other} & specimen.other) and {line, other} <= specimen.defect | specimen.other
    elif not line:
        right = specimen.check in NO_LINE
    else:
        right = line in specimen.defect | specimen.other
    expected = sorted(specimen.defect | specimen.other)
    return [] if right else [f"line {line}" + (f" with {other}" if other else "") + f" and not {' or '.join(map(str, expected))}"]


def _threads(specimen: Specimen, first: dict) -> list[str]:
    wrong = []
    needed = [] if specimen.check in NO_THREAD else ["block", "thread"]
    needed += ["other_block", "other_thread"] if specimen.check == "race" else []
    wrong += [f"no {name}" for name in needed if first[name] is None]
    for name, value in specimen.labels.items():
        if first[name] != value and not (first[name] is None and name in wrong):
            wrong.append(f"{name} {first[name]!r} and not {value!r}")
    return wrong


# ---- figures ----


def run_all(chosen: list[Specimen], jobs: int) -> dict[str, dict]:
    """For each program: what was found, whether its defect is among it, and what is not as it should be."""
    import simt  # noqa: F401  what takes most of a short run's time is loaded once
    import simt.cli  # noqa: F401

    waiting, running, results = list(reversed(chosen)), {}, {}
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < jobs:
                specimen = waiting.pop()
                files = Path(folder) / f"{specimen.name}.json", Path(folder) / f"{specimen.name}.txt"
                running[_start(specimen, *files)] = specimen, *files, time.perf_counter()
            pid, status = os.wait()
            specimen, told, said, start = running.pop(pid)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # what a program that hung or crashed has left running
            try:
                findings = _told(told, os.waitstatus_to_exitcode(status), said.read_text(errors="replace"))
                wrong = complaints(specimen, findings)
            except (RuntimeError, OSError, ValueError, KeyError) as error:
                findings, wrong = [], [f"could not be checked: {error}"]
            results[specimen.name] = {
                "check": specimen.check, "near": specimen.near, "found": found(specimen, findings), "complaints": wrong,
                "findings": [f"{f['severity']} {f['check']}, line {f['line']}" for f in findings], "seconds": round(time.perf_counter() - start, 2),
            }
    return {s.name: results[s.name] for s in chosen}


def sanitizer_data() -> dict[str, dict]:
    """compute-sanitizer's results on the programs as they are now."""
    if not SANITIZER.exists():
        return {}
    data = json.loads(SANITIZER.read_text())["specimens"]
    return {name: told for name, told in data.items() if (SPECIMENS / f"{name}.cu").exists() and told["source"] == digest(SPECIMENS / f"{name}.cu")}


def _share(names: list[str], right: Callable[[str], bool]) -> str:
    return f"{sum(map(right, names))} of {len(names)}" if names else "–"


def rows(results: dict[str, dict], sanitizer: dict[str, dict]) -> list[list[str]]:
    """A row a check, and their sum."""
    made = []
    for check in (*CHECKS, "all"):
        here = {name: r for name, r in results.items() if check in (r["near"], "all")}
        defects = [name for name, r in here.items() if r["check"] != "sound"]
        sound = [name for name, r in here.items() if r["check"] == "sound"]
        told = {name for name in sanitizer if any(sanitizer[name][tool]["errors"] for tool in TOOLS)}
        made.append([
            check,
            _share(defects, lambda name: here[name]["found"]),
            _share(defects, lambda name: not here[name]["complaints"]),
            _share(sound, lambda name: bool(here[name]["complaints"])),
            _share([name for name in defects if name in sanitizer], told.__contains__),
            _share([name for name in sound if name in sanitizer], told.__contains__),
        ])
    return made


@click.command()
@click.argument("names", nargs=-1)
@click.option("--jobs", default=2, help="How many programs at a time.")
@click.option("--json", "write", is_flag=True, help=f"Write {DATA.relative_to(ROOT)}.")
@click.option("--readme", is_flag=True, help="Put the data file's table into the README; nothing runs.")
def main(names: tuple[str, ...], jobs: int, write: bool, readme: bool) -> None:
    """Checks all programs of the labelled set, or those named, and prints the rates."""
    from machine import machine
    from tables import markdown, put_into_readme, show

    if readme:
        data = json.loads(DATA.read_text())
        m = data["machine"]
        source = f"{m['date']}, {m['processor']}, {m['compiler']}; `python benchmarks/checks.py --json` made this."
        put_into_readme("checks", markdown(HEADS, rows(data["specimens"], sanitizer_data()), source))
        return
    start = time.perf_counter()
    results = run_all(specimens(names), jobs)
    took = time.perf_counter() - start
    show(HEADS, rows(results, sanitizer_data()))
    failed = {name: r["complaints"] for name, r in results.items() if r["complaints"]}
    for name, wrong in failed.items():
        print(f"{name}: {'; '.join(wrong)}")
    print(f"{len(results)} programs in {took:.0f} s; {len(failed)} not as they should be")
    if write:
        DATA.write_text(json.dumps({"machine": machine(), "seconds": round(took), "specimens": results}, indent=1) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
