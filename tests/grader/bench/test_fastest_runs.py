"""Does fastest_runs.py give each run a GPU of its own, go on after a failure, end in time, and put together what was
measured?
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from benchmarks.timing import fastest_runs
from benchmarks.timing.fastest_runs import Run

ROOT = Path(__file__).resolve().parents[3]

# Says when it ran, where, and what it was interrupted by.
PROGRAM = """
import json, os, signal, sys, time
try:
    begun = time.monotonic()
    time.sleep(float(sys.argv[2]))
    how = "slept"
except KeyboardInterrupt:
    how = "interrupted"
paths = os.environ["PYTHONPATH"].split(os.pathsep)
report = {"paths": paths, "gpu": os.environ["CUDA_VISIBLE_DEVICES"], "cores": len(os.sched_getaffinity(0))}
report |= {"begun": begun, "ended": time.monotonic(), "how": how}
open(sys.argv[1], "w").write(json.dumps(report))
sys.exit(int(sys.argv[3]))
"""


def run_of(folder, name, seconds=0.5, status=0, **more):
    return Run(
        name, (sys.executable, "-c", PROGRAM, str(folder / f"{name}.json"), str(seconds), str(status)), seconds, **more
    )


def read_reports(folder):
    return {file.stem: json.loads(file.read_text()) for file in folder.glob("*.json")}


def test_a_gpu_each(tmp_path, capfd, monkeypatch):
    """Are two runs never on one GPU at a time, one that must run alone never next to another, and does a failed one
    stop no other? Do they find the project, and packages that only PYTHONPATH names?"""
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    waiting = [
        run_of(tmp_path, "short", 0.1),
        run_of(tmp_path, "wrong", 0.3, status=3),
        run_of(tmp_path, "long", 0.8),
        run_of(tmp_path, "first", 0.2, alone=True),
    ]
    ended = fastest_runs.carry_out(waiting, [4, 7], tmp_path, time.monotonic() + 60)
    assert ended == {"first": "done", "long": "done", "wrong": "exit status 3", "short": "done"}
    reports = read_reports(tmp_path)
    assert {one["gpu"] for one in reports.values()} == {"4", "7"}
    assert all(one["paths"] == [str(ROOT), "/elsewhere"] for one in reports.values())
    everyone = len(os.sched_getaffinity(0))
    assert reports["first"]["cores"] == everyone and reports["long"]["cores"] == max(1, everyone // 2)
    names = list(reports)
    for i, a in enumerate(names):
        for b in names[:i]:
            apart = reports[a]["ended"] <= reports[b]["begun"] or reports[b]["ended"] <= reports[a]["begun"]
            assert apart or (reports[a]["gpu"] != reports[b]["gpu"] and "first" not in (a, b))
    assert "wrong: exit status 3" in capfd.readouterr().out


@pytest.mark.slow
def test_the_time_is_up(tmp_path):
    """Is what still runs then ended as Ctrl-C would, and what has not begun left?"""
    ended = fastest_runs.carry_out(
        [run_of(tmp_path, "endless", 100), run_of(tmp_path, "later", 50)], [0], tmp_path, time.monotonic() + 2
    )
    assert ended == {"endless": "ended early, as the time was up", "later": "not begun"}
    assert read_reports(tmp_path)["endless"]["how"] == "interrupted"


@pytest.mark.slow
def test_interrupted(tmp_path):
    """Does Ctrl-C end what runs, and are the data of those that had ended still reported?"""
    timer = threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    ended = fastest_runs.carry_out(
        [run_of(tmp_path, "long", 100), run_of(tmp_path, "short", 0.1)], [0, 1], tmp_path, time.monotonic() + 60
    )
    assert ended == {"long": "interrupted", "short": "done"}
    assert read_reports(tmp_path)["long"]["how"] == "interrupted"


def test_put_together(tmp_path):
    """Do forward rows come from one file, backward rows and sweeps from those of each model, and does what was not
    measured stay?
    """
    logs, out = tmp_path / "logs", tmp_path / "out"
    logs.mkdir()
    out.mkdir()

    def put(file, **problems):
        file.write_text(json.dumps({"machine": {"name": file.stem}, "command": "bench", "problems": problems}))

    put(
        out / "bench.json",
        a={"rows": ["old"], "backward": {"rows": ["old"]}},
        b={"rows": ["old"], "backward": {"rows": ["old"]}},
        c={"rows": ["old"]},
    )
    put(out / "sweep.json", a={"sizes": ["old"]}, b={"sizes": ["old"]})
    put(logs / "bench.json", a={"rows": ["new"]}, b={"rows": ["new"]})
    put(logs / "backward_b.json", b={"rows": [], "backward": {"rows": ["new"]}})
    put(logs / "sweep_b.json", b={"sizes": ["new"]})
    (logs / "builds.json").write_text('{"files": {}}')
    assert [file.name for file in fastest_runs.put_together(logs, out)] == ["builds.json", "bench.json", "sweep.json"]
    problems = {name: json.loads((out / f"{name}.json").read_text())["problems"] for name in ("bench", "sweep")}
    assert problems["bench"] == {
        "a": {"rows": ["new"], "backward": {"rows": ["old"]}},
        "b": {"rows": ["new"], "backward": {"rows": ["new"]}},
        "c": {"rows": ["old"]},
    }
    assert problems["sweep"] == {"a": {"sizes": ["old"]}, "b": {"sizes": ["new"]}}


def test_every_command_can_be_given():
    """Does each run's program know the options that it is given? (Only --help runs: there may be no GPU.)"""
    for run in {run.name.split(":")[0]: run for run in fastest_runs.runs(Path("somewhere"))}.values():
        if "pytest" not in run.command:
            done = subprocess.run([*run.command, "--help"], cwd=ROOT, capture_output=True, text=True, check=False)
            options = {word for word in run.command if word.startswith("--")}
            assert done.returncode == 0 and all(option in done.stdout for option in options), (run.name, done.stderr)
