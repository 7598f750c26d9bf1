"""Do benchmarks/README.md, the ladders, the sweep's page and the counters' show what the committed data say?"""

import copy
import json
import re
import statistics
from pathlib import Path

import pytest

from benchmarks.paths import README
from benchmarks.publish import fastest
from benchmarks.validate import counters
from grader.bench import tables

ROOT = Path(__file__).resolve().parents[3]

DATA = fastest.read(fastest.BENCH)
ALL = [fastest.read(file) for file in (fastest.BENCH, fastest.STEPS, fastest.MODEL, fastest.COUNTED)]
NAMES = sorted(DATA["problems"])


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


# --- the table ------------------------------------------------------------------------------------------------------


def test_the_benchmarks_readme_has_the_table_of_today():
    """Does `python benchmarks/publish/fastest.py --write` leave benchmarks/README.md as it is?"""
    text = README.read_text(encoding="utf-8")
    assert text.split("<!-- bench:fastest -->\n")[1].split("\n<!-- /bench:fastest -->")[0] == fastest.readme(DATA)


@pytest.mark.parametrize("task", ["forward", "backward"])
def test_the_table_holds_the_fastest_of_each_class(task):
    """By another way through the data: is each row's ours the fastest that keeps to its class, and the ratio that of
    the rounds of both?
    """
    rows = {(c[0], c[1]): c for c in map(cells, fastest.section(DATA, task, "").splitlines()) if c[0] in NAMES}
    assert len(rows) >= 7
    for (name, precision), row in rows.items():
        made = DATA["problems"][name] if task == "forward" else DATA["problems"][name]["backward"]
        timed = [r for r in made["rows"] if r["precision"] == precision and r.get("ms") and r["in_class"]]
        ours = min((r for r in timed if r["kind"] not in ("eager", "compile")), key=lambda r: r["ms"])
        torchs = min((r for r in timed if r["kind"] in ("eager", "compile")), key=lambda r: r["ms"])
        assert row[2] == ours["name"] and float(row[3]) == pytest.approx(ours["ms"], rel=1e-3)
        ratios = [b / a for a, b in zip(ours["samples"], torchs["samples"], strict=False)]
        assert row[4] == torchs["name"] and float(row[6]) == pytest.approx(statistics.median(ratios), rel=5e-3)


def with_time(name: str, precision: str, factor: float, times: float = 9.0) -> str:
    """Return the page's sentence on the target if the fastest takes `factor` times the target's milliseconds."""
    made = copy.deepcopy(DATA["problems"][name])
    made["best"][precision]["times"] = times
    row = next(r for r in made["rows"] if r["name"] == made["best"][precision]["ours"])
    row["ms"] = factor * tables.read_targets()[name][precision]["ms"]
    return tables.compare_with_target(name, precision, made)


@pytest.mark.parametrize("name", NAMES)
def test_a_target_is_missed_reached_or_passed(name):
    """Is a row at its target reported at it, one far below beyond it, one above to miss it, and a ratio that is too
    low too?
    """
    for precision in tables.read_targets()[name]:
        described = [with_time(name, precision, factor) for factor in (0.9, 0.99, 1.0, 1.001)]
        assert [s.split(":")[0] for s in described] == ["beyond it", "at it", "at it", "missed"]
        assert with_time(name, precision, 0.9, times=1.3).endswith(
            f"not {tables.read_targets()[name][precision]['times']} times"
        )


def test_a_target_is_of_one_gpu_at_full_size():
    made = copy.deepcopy(DATA["problems"]["groupnorm"])
    made["sizes"]["batch_size"] = 2
    assert tables.compare_with_target("groupnorm", "fp32", made) == "–"
    made = copy.deepcopy(DATA["problems"]["groupnorm"])
    made["machine"]["name"] = "NVIDIA A100"
    assert tables.compare_with_target("groupnorm", "fp32", made) == "–"


