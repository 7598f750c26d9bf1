"""Do the course's own problems have the kill rates that benchmarks/README.md publishes?"""

import hashlib
import json

import pytest

from benchmarks.paths import README
from benchmarks.publish.tables import make_table
from benchmarks.validate import lint
from grader.paths import KERNELS_REF
from tests.sample import sample

NAMES = sorted(path.parent.name for path in KERNELS_REF.glob("*/model.py"))
DATA = json.loads(lint.DATA.read_text(encoding="utf-8"))
AGAIN = "run: python benchmarks/validate/lint.py --json --readme"


@pytest.mark.parametrize("name", sample(NAMES, ["logsumexp", "matmul"]))
def test_the_rates_are_those_published(name):
    assert lint.measure(name) == DATA["problems"][name], AGAIN


def test_the_figures_are_of_today_s_files():
    """Does the data file have each problem, as its model.py is now, and does nothing survive?"""
    assert sorted(DATA["problems"]) == NAMES, AGAIN
    for name, found in DATA["problems"].items():
        assert found["sha256"] == hashlib.sha256((KERNELS_REF / name / "model.py").read_bytes()).hexdigest(), AGAIN
        assert not found["survivors"]
        for kind in ("decoys", "mutants"):
            assert 0 < found[kind]["killed"] == found[kind]["counted"]


def test_the_table_is_that_of_the_data():
    table = "\n".join(make_table(lint.HEADS, lint.make_rows(DATA["problems"])))
    assert table in README.read_text(encoding="utf-8"), AGAIN
