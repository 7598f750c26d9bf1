"""Grade the wrong specimens on a GPU, where the CPU's checks run beside, and compare with the verdicts of a CPU alone.

    python benchmarks/validate/both.py              all specimens; writes data/both.json after each
    python benchmarks/validate/both.py --missing    those that the data file lacks
    python benchmarks/validate/both.py --only NAME  those whose name contains this; the others' rows stay

What a CPU alone says is in tests/specimens/expected.toml: the first stage that fails, its reason, what the stage "safe"
adds, and the line. A verdict is as good if it has that stage's reason or the cause that "safe" adds, and the line where
the table gives one. The exit status is 1 if a verdict is not. Several gradings run at a time, so that their seconds are
more than one alone takes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT

SPECIMENS, DATA = ROOT / "tests" / "specimens", DATA_FOLDER / "both.json"
SEED = "20"
LONGEST = 150  # seconds of one grading
_large, _writing = threading.Semaphore(1), threading.Lock()


def grade(name: str, expected: dict) -> dict:
    """Return what the grader says of a specimen, and how long it took. Raises subprocess.TimeoutExpired."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "verdict.json"
        begun = time.monotonic()
        options = ["--seed", SEED, "--timeout", str(expected.get("seconds", 20)), "--json", str(report)]
        done = subprocess.run(
            [sys.executable, "-m", "grader", "grade", str(SPECIMENS / f"{name}.py"), *options],
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST,
        )
        seconds = time.monotonic() - begun
        text = report.read_text(encoding="utf-8") if report.exists() else ""
    if not text:
        return {"seconds": seconds, "error": (done.stdout + done.stderr)[-800:]}
    verdict = json.loads(text.splitlines()[-1])
    failed = [stage for stage in verdict["stages"] if stage["status"] in ("failed", "error")]
    return {
        "seconds": round(seconds, 1),
        "outcome": verdict["outcome"],
        "stages": [{key: stage.get(key) for key in ("name", "status", "reason", "message")} for stage in failed],
        "lines": [at.get("text") or "" for stage in failed for at in stage.get("evidence", [])],
        "took": {stage["name"]: round(stage.get("seconds", 0.0), 1) for stage in verdict["stages"]},
    }


def find_lacks(row: dict, expected: dict) -> list[str]:
    """Return what the verdict lacks of what a CPU alone says."""
    if "error" in row:
        return ["a verdict"]
    lacks = []
    if row["outcome"] != expected.get("outcome", "failed"):
        lacks.append(f"the outcome {expected.get('outcome', 'failed')}, it has {row['outcome']}")
    reasons = [stage["reason"] for stage in row["stages"]]
    wanted = {expected["reason"], expected.get("explains")} - {None} if "reason" in expected else set()
    if "gap" in expected:  # a CPU alone does not find it
        wanted = set()
    if wanted and expected.get("outcome", "failed") == "failed" and not wanted & set(reasons):
        lacks.append(f"{' or '.join(sorted(wanted))}, it has {', '.join(map(str, reasons)) or 'none'}")
    if "at" in expected and not any(expected["at"] in line for line in row["lines"]):
        lacks.append(f"the line `{expected['at']}`")
    return lacks


def measure(name: str, expected: dict, data: dict) -> None:
    needs_room = re.match(r"groupnorm", name)  # half of an H200's memory at full size
    try:
        if needs_room:
            _large.acquire()
        row = grade(name, expected)
    except subprocess.TimeoutExpired:
        row = {"seconds": LONGEST, "error": "no verdict in time"}
    finally:
        if needs_room:
            _large.release()
    with _writing:
        data["files"][name] = row | {"lacks": find_lacks(row, expected)}
        DATA.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")
        print(f"{name}: {row['seconds']:.1f} s; {'; '.join(data['files'][name]['lacks']) or 'as good'}", flush=True)


@click.command(help=__doc__)
@click.option("--missing", is_flag=True, help="Only specimens that the data file lacks.")
@click.option("--only", default="", help="Only specimens whose name contains this.")
@click.option("--jobs", default=4, help="Gradings at a time.")
def main(missing: bool, only: str, jobs: int) -> None:
    import torch

    if not torch.cuda.is_available():
        raise click.ClickException("There is no GPU: tests/test_specimens.py has what a CPU alone says.")
    data: dict = json.loads(DATA.read_text()) if DATA.exists() and (only or missing) else {"files": {}}
    data |= {"machine": describe_machine(), "jobs": jobs}
    table = tomllib.loads((SPECIMENS / "expected.toml").read_text(encoding="utf-8"))
    names = [name for name in sorted(table) if only in name and not (missing and name in data["files"])]
    with ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(measure, name, table[name], data) for name in names]:
            done.result()
    lacking = [name for name in names if data["files"][name]["lacks"]]
    print(f"{len(names) - len(lacking)} of {len(names)} verdicts are at least as good as those of a CPU alone.")
    sys.exit(bool(lacking))


if __name__ == "__main__":
    main()