def test_the_page_names_what_a_run_lacks():
    """Do the sentences follow the data: without max-autotune, interrupted, a row that failed, and nothing where nothing
    lacks?
    """
    data = copy.deepcopy(DATA)
    data |= {"interrupted": True, "command": "bench --without max-autotune"}
    for made in data["problems"].values():
        for key in ("interrupted", "command"):
            made.pop(key, None)
        made["launches"] = {}
        made["rows"] = [r for r in made["rows"] if r.get("mode") != "max-autotune"]
    described = tables.describe_runs(data)
    assert (
        described == "torch.compile's max-autotune was not timed (the run had `--without max-autotune`). "
        "The run was interrupted before its end."
    )
    data |= {"interrupted": False, "command": "bench"}
    for made in data["problems"].values():
        (first, *_) = [r for r in made["rows"] if r["kind"] == "compile"]
        made["rows"].append(first | {"name": "more", "mode": "max-autotune"})
    assert tables.describe_runs(data) == ""
    # while it measured a problem of which it has nothing; each of these says that it was not
    data["interrupted"] = True
    for made in data["problems"].values():
        made["command"] = "bench"
    assert tables.describe_runs(data) == ""
    made = data["problems"]["groupnorm"]
    made["interrupted"] = True
    assert tables.describe_runs(data) == "groupnorm: The run was interrupted before its end."
    made.pop("interrupted")
    made["rows"][-1].pop("ms")
    assert tables.describe_runs(data).startswith("groupnorm: torch.compile's max-autotune was not timed.")
    assert "groupnorm: No time for more." in tables.describe_runs(data)
    made.pop("launches")
    assert tables.describe_runs(data).endswith("Nothing is known of the launches of groupnorm.")


def test_a_file_that_has_changed_is_named():
    data = copy.deepcopy(DATA)
    row = next(r for r in data["problems"]["conv_groupnorm_maxpool"]["rows"] if r["name"] == "fastest_tf32")
    row["code"] = "another"
    assert "conv_groupnorm_maxpool's fastest_tf32.py has changed since it was timed." in fastest.changed(
        data, "forward"
    )


def test_forward_and_backward_have_a_table_of_their_own():
    data = copy.deepcopy(DATA)
    for name, made in data["problems"].items():
        backward = made.pop("backward")
        if name == "groupnorm":
            made["backward"] = backward
    both = fastest.readme(data).split("Forward and backward")
    assert len(both) == 2 and [c[0] for c in map(cells, both[1].splitlines()) if c[0] in NAMES] == ["groupnorm"]
    del data["problems"]["groupnorm"]["backward"]
    assert "Forward and backward" not in fastest.readme(data)


def test_sanitizer_results_are_of_the_present_files():
    """Are files without a finding counted, findings named, and files that have changed since reported as such?"""
    tools = {tool: {"errors": 0, "finished": True} for tool in ("memcheck", "racecheck")}
    files = {
        f"{f.parent.name}/{f.stem}": {"code": fastest.code_of(f), **tools}
        for f in sorted(ROOT.glob("kernels_ref/*/fastest*.py"))
    }
    data = {
        "options": dict.fromkeys(tools, ""),
        "machine": {"gpu": "A", "date": "B"},
        "sanitizer": "Version 1.2.3.0 (build 4)",
        "files": files,
    }
    assert (
        fastest.sanitized(data) == "compute-sanitizer 1.2.3.0 (memcheck and racecheck) on an A, B: "
        f"{len(files)} of {len(files)} files without a finding."
    )
    first, second, third = list(files)[:3]
    files[first] = files[first] | {"code": "another"}
    files[second] = files[second] | {"racecheck": {"errors": 2, "finished": True, "says": "Error: Race"}}
    files[third] = files[third] | {"memcheck": {"errors": 0, "finished": False}}
    described = fastest.sanitized(data)
    assert f"{len(files) - 3} of {len(files)} files" in described and described.endswith(
        f"Not examined as they are now: {first}."
    )
    assert (
        f"{second}: racecheck 2 errors (Error: Race)." in described and f"{third}: memcheck did not end." in described
    )


def test_how_long_builds_take_is_of_the_files_as_they_are():
    files = {
        f"{f.parent.name}/{f.stem}": {"code": fastest.code_of(f), "seconds": 8.0}
        for f in sorted(ROOT.glob("kernels_ref/*/fastest*.py"))
    }
    first, second = list(files)[:2]
    files[second] = files[second] | {"seconds": 12.34}
    data = {"machine": {"gpu": "A", "date": "B"}, "cores": 16, "files": files}
    head = "Built by nvcc from nothing, one after another on 16 cores of the host of an A, B"
    count = f"{len(files)} of {len(files)} files in 8.0 to 12.3 s, {second} the slowest"
    assert fastest.built(data) == f"{head}: {count}."
    files[first] = files[first] | {"code": "another"}
    assert fastest.built(data).endswith(f"Not built as they are now: {first}.")
    assert "none of them." in fastest.built(data | {"files": {}})


