"""Is a failure in given code traced to the student's own line, which is marked instead?"""

import re

import pytest

from grader.diagnosis.fault_localization import Lead
from grader.paths import KERNELS_REF
from grader.problems import exercises
from grader.reports import feedback
from grader.source.given import find_own_lines, is_argument
from grader.source.place import Place
from grader.verdict import Evidence, Outcome, Reason, Stage, StageName, Status, Submission, Verdict

MEAN = "const float centre = block_sum(sum) / elements;"
BARRIER = "__syncthreads();  // all warps have written"


def hand_in(old: str, new: str) -> str:
    """A student's groupnorm.py: the reference's lines in the marked places, one of them changed."""
    text = exercises.read_solution("groupnorm")
    assert text.count(old) == 1
    lines = text.replace(old, new).replace(">>> exercise", exercises.MARK).splitlines(True)
    return "".join(line for line in lines if not exercises.CLOSE.match(line))


def line_of(text: str, part: str) -> int:
    return 1 + text[: text.index(part)].count("\n")


def find(text: str, part: str = BARRIER):
    given = exercises.outside_places(text, "groupnorm")
    return find_own_lines(text, line_of(text, part), given, "group_statistics_kernel")


@pytest.mark.parametrize(
    ("line", "wrong", "words"),
    [
        (MEAN, f"if (threadIdx.x >= elements) return;\n    {MEAN}", "lets some return before it"),
        (
            MEAN,
            "float centre = 0;\n    if (threadIdx.x < elements) centre = block_sum(sum) / elements;",
            "under a condition that not all",
        ),
        (
            MEAN,
            "const float centre = threadIdx.x < elements ? block_sum(sum) / elements : 0;",
            "under a condition that not all",
        ),
    ],
)
def test_a_helper_that_not_all_threads_call(line, wrong, words):
    """Is the early return, or the call under the condition, the marked line?"""
    text = hand_in(line, wrong)
    place = find(text)
    marked = next(part for part in wrong.split("\n") if "threadIdx.x" in part).strip()
    assert place is not None and place.lines == (line_of(text, marked),) and words in place.words


@pytest.mark.parametrize(
    "guard",
    ["if (elements == 0) return;", "if (elements > 0) block_sum(0.0f);", "if (eps < 0) { mean[0] = 0; return; }"],
)
def test_a_condition_on_which_all_threads_agree_is_not_accused(guard):
    place = find(hand_in(MEAN, f"{guard}\n    {MEAN}"))
    assert place is not None and place.lines == () and "You call `block_sum`" in place.words


def test_a_name_that_differs_between_threads_is_followed():
    text = hand_in(
        MEAN,
        f"const int lane = threadIdx.x % 32;\n    const bool first = lane == 0;\n    if (first) return;\n    {MEAN}",
    )
    place = find(text)
    assert place is not None and place.lines == (line_of(text, "if (first) return;"),)


def test_several_calls_are_shown_and_none_is_marked():
    text = hand_in(MEAN, MEAN)
    place = find(text, "float sum = 0.0f;\n    for (int warp")
    assert place is not None and place.lines == () and len(place.beside) == 3
    assert "You call `block_sum`" in place.words


def test_an_own_line_needs_no_other():
    text = hand_in(MEAN, MEAN)
    assert find(text, MEAN) is None


def test_the_report_marks_the_student_s_line_alone():
    """Does a barrier in block_sum stand second, unmarked, below the line that the student wrote?"""
    text = hand_in(MEAN, f"if (threadIdx.x >= elements) return;\n    {MEAN}")
    given, line = exercises.outside_places(text, "groupnorm"), line_of(text, BARRIER)
    one = Evidence(kernel="group_statistics_kernel", line=line)
    message = f"Thread (0, 0, 0) waits at the __syncthreads() in line {line}, but thread (9, 0, 0) does not."
    stage = Stage(
        name=StageName.correct, status=Status.failed, reason=Reason.barrier_divergence, message=message, evidence=[one]
    )
    shown = feedback.as_text(feedback.excerpt(one, stage, text, lambda n: f"line {n}", given=given))
    assert re.findall(r"^→ *(\d+)", shown, re.MULTILINE) == [str(line_of(text, "if (threadIdx.x >= elements) return;"))]
    assert shown.index("return;") < shown.index(BARRIER)


def verdict_of(*stages: Stage) -> Verdict:
    submission = Submission(path="attention.py", sha256="")
    return Verdict(
        problem="attention", submission=submission, outcome=Outcome.failed, stages=[*stages],
        device="cpu", versions={}, seed=0, seconds=0.0, sandbox="",
    )  # fmt: skip


