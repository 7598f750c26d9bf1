"""`grader bench` in all its modes: what does a stopped run keep, what is refused, and what does ncu profile?"""

import json

import pytest

from grader.bench import ncu, runs
from grader.cli import statuses
from tests.grader.bench.modes import OWN, order_of, run


@pytest.mark.parametrize("task", ["backward", "sweep"])
def test_stopped_a_run_keeps_what_it_has(problem, write, tmp_path, monkeypatch, task):
    """Ctrl-C after a few rounds: are they in the data file, what was not reached named, and the exit status 130?"""
    lines = {
        "backward": [{"row": "eager", "errors": {"y": 1e-8, "x": 1e-8, "scale": 1e-8}}, {"round": {"eager": 1e-3}}],
        "sweep": [{"row": "batch 4: eager", "error": 1e-8}, {"round": {"batch 4: eager": 1e-3}}],
    }[task]

    def stopped(order, found, say, tick):
        for line in [{"work": {"bytes": 1, "products": 0, "others": 1, "planes": False}, "roof": {}}, *lines]:
            found.record(line)
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "measure", stopped)
    out = tmp_path / "made.json"
    (own,) = write(own=OWN)
    result = run(own, "--problem", problem, f"--{task}", "--out", out, "--without", "compile")
    assert result.exit_code == statuses.INTERRUPTED, result.output
    data = json.loads(out.read_text())
    made = data["problems"]["scaling"] if task == "sweep" else data["problems"]["scaling"]["backward"]
    assert data["interrupted"] and made["interrupted"]
    if task == "sweep":
        there = {line["batch"]: line for line in made["sizes"]}
        assert {row["name"]: row.get("ms") for row in there[4]["rows"]}["eager"] == pytest.approx(1.0)
        assert there[8]["skipped"] == "it was not reached: the run ended before"
    else:
        rows = {row["name"]: row for row in made["rows"]}
        assert rows["eager"]["ms"] == pytest.approx(1.0) and "run ended before" in rows["submission own"]["failed"]


@pytest.mark.parametrize(
    "arguments, printed",
    [
        (["groupnorm", "--backward", "--sweep"], "give one of them"),
        (["mend_layernorm", "--backward"], "no backward.py"),
        (["matmul", "--sweep"], "batch_size"),
    ],
)  # fmt: skip
def test_wrong_usage_of_the_modes_is_2(arguments, printed, tmp_path):
    result = run(*arguments, "--out", tmp_path / "x.json")
    assert result.exit_code == statuses.USAGE and printed in result.stderr and not list(tmp_path.iterdir())


def test_a_sweep_is_not_added_to_times_nor_times_to_a_sweep(problem, tmp_path):
    out = tmp_path / "x.json"
    for text, more in (('{"problems": {"p": {"sizes": []}}}', []), ('{"problems": {"p": {"rows": []}}}', ["--sweep"])):
        out.write_text(text)
        result = run("--problem", problem, *more, "--add", "--out", out)
        assert result.exit_code == statuses.CANNOT and "no data file" in result.stderr and out.read_text() == text


def test_the_fastest_of_each_class_is_profiled(problem, monkeypatch):
    """Does ncu profile eager, the fastest torch.compile, the slowest step and both fastest, and for nothing in
    class-less order?
    """
    requested = []
    rows = [
        ("01", "step", "fp32", 9),
        ("fastest", "beside", "fp32", 2),
        ("fastest_tf32", "beside", "tf32", 1),
        ("eager, fp32", "eager", "fp32", 5),
    ]
    rows += [("torch.compile, fp32", "compile", "fp32", 4), ("torch.compile, tf32", "compile", "tf32", 3)]
    made = {"rows": [{"name": n, "kind": k, "precision": p, "ms": ms, "mode": "default"} for n, k, p, ms in rows]}
    monkeypatch.setattr(ncu.shutil, "which", lambda name: "/usr/bin/ncu")
    monkeypatch.setattr(
        ncu.subprocess,
        "run",
        lambda command, **_: requested.append(json.loads(command[-1])["profile"]) or type("", (), {"stdout": ""}),
    )
    assert "ncu printed" in ncu.profile_launches(order_of(problem, task="forward"), made)["failed"]
    assert requested == [["eager, fp32", "torch.compile, tf32", "01", "fastest", "fastest_tf32"]]