# --- ladders ---------------------------------------------------------------------------------------------------------


def test_the_ladders_are_those_of_today():
    page = fastest.ladder_page(fastest.ladders(*ALL), ALL[0], ALL[1])
    assert (ROOT / "benchmarks" / "LADDERS.md").read_text(encoding="utf-8") == page


def test_every_step_has_a_rung_with_its_figures():
    """Are all steps there in order, with their run's times and their counters' bytes, and the fastest last?"""
    found = fastest.ladders(*ALL)
    steps = [f"{f.parent.parent.name}/{f.stem}" for f in sorted(ROOT.glob("kernels_ref/*/steps/*.py"))]
    assert [
        f"{own}/{r['name']}" for own, rungs in found.items() for r in rungs if not r["name"].startswith("fastest")
    ] == steps
    for own, rungs in found.items():
        ours = [r["name"] for r in rungs if r["name"].startswith("fastest")]
        assert ours == sorted(
            f.stem for f in (ROOT / "kernels_ref" / own).glob("fastest*.py") if "backward" not in f.stem
        )
        assert [r["name"] for r in rungs[len(rungs) - len(ours) :]] == ours
    assert (
        next(r["ms"] for r in DATA["problems"]["groupnorm"]["rows"] if r["name"] == "03_one_pass")
        == found["groupnorm"][2]["ms"]
    )
    assert found["logsumexp"][0]["ms"] == ALL[1]["steps"]["logsumexp/01_block_a_pixel"]["ms"]
    # read twice for the statistics and the result or once, written once; and little else
    elements = 112 * 64 * 512 * 512
    assert [round(r["bytes"] / elements / 4) for r in found["groupnorm"][:4]] == [2, 3, 3, 2]


def test_a_rung_without_a_prediction_says_why():
    """Is a fastest file predicted where what was counted is what ncu saw, and else not, with a reason? Also when it has
    changed?
    """
    measured, counted = copy.deepcopy(ALL[0]), copy.deepcopy(ALL[3])
    own, name = "conv_groupnorm_maxpool", "fastest_tf32"
    row = next(r for r in measured["problems"][own]["rows"] if r["name"] == name)
    kernels = {launch["kernel"] for launch in counted["fastest"][f"{own}/{name}"]["launches"]}
    measured["problems"][own]["launches"] = {name: [{"kernel": k, "seconds": 1.0, "bytes": 2e6} for k in kernels]}
    rung = fastest.fastest_rung(measured, own, row, counted)
    assert rung["predicted"] > 0 and rung["bytes"] > 0 and not rung["why"] and rung["dram"] == 2e6 * len(kernels)
    measured["problems"][own]["launches"][name][0]["kernel"] = "another_kernel"
    rung = fastest.fastest_rung(measured, own, row, counted)
    assert rung["predicted"] is None and "the GPU ran another_kernel" in rung["why"]
    measured["problems"][own]["launches"] = {"failed": "no ncu"}
    assert "no launches" in fastest.fastest_rung(measured, own, row, counted)["why"]
    counted["fastest"][f"{own}/{name}"]["source"] = "another"
    assert "has changed" in fastest.fastest_rung(measured, own, row, counted)["why"]
    assert fastest.fastest_rung(measured, own, row, {"fastest": {}})["why"] == "not counted"
    page = fastest.ladder_page({own: [rung]}, measured, ALL[1])
    assert "- fastest_tf32 has no prediction: the GPU ran another_kernel" in page


def test_tf32_is_a_rung_next_to_fp32s_fastest():
    """Is the tf32 fastest's gain counted from the last step, as fp32's is, and not from the fastest fp32 file?"""
    rungs = [
        {"name": n, "ms": ms, "predicted": None, "bytes": None, "dram": None, "class": c, "why": ""}
        for n, ms, c in (
            ("01", 8.0, "fp32"),
            ("02", 4.0, "fp32"),
            ("fastest", 2.0, "fp32"),
            ("fastest_tf32", 1.0, "tf32"),
        )
    ]
    assert [c[2] for c in fastest.rung_cells(rungs)] == ["", "2.00", "2.00", "4.00"]