def test_what_was_said_is_not_repeated():
    """Is a stage left out whose message an earlier one contains, and an excerpt that is shown already?"""
    past = "Thread (1, 0, 0) of block (4, 0, 0) reads element 5 of `x`, which has 5 elements."
    stages = [
        Stage(
            name=name, status=Status.failed, reason=Reason.out_of_bounds, message=message, evidence=[Evidence(line=3)]
        )
        for name, message in ((StageName.correct, f"{past}\nThe output is wrong."), (StageName.safe, past))
    ]
    lead = Lead(3, 0, "The comparison in line 3 is wrong.", "comparison")
    text = "\n".join(f"line_{n}();" for n in range(1, 9))
    shown = feedback.as_text(feedback.failure_parts(verdict_of(*stages), text, [], lead=lead))
    assert shown.count(past) == 1 and shown.count("line_3();") == 1 and "→ 3 │ line_3();" in shown


def test_of_a_race_the_student_s_line_alone_is_marked():
    """Is a given line of a race shown and not marked next to one of the student's, and a deleted barrier named?"""
    text = (KERNELS_REF / "attention" / "solution.py").read_text(encoding="utf-8")
    text = text.replace("        __syncthreads();  // all are done with the tile before\n", "")
    read, write = line_of(text, "score += mine[d] * keys[j][d];"), line_of(text, "keys[i / D][i % D] =")
    message = (
        f"Thread (0, 0, 0) of block (0, 0, 0) reads element 1 of `keys`, which thread (1, 0, 0) of the same block "
        f"writes in line {write} without a barrier in between. Put a `__syncthreads()` between the two."
    )
    stage = Stage(
        name=StageName.safe, status=Status.failed, reason=Reason.race, message=message, evidence=[Evidence(line=read)]
    )
    shown = feedback.as_text(feedback.failure_parts(verdict_of(stage), text, []))
    assert re.findall(r"^→ *(\d+)", shown, re.MULTILINE) == [str(read)]
    above = line_of(text, "const int count = min(TILE, end - first);")
    says = f"The exercise has a `__syncthreads();` after line {above}, and it is missing in your file."
    assert says in shown
    for at, marked in ((read + 10, [read]), (above - 1, [above - 1])):  # another place that helps too, or this one
        lead = Lead(at, at + 1, "Put a barrier there.", "barrier")
        shown = feedback.as_text(feedback.failure_parts(verdict_of(stage), text, [], lead=lead))
        assert says in shown and "Put a barrier there." not in shown
        assert set(marked) <= {int(n) for n in re.findall(r"^→ *(\d+)", shown, re.MULTILINE)}


def test_a_return_moved_above_a_given_barrier_is_marked():
    """Is the moved return named, where the exercise has the same text below its barriers?"""
    text = (KERNELS_REF / "attention" / "solution.py").read_text(encoding="utf-8")
    text = text.replace("    if (!exists) return;\n", "").replace(
        "    const int end = causal", "    if (!exists) return;\n    const int end = causal"
    )
    given, line = exercises.outside_places(text, "attention"), line_of(text, "__syncthreads();  // all are done")
    found = find_own_lines(text, line, given, "attention_kernel<32>")
    assert found is not None and found.lines == (line_of(text, "if (!exists) return;"),)
    assert "some threads return before the barrier" in found.words


UNSET = """__global__ void k(const float* x, float* y, int n) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    float factor = 1.0f;
    OWN
    const float value = factor * x[i];
    y[i] = value;
    float other = value > 0.0f ? fabsf(i) : 0.0f;
}
"""


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ("factor = n;", True),
        ("set(&factor, i);", True),
        ("++factor;", True),
        ("float half = factor / 2;", False),
        ('printf("%f", sqrtf(factor));', False),
    ],
)
def test_a_given_line_that_uses_nothing_of_the_student_s_is_not_traced(own, says):
    """Are the student's lines named only if one of them may set what the given line uses?"""
    text = UNSET.replace("OWN", own) + "__device__ void set(float* f, int i) { *f = i; }\n"
    given = set(range(1, 20)) - {4, 7}
    found = find_own_lines(text, 5, given, "k")
    assert (found is not None) == says and (found is None or "what it uses comes from your part" in found.words)


@pytest.mark.parametrize(
    "parameter, argument, array, expected",
    [
        ("int key", "keys[i]", "keys", True),
        ("const int* key", "keys[i]", "keys", False),  # a row, of which the function reads an element
        ("int key", "i", "keys", False),
        ("int key", "keys[i]", "bins", False),
    ],
)
def test_an_element_that_is_an_argument(parameter, argument, array, expected):
    """Is the call taken for the line of an access to an element that is an argument, and of no other access?"""
    given = f"__device__ int find({parameter}) {{ return 1; }}"
    source = f"{given}\n__global__ void k(int* keys, int i) {{\nfind({argument});\n}}"
    own = Place("", (3,), True)
    message = f"Thread (4, 0, 0) of block (0, 0, 0) reads element 4 of `{array}` (1 element)"
    assert is_argument(message, source, 1, own) is expected
    assert not is_argument(message, source, 1, Place("", (), True, (3, 4)))
