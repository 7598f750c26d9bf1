"""Fixtures of the judge's tests."""

import pytest

from grader.judging.grading import Limits, grade
from tests.grader import scaffold
from tests.grader.judging.submissions import OWN, left_over

problem = scaffold.problem


@pytest.fixture
def judged(tmp_path, problem):
    """Grades a source text; nothing of it may still run afterwards."""

    def judge(source: str, **options):
        path = tmp_path / "scaling.py"
        path.write_text(source)
        verdict = grade(path, options.pop("problem", problem), limits=Limits(own=OWN), device="cpu", seed=1, **options)
        print(*(f"{stage.name}: {stage.message}" for stage in verdict.stages if stage.message), sep="\n")
        assert not left_over()
        return verdict

    return judge
