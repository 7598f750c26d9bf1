"""Do the ladders of lesson 14 show measured times, and predicted ones where a step has not been measured?"""

from __future__ import annotations

import importlib
import json

import pytest

from benchmarks.paths import ROOT

STEPS = ["int4_matvec/01_slow", "int4_matvec/02_fast"]


@pytest.fixture(name="ladder")
def make_ladder(tmp_path, monkeypatch):
    """Return a function that draws int4_matvec's ladder where these steps have been measured."""
    monkeypatch.syspath_prepend(str(ROOT / "lessons"))
    pictures = importlib.import_module("quantised_pictures")
    monkeypatch.setattr(pictures, "DATA", tmp_path)
    rows = [{"group": step, "launches": 2, "predicted": 1e-3 / place} for place, step in enumerate(STEPS, 1)]
    (tmp_path / "model.json").write_text(json.dumps({"steps": [*rows, {**rows[0], "group": "scan/01_whole_vector"}]}))

    def draw(measured):
        times = {step: {"ms": 3.0 / place} for place, step in enumerate(measured, 1)} | {"scan/01_slow": {"ms": 1.0}}
        (tmp_path / "steps.json").write_text(json.dumps({"steps": times}))
        return pictures.int4_matvec_ladder()

    return draw


@pytest.mark.parametrize(
    ("measured", "alt"),
    [
        ([], "Steps of int4_matvec, predicted: 02_fast (1 ms) is 2 times as fast as 01_slow (2 ms)."),
        (STEPS[:1], "Steps of int4_matvec, partly predicted: 02_fast (1 ms) is 3 times as fast as 01_slow (3 ms)."),
        (STEPS, "Steps of int4_matvec: 02_fast (1.5 ms) is 2 times as fast as 01_slow (3 ms)."),
    ],
    ids=["none", "one", "all"],
)
def test_times_are_predicted_until_they_are_measured(ladder, measured, alt):
    assert ladder(measured).alt == alt
