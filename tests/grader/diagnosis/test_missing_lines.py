"""Is a statement of the exercise that a student deleted named where it explains the failure, and nowhere else?"""

import re

import pytest

from grader.diagnosis import missing_lines
from grader.diagnosis.fault_localization import Lead
from grader.problems import exercises
from grader.reports import feedback
from grader.verdict import Evidence, Outcome, Reason, Stage, StageName, Status, Submission, Verdict


def hand_in(exercise: str, *changes: tuple[str, str]) -> str:
    """Return the solution of an exercise with lines replaced: the first that begins with a statement, each time."""
    lines = exercises.read_solution(exercise).split("\n")
    for old, new in changes:
        at = next(n for n, line in enumerate(lines) if line.strip().startswith(old))
        lines[at : at + 1] = [new] if new else []
    return "\n".join(lines)


def verdict_of(exercise: str, reason: Reason, message: str = "It is wrong.", line: int | None = None) -> Verdict:
    evidence = [Evidence(case="one", line=line)]
    stage = Stage(name=StageName.correct, status=Status.failed, reason=reason, message=message, evidence=evidence)
    submission = Submission(path=f"{exercise}.py", sha256="")
    return Verdict(
        problem=exercise, submission=submission, outcome=Outcome.failed, stages=[stage],
        device="cpu", versions={}, seed=0, seconds=0.0, sandbox="",
    )  # fmt: skip


def find(exercise: str, reason: Reason, *changes: tuple[str, str], message: str = "It is wrong."):
    text = hand_in(exercise, *changes)
    return missing_lines.find_missing(text, verdict_of(exercise, reason, message)), text


GUARD = "if (oc >= OC) return;"
MOVED = "x += blockIdx.x * columns;"


@pytest.mark.parametrize(
    "exercise, reason, deleted, says",
    [
        ("softmax", Reason.wrong_values, MOVED, "`x` still points to its first element"),
        ("im2col_conv", Reason.race, "y += (int64_t)blockIdx.y * OC * pixels;", "`y` still points to its first"),
        (
            "conv2d_backward",
            Reason.out_of_bounds,
            "if (i >= weights) return;",
            "the code below also runs where `i >= weights`",
        ),
        (
            "scan_backward",
            Reason.illegal_address,
            "if (i >= length || blockIdx.x == 0) return;",
            "runs where `i >= length || blockIdx.x == 0`",
        ),
        ("groupnorm", Reason.wrong_values, "v += __shfl_down_sync(0xffffffff, v, offset);", "`v` stays as it is"),
        ("conv_groupnorm_logsumexp", Reason.not_written, "mean[blockIdx.x] = centre + error;", "to `mean`"),
        (
            "attention_backward",
            Reason.wrong_gradient,
            "for (int d = 0; d < D; ++d) acc[d] *= heads.scale;",
            "nothing multiplies `acc` by `heads.scale`",
        ),
        ("conv2d", Reason.launch_error, "if (total == 0) return y;", "also runs where `total == 0`"),
        ("conv2d_backward", Reason.noncontiguous_gradient, "gy = gy.contiguous();", "`gy` stays as it is"),
    ],
)
def test_a_deleted_statement_is_named(exercise, reason, deleted, says):
    """Is its text given, with the line above it, which is marked, and what follows?"""
    missing, text = find(exercise, reason, (deleted, ""))
    assert missing is not None
    (after,) = missing.after
    lines, left = exercises.read_solution(exercise).split("\n"), text.split("\n")
    assert lines[after].strip().startswith(deleted) and lines[:after] == left[:after] and after in missing.lines
    start = f"The exercise has `{deleted}` after line {after}, and it is missing in your file. Put it back: "
    assert missing.words.startswith(start) and says in missing.words


def test_a_missing_declaration_is_named_where_the_compiler_misses_it():
    """Is it named only if the message is about its variable?"""
    change = ("const int lane = threadIdx.x % WARP;", "")
    message = "Line 99 of conv2d_backward.py: '{}' was not declared in this scope"
    missing, _ = find("conv2d_backward", Reason.compile_error, change, message=message.format("lane"))
    assert missing is not None and missing.words.endswith("Put it back: it declares `lane`.")
    assert find("conv2d_backward", Reason.compile_error, change, message=message.format("line"))[0] is None
    assert find("conv2d_backward", Reason.wrong_values, change)[0] is None


