"""Is it told what overflowed: an index, a sum of values, or words that hold several values each?"""

from pathlib import Path

import pytest

from grader.diagnosis import hints
from grader.judging import findings
from grader.source import contract
from grader.source.overflow import explain_overflow
from grader.verdict import Evidence, Outcome, Reason, Stage, StageName, Status, Submission, Verdict
from grader.worker import protocol

KERNEL = """__global__ void dots(const int* a, const int* b, int* c, int n) {
    int total = 0;
    __shared__ int part[64][65];
    part[threadIdx.y][threadIdx.x] = threadIdx.x < n ? a[threadIdx.x] : 0;
    STATEMENT
    MORE
}
torch::Tensor run(torch::Tensor p, torch::Tensor q) {
    dots<<<1, 64>>>(FIRST, SECOND, q.data_ptr<int>(), 4);
    return q;
}
"""
PLAIN = ("p.data_ptr<int>()", "q.data_ptr<int>()")
BYTES = ("reinterpret_cast<const int*>(p.data_ptr<uint8_t>())", "(const int *)q.data_ptr<int8_t>()")
HALVES = ("(int*)p.data_ptr<at::Half>()", "(int*)q.data_ptr<at::Half>()")


def explain(statement: str, more: str = "c[0] = total;", data: tuple[str, str] = PLAIN) -> str:
    text = KERNEL.replace("STATEMENT", statement).replace("MORE", more)
    return explain_overflow(text.replace("FIRST", data[0]).replace("SECOND", data[1]), 5)


@pytest.mark.parametrize(
    "statement, data, says",
    [
        ("total += a[0] * b[0];", BYTES, "Each `int` of `a` and of `b` holds four values of 8 bits: see line 9."),
        ("total = total + part[0][1] * b[2];", BYTES, "Each `int` of `part` and of `b` holds four values of 8 bits"),
        ("const int product = a[0] * b[0];", HALVES, "Each `int` of `a` and of `b` holds two values of 16 bits"),
        ("for (int k = 0; k < n; ++k) total += part[0][k] * part[1][k];", PLAIN, "`total` is not an index"),
        ("total += part[0][1] * b[2];", (BYTES[0], PLAIN[1]), "`total` is not an index"),
        ("total += a[0];", BYTES, "`total` is not an index"),  # of words that are not multiplied
    ],
)
def test_values_that_are_too_large(statement, data, says):
    assert says in explain(statement, data=data)


@pytest.mark.parametrize(
    "statement, more",
    [
        ("int i = blockIdx.x * n;", "c[i] = 1;"),  # from no element of an array
        ("int i = a[0] * n;", "c[i] = 1;"),
        ("int row = a[0] * n;", "const int i = row + threadIdx.x; c[i] = 1;"),
        ("int i = a[0] * n;", "if (i < n) c[0] = i;"),
        ("total += a[n * n + 1];", "c[0] = total;"),
    ],
)
def test_what_may_be_an_index_is_left_to_the_checks(statement, more):
    assert explain(statement, more) == ""


def test_the_sentence_and_the_hint_are_of_one_kind():
    """Is the advice on indices replaced, and is the hint on them left out, where a sum of values overflows?"""
    index = "int i = a[0] * n;"
    for statement, more, advice, hint in (
        ("total += a[0] * b[0];", "c[0] = total;", "`total` is not an index", "What does the line multiply"),
        (index, "c[i] = 1;", "Compute it in `size_t` or `long long`.", "`int` ends at"),
    ):
        code = KERNEL.replace("STATEMENT", statement).replace("MORE", more)
        source = contract.Source(Path("conv2d.py"), f'code = """{code}"""\n', "")
        found = protocol.Found(
            check="int_overflow", message=f"Thread (0, 0, 0): this addition overflows. {findings.WIDER}",
            kernel="dots", source="cuda_sources", line=5, block=[0, 0, 0], thread=[0, 0, 0],
        )  # fmt: skip
        finding = findings.of_check(found, source, [{"cuda_sources": code}], "one")
        assert finding.message.endswith(advice) or f"overflows. {advice}" in finding.message
        stage = Stage(
            name=StageName.safe, status=Status.failed, reason=Reason.int_overflow, message=finding.message,
            evidence=[Evidence()],
        )  # fmt: skip
        verdict = Verdict(
            problem="conv2d", submission=Submission(path="conv2d.py", sha256=""), outcome=Outcome.failed,
            stages=[Stage(name=StageName.build, status=Status.passed, message=""), stage],
            device="cpu", versions={}, seed=0, seconds=0.0, sandbox="",
        )  # fmt: skip
        given = hints.of(verdict)
        assert given[0].startswith(hint) and sum("`int` ends at" in one or "What does" in one for one in given) == 1
