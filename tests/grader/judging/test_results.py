"""What a failed stage says beyond its first finding."""

import pytest

from grader.judging.results import describe_common
from grader.problems.cases import Case
from grader.verdict import CaseResult, Stage, StageName, Status

LITERALS = {"causal": False, "rows": 4, "groups": 2}


def common(*cases: tuple[dict[str, object], bool]) -> str:
    """The sentence on cases, each with what it sets and whether it is right."""
    made = [Case(str(number), settings) for number, (settings, _) in enumerate(cases)]
    results = [
        CaseResult(name=case.name, status=Status.passed if right else Status.failed)
        for case, (_, right) in zip(made, cases)
    ]
    return describe_common(Stage(name=StageName.correct, status=Status.failed, cases=results), made, LITERALS)


CAUSAL, FULL = {"causal": True}, {"causal": False}


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        # the file's own value counts as well
        ([(CAUSAL, False), ({**CAUSAL, "rows": 7}, False), ({}, True), ({"rows": 9}, True)], "causal = True"),
        # it may be either of two settings
        ([({"rows": 8, **CAUSAL}, True), ({"rows": 9, **CAUSAL}, True), ({}, False), ({}, False)], ""),
        # a right case has it, too
        ([(CAUSAL, False), (CAUSAL, True), (FULL, True), (CAUSAL, False)], ""),
        # one case proves nothing
        ([(CAUSAL, False), (FULL, True), ({}, True)], ""),
        ([(CAUSAL, False), (CAUSAL, False), (FULL, True)], ""),
    ],
)
def test_what_all_wrong_cases_have_in_common(cases, said):
    """Is the one setting named that all wrong cases have and no right one, and nothing where two settings may be it?"""
    assert common(*cases) == (f" All cases with `{said}` fail, and no others." if said else "")