@pytest.mark.parametrize(
    "exercise, reason, changes",
    [
        ("softmax", Reason.wrong_values, []),
        # the same in another form, or in another place
        ("softmax", Reason.wrong_values, [(MOVED, "    x = x + columns * blockIdx.x;")]),
        ("conv2d_backward", Reason.out_of_bounds, [(GUARD, "    const bool is_mine = oc < OC;")]),
        # what was deleted has nothing to do with the failure
        ("conv2d", Reason.wrong_values, [("x = x.contiguous();", "")]),
        ("conv2d", Reason.wrong_values, [("if (total == 0) return y;", "")]),
        ("softmax", Reason.barrier_divergence, [(MOVED, "")]),
        ("softmax", Reason.link_error, [(MOVED, "")]),
    ],
)
def test_what_is_not_missing_is_not_named(exercise, reason, changes):
    assert find(exercise, reason, *changes)[0] is None


def test_a_pointer_that_each_access_moves_is_not_missed():
    """Does an index with all that the exercise adds count, and is one with a part of it named and marked?"""
    rest, store = hand_in("ratio_interval", ("y += (int64_t)n * 3 * H + h;", "")), "y["
    whole = rest.replace(store, "y[(int64_t)n * 3 * H + h + ")
    assert missing_lines.find_missing(whole, verdict_of("ratio_interval", Reason.wrong_values)) is None
    part = rest.replace(store, "y[n + ")
    missing = missing_lines.find_missing(part, verdict_of("ratio_interval", Reason.wrong_values))
    assert missing is not None and " not add `(int64_t)n * 3 * H + h`" in missing.words
    assert missing.lines and all("y[n + " in part.split("\n")[n - 1] for n in missing.lines)


def test_no_return_is_advised_above_barriers_of_the_student():
    """Is the condition to be put around the accesses, where a `return` would keep threads from a barrier?"""
    text = hand_in("conv2d_backward", (GUARD, ""))
    at = text.index("bias_parts_kernel(")
    text = text[:at] + re.sub(r"( +)(T sum\b)", r"\1__syncthreads();\n\1\2", text[at:], count=1)
    missing = missing_lines.find_missing(text, verdict_of("conv2d_backward", Reason.out_of_bounds))
    assert missing is not None
    assert "Put it back" not in missing.words and ": put the condition around each access" in missing.words


def test_the_report_marks_the_gap():
    """Are the lines around the deleted one marked, and not the line where the failure appears?"""
    text = hand_in("conv2d_backward", (GUARD, ""))
    gap = 1 + text[: text.index("const int lane", text.index("bias_parts_kernel("))].count("\n")
    at = 1 + text[: text.index("parts[", text.index("bias_parts_kernel("))].count("\n")
    verdict = verdict_of("conv2d_backward", Reason.out_of_bounds, "Thread (0, 0, 0) writes past the end.", at)
    shown = feedback.as_text(feedback.failure_parts(verdict, text, []))
    assert str(gap) in re.findall(r"^→ *(\d+)", shown, re.MULTILINE)
    assert str(at) not in re.findall(r"^→ *(\d+)", shown, re.MULTILINE)
    assert shown.index("The exercise has") < shown.index("The failure appears here:") < shown.index("parts[")


def test_of_a_deleted_statement_and_a_line_that_mutants_show_one_is_named():
    """Is it the line with which the cases pass, unless it is in the same place?"""
    text = hand_in("softmax", (MOVED, ""))
    (after,) = missing_lines.find_missing(text, verdict_of("softmax", Reason.wrong_values)).after
    for lead, named in (
        (Lead(after + 8, 0, "The lead.", "comparison"), ["The lead."]),
        (Lead(after, after + 1, "The lead.", "comparison"), ["The exercise has"]),
        (Lead(after + 8, 0, "The lead.", "birth"), ["The exercise has"]),
    ):
        shown = feedback.as_text(
            feedback.failure_parts(verdict_of("softmax", Reason.wrong_values), text, [], lead=lead)
        )
        assert [words for words in ("The lead.", "The exercise has") if words in shown] == named


CLEAR = "clear_kernel<<<"


def test_a_deleted_launch_is_named():
    """Is a kernel named that nothing launches, and none of which another launch is left?"""
    missing, text = find("histogram", Reason.wrong_values, (CLEAR, ""))
    (after,) = missing.after
    assert "torch::empty({bins}" in text.split("\n")[after - 1]
    assert missing.words == (
        f"The exercise has a launch of `clear_kernel` after line {after}, and it is missing in your file. Put it back: "
        "nothing else launches `clear_kernel`."
    )
    moved = ("const int64_t blocks =", "clear_kernel<<<1, 512>>>(counts.data_ptr<int>(), bins);")
    assert find("histogram", Reason.wrong_values, (CLEAR, ""), moved)[0] is None
    assert find("histogram", Reason.compile_error, (CLEAR, ""))[0] is None
