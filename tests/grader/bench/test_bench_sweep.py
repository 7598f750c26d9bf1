"""Does `grader bench --sweep` time sizes from small to large, and say what they show?"""

import json

import pytest
import torch

from grader import pictures
from grader.bench import growth, models, part, sizes, sweep, work
from grader.bench.children import Measured
from grader.cli import statuses
from grader.problems import problem as problems
from tests.grader.bench.modes import DIES_AT_8, FULL_AT_8, PLANES, order_of, run
from tests.grader.scaffold import RIGHT


@pytest.fixture
def few(monkeypatch):
    """Three sizes and one round each."""
    monkeypatch.setattr(sizes, "BATCHES", (1, 8))
    monkeypatch.setattr(sizes, "SIDES", (4, 16))
    monkeypatch.setattr(sweep, "ROUNDS_SECONDS", 0.0)


def swept(order) -> tuple[dict, list[dict]]:
    """A child's part of the data and its lines, in this process."""
    printed, found = [], Measured()

    def say(line):
        printed.append(line)
        found.record(json.loads(json.dumps(line)))

    sweep.measure_sizes(order, say)
    return part.make_sweep_part(order.read_problem(), order, found), printed


def test_each_size_is_what_it_says(write, few, monkeypatch):
    """Is every row run on inputs of the size's batch and side, and right there? Is torch.compile's at its own batches
    only?
    """
    monkeypatch.setattr(torch, "compile", lambda model, mode, dynamic: model if dynamic is False else None)
    monkeypatch.setattr(sizes, "COMPILED", (1,))
    seen = []
    measure_error = models.measure_error
    monkeypatch.setattr(
        models, "measure_error", lambda out, expected: seen.append(tuple(out.shape)) or measure_error(out, expected)
    )
    (path,) = write(planes=PLANES)
    made, _ = swept(order_of(path, omitted=("tf32",)))
    where = [(line["batch"], line["side"]) for line in made["sizes"]]
    assert where == [(1, 8), (2, 4), (2, 8), (2, 16), (8, 8)] and made["own"] == {"batch": 2, "side": 8}
    assert {(b, 4, s - 2, s - 2) for b, s in where} == set(seen)
    names = {key: [row["name"] for row in line["rows"]] for key, line in zip(where, made["sizes"])}
    assert names.pop((8, 8)) == ["eager, fp32"] and set(map(tuple, names.values())) == {
        ("eager, fp32", "torch.compile, fp32")
    }
    assert all(
        row["in_class"] and row["ms"] > 0 and row["error"] < 1e-6 for line in made["sizes"] for row in line["rows"]
    )


def test_a_size_that_does_not_fit_says_so(problem, few, monkeypatch):
    """Is a size left out whose tensors would fill the memory, and are the others measured?"""
    need = work.estimate_memory(problems.read(problem))
    assert need == 4 * (4 * 6 + 4 * 6)  # x and the result: 4 rows of 6 floats each
    monkeypatch.setattr(sweep, "read_device_memory", lambda device: 2 * need)
    made, _ = swept(order_of(problem))
    skipped = {line["batch"]: line.get("skipped") for line in made["sizes"]}
    assert skipped[1] is skipped[4] is None and "GB of tensors" in skipped[8] and "rows" not in made["sizes"][2]


def test_memory_that_runs_out_costs_one_row_at_one_size(problem, write, few):
    made, _ = swept(order_of(problem, write(full=FULL_AT_8, right=RIGHT)))
    rows = {(line["batch"], row["name"]): row for line in made["sizes"] for row in line["rows"]}
    assert "OutOfMemoryError" in rows[8, "submission full"]["failed"] and "ms" in rows[4, "submission full"]
    assert "ms" in rows[8, "submission right"] and "ms" in rows[8, "eager"]


def test_a_sweep_ends_when_its_time_is_up(problem, few):
    made, _ = swept(order_of(problem, seconds=-1.0))
    assert [line["skipped"] for line in made["sizes"]] == ["the time was up"] * 3
    assert growth.describe("p", made) == ["p: not measured: batch 1, batch 4, batch 8: the time was up."]


