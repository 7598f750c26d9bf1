"""The table of aims: our time over that of the best function beside it."""

import json

import pytest
from click.testing import CliRunner

from benchmarks.timing import aims

MACHINE = {"date": "2026-11-30", "name": "a GPU", "torch": "2.11"}


def made_of(ours: float, others: dict[str, float | None], in_class: bool = True, error: float = 1e-3) -> dict:
    """Return what `grader bench` writes of a problem: a fastest file, and rows that were timed or not."""
    rows = [{"name": "fastest", "kind": "beside", "ms": ours, "error": error, "in_class": in_class}]
    for name, ms in others.items():
        rows.append({"name": name, "kind": "anchor"} | ({} if ms is None else {"ms": ms, "error": 1e-4}))
    return {"rows": rows, "machine": MACHINE, "backward": {}}


@pytest.mark.parametrize(
    ("ours", "in_class", "error", "kept"),
    [(1.24, True, 1e-3, True), (1.26, True, 1e-4, False), (1.0, False, 1e-3, False), (1.0, False, 2e-4, True)],
)
def test_ratio_is_to_the_best_row_that_was_timed(ours, in_class, error, kept):
    """Is it that of the fastest row of the name, kept up to the aim, and only by a result that is exact enough?"""
    others = {"anchor: sdpa, a": 2.0, "anchor: sdpa, b": 1.0, "anchor: sdpa, c": None, "eager": 0.1}
    cells, is_kept = aims.compare(aims.Run("it", (), "sdpa", 1.25), made_of(ours, others, in_class, error))
    assert is_kept is kept
    errors = [f"{error:.1e}", "1.0e-04"]
    assert cells[:6] == ["it", f"{ours:.4g}", errors[0], "sdpa, b", "1", errors[1]]
    assert cells[6:] == [f"{ours:.2f}", "1.25", "yes" if kept else "no"]


def test_changed_files_are_named():
    """Is a fastest file named whose code is not the one that was timed, and no other?"""
    file = "kernels_ref/scan/fastest.py"
    made, code = made_of(1.0, {}), aims.code_digest((aims.ROOT / file).read_text(encoding="utf-8"))
    for known, said in ((code, ""), ("another", f" Changed since: {file}.")):
        made["rows"][0] |= {"file": file, "code": known}
        assert aims.find_changed({"scan_20": made}) == said


def test_missing_runs_are_a_failure(tmp_path, monkeypatch):
    """Is the exit status 1 where a run has no data file, and 0 where each aim is kept?"""
    monkeypatch.setattr(aims, "FOLDER", tmp_path)
    monkeypatch.setattr(aims, "RUNS", {"scan": aims.RUNS["scan_20"], "histogram": aims.RUNS["histogram"]})

    def write(name: str, made: dict) -> int:
        (tmp_path / f"{name}.json").write_text(json.dumps({"problems": {name: made}}), encoding="utf-8")
        result = CliRunner().invoke(aims.main)
        assert ("2^20" in result.output) is ("ms" in made["rows"][1] or name == "histogram")
        return result.exit_code

    assert write("scan", made_of(1.1, {"anchor: a copy": 1.0})) == 1
    assert write("histogram", made_of(1.0, {"anchor: cub::DeviceHistogram": 1.0})) == 0
    assert write("scan", made_of(1.2, {"anchor: a copy": 1.0})) == 1
    assert write("scan", made_of(1.0, {"anchor: a copy": None})) == 1