# --- the sweep -------------------------------------------------------------------------------------------------------


def test_the_sweeps_page_has_a_picture_and_sentences_a_model(tmp_path):
    """Of a small sweep: is each model's picture there with its words, what was not measured, and is the committed page
    today's?
    """
    row = {"kind": "beside", "precision": "fp32", "low": 0.9, "high": 1.1, "in_class": True, "n": 20}
    there = {"batch": 1, "side": 4, "rows": [row | {"name": "fastest", "ms": 1.0}]}
    made = {"own": {"batch": 1, "side": 4}, "sizes": [there, {"batch": 2, "side": 4, "skipped": "the time was up"}]}
    machine = {"date": "2026-01-01", "name": "NVIDIA H200", "torch": "2"}
    page = fastest.sweep_page({"machine": machine, "problems": {"groupnorm": made | {"machine": machine}}})
    assert re.search(
        r"## groupnorm\n\n!\[Time per pixel of the input of groupnorm .* No cliff\.\]\(data/sweep/groupnorm\.svg\)"
        r"\n\nNo cliff\.\n",
        page,
    )
    assert "not measured: batch 2 of 4 pixels a side: the time was up." in page
    assert "has changed since" not in page
    file = "kernels_ref/groupnorm/fastest.py"
    there["rows"][0] |= {"file": file, "code": fastest.code_of(ROOT / file)}
    problems = {"groupnorm": made | {"machine": machine}}
    assert "has changed since" not in fastest.sweep_page({"machine": machine, "problems": problems})
    there["rows"][0]["code"] = "another"
    assert (
        fastest.sweep_page({"machine": machine, "problems": problems}).count(
            "groupnorm's fastest.py has changed since it was timed."
        )
        == 1
    )
    if fastest.SWEEP.exists():
        swept = json.loads(fastest.SWEEP.read_text())
        assert (ROOT / "benchmarks" / "SWEEP.md").read_text() == fastest.sweep_page(swept)


# --- the counters ----------------------------------------------------------------------------------------------------


def test_the_counters_are_judged_by_todays_rules():
    """Does `python benchmarks/validate/counters.py --table` leave its page and its verdicts as they are?"""
    data = json.loads(counters.DATA.read_text(encoding="utf-8"))
    assert [counters.add_verdict(row) for row in data["rows"]] == data["rows"]
    assert counters.PAGE.read_text(encoding="utf-8") == counters.make_page(data)


def test_a_launch_with_less_than_two_fifths_of_its_loads_differs():
    """Where nvcc merged loads: is that the reason down to 0.4 of them, and are fewer an unexplained difference?"""
    rows = json.loads(counters.DATA.read_text(encoding="utf-8"))["rows"]
    row = next(
        r for r in rows if r["verdict"] == "nvcc" and r["why"].startswith("loads are merged") and ";" not in r["why"]
    )
    for share, verdict, left in ((0.4, "nvcc", []), (0.39, "differs", ["load requests"])):
        ncu = row["ncu"] | {
            "load requests": share * row["simt"]["load requests"],
            "load sectors": row["simt"]["load sectors"],
        }
        found = counters.add_verdict(row | {"ncu": ncu})
        assert (found["verdict"], found["unexplained"]) == (verdict, left)


def test_the_launches_with_gradients_are_counted_as_their_rows_say():
    """By another way, from the page's own rows: how many launches of the backward.py files are off?"""
    text = counters.PAGE.read_text(encoding="utf-8").split("## Forward and backward")[1]
    rows = [line for line in text.splitlines() if re.match(r"\| \w+/backward: ", line)]
    off = 0
    for row in rows:
        lanes = [float(cell.split(" / ")[0]) for cell in re.split(r" \(ncu ", cells(row)[5])]
        # they are rounded
        off += "differs" in cells(row)[6] or abs(lanes[0] - lanes[-1]) > counters.NEAR * lanes[-1] + 0.1
    assert f"Of {len(rows)} launches {len(rows) - off} are as above" in text and f" {off} are off: " in text