def test_a_row_that_dies_at_a_size_is_missing_there_alone(problem, write, tmp_path, few, here):
    """Is its row measured at other sizes and the other rows at this one, and is nothing measured twice?"""
    out = tmp_path / "sweep.json"
    result = run(*write(dies=DIES_AT_8), "--problem", problem, "--sweep", "--out", out, "--without", "compile")
    assert result.exit_code == statuses.FAILED, result.output
    (made,) = json.loads(out.read_text())["problems"].values()
    rows = {(line["batch"], row["name"]): row for line in made["sizes"] for row in line["rows"]}
    assert [line["batch"] for line in made["sizes"]] == [1, 4, 8]
    assert "SIGSEGV" in rows.pop((8, "submission dies"))["failed"] and all("ms" in row for row in rows.values())
    first, second = here
    assert (
        first.done == first.skip == []
        and second.done == ["batch 4", "batch 1"]
        and second.skip == ["batch 8: submission dies"]
    )
    assert second.seconds < first.seconds and (tmp_path / "sweep" / "scaling.svg").is_file()
    assert "In fp32 eager is faster" in result.stdout


# --- what a sweep shows ----------------------------------------------------------------------------------------------


def part_of(times: dict[str, dict[int, float]], spread=0.01, own=4) -> dict:
    """A sweep's data by batch: milliseconds of each row, whose names begin with their kind."""
    kinds = {"fastest": "beside", "torch": "compile", "eager": "eager", "step": "step"}
    made = []
    for batch in sorted({b for t in times.values() for b in t}):
        rows = [
            {"name": n, "kind": kinds[n.split()[0]], "precision": "fp32", "ms": t[batch],
             "low": t[batch] * (1 - spread), "high": t[batch] * (1 + spread), "n": 20, "in_class": True}
            for n, t in times.items() if batch in t
        ]  # fmt: skip
        made.append({"batch": batch, "side": None, "rows": rows})
    return {"own": {"batch": own, "side": None}, "sizes": made}


def test_describe_names_the_sizes_where_torch_wins():
    """Is a size named, with the speed-up, only if the intervals do not overlap?"""
    even = {1: 1.0, 2: 1.0, 4: 2.0}
    printed = growth.describe("p", part_of({"fastest": even, "torch a": {1: 0.5, 2: 0.995, 4: 3.0}, "eager": {1: 9.0}}))
    assert printed == [
        "p: In fp32 torch.compile is faster than the fastest of ours at batch 1 (2.00 times as fast). "
        "In fp32 eager is faster at no size. No cliff."
    ]


def test_cliffs():
    """Is a step of more than 1.5 times a unit found, a smaller size that takes longer, but no overhead, no noise, no
    step of others?
    """

    def of(times, spread=0.01, name="fastest"):
        printed = growth.describe("p", part_of({name: times}, spread))
        return printed[0].partition("liff")[2] if printed else ""

    assert of({1: 1.0, 2: 1.1, 4: 2.0, 8: 4.0}) == "."  # first the launch, then the work
    assert "from 4 to 8 a pixel takes 1.6 times as long" in of({1: 1.0, 2: 2.0, 4: 4.0, 8: 12.8})
    assert "2 takes 1.5 times as long as 4" in of({1: 1.0, 2: 3.0, 4: 2.0})
    assert of({4: 4.0, 8: 12.8}, spread=0.05) == "."  # not surely
    few = part_of({"fastest": {4: 4.0, 8: 99.0}})
    few["sizes"][1]["rows"][0]["n"] = 5
    assert growth.describe("p", few) == ["p: No cliff."]
    assert of({4: 4.0, 8: 16.0}, name="step 4") == "."


def test_a_row_out_of_its_class_is_no_curve():
    part = part_of({"fastest": {1: 1.0, 4: 2.0}, "eager": {1: 3.0}})
    part["sizes"][0]["rows"][0]["in_class"] = False
    (curves,) = growth.find_curves(part).values()
    assert {c.name: [p.size for p in c.points] for c in curves} == {"fastest": [4], "eager": [1]}


def test_the_picture_holds_what_was_measured():
    """Are the lines' points seconds a pixel, an axis a panel, and the words those of the sentences?"""
    part = part_of({"fastest": {1: 1.0, 2: 2.0, 4: 8.0}, "eager": {1: 2.0, 4: 9.0}})
    for line in part["sizes"]:
        line["side"] = part["own"]["side"] = 8
    picture = growth.draw_curves("p", part)
    (line,) = [one for ax in picture.figure.axes for one in ax.lines if one.get_gid() == "sweep-batch-0"]
    assert list(line.get_xdata()) == [1, 2, 4] and list(line.get_ydata()) == pytest.approx(
        [1e-3 / 64, 1e-3 / 64, 2e-3 / 64]
    )
    assert len(picture.figure.axes) == 2 and "from 2 to 4 a pixel takes 2.0 times as long" in picture.alt
    with pytest.raises(ValueError, match="no point"):
        pictures.sweep({}, "p", "")
