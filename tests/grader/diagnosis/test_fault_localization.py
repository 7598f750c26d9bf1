"""Is the wrong line of a kernel named, with what is wrong and the evidence, and nothing where nothing is wrong?"""

import re
import types
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.diagnosis import fault_localization, leads, mutant_worker, mutants, operator_mutants
from grader.judging.grading import grade
from grader.paths import KERNELS_REF
from grader.verdict import Evidence, Reason, Stage, StageName, Status

SPECIMENS = Path(__file__).resolve().parents[2] / "specimens"
SEED = 20


def lead_of(path: Path, problem: str):
    """The verdict, the lead, the submission's lines."""
    text = path.read_text(encoding="utf-8")
    model = KERNELS_REF / problem / "model.py"
    verdict = grade(path, problem=model, seed=SEED, device="cpu")
    return verdict, fault_localization.lead(path, text, model, verdict), text.splitlines()


@pytest.mark.skipif(torch.cuda.is_available(), reason="graded on the CPU, as a notebook without a GPU does")
@pytest.mark.slow
@pytest.mark.parametrize(
    "name, problem, line, until, says",
    [
        (
            "conv2d_off_by_one",
            "conv2d",
            "if (i > N",
            "",
            "is false where `i` is `N * OC * OH * OW`, and must be true there. Write `i >= N * OC * OH * OW`",
        ),  # it crashes in another line
        (
            "conv2d_bias_forgotten",
            "conv2d",
            "y[i] = sum",
            "",
            "The kernel never uses its parameter `bias`. Add `bias[oc]` to `sum` in line",
        ),
        (
            "conv2d_swapped_rows_and_columns",
            "conv2d",
            "int oy = i % OH",
            "int ox = i / OH",
            "take `i` apart in the wrong order: `ox` must",
        ),
        ("logsumexp_index_overflow", "logsumexp", "unsigned short", "", "The type of `index` in line"),
        (
            "logsumexp_infinity",
            "logsumexp",
            "sum += expf(",
            "",
            "overflows: in float32 it is infinite for an argument above 88. Subtract the largest",
        ),
        (
            "bias_scale_sigmoid_backward_last_image",
            "bias_scale_sigmoid",
            "b = s = 0.0f",
            "",
            "resets `b` and `s` in every pass of the loop over `n`",
        ),
        (
            "groupnorm_backward_mean_over_batch",
            "groupnorm",
            "gweight[c] = w / N",
            "",
            "divides `w` by `N`: that is a mean, and the sum is expected. Each value is 0.333333 times",
        ),
        (
            "scale_maxpool_clamp_scale_after_max",
            "scale_maxpool_clamp",
            "best *= scale",
            "",
            "changes `best` after the loop that compares the values",
        ),
        (
            "im2col_conv_missing_barrier",
            "im2col_conv",
            "b[ty][tx] =",
            "for (int j = 0",
            "Put a `__syncthreads()` there",
        ),
    ],
)
def test_line(name, problem, line, until, says):
    """Is the line, or the place between two, named with its evidence?"""
    _, lead, lines = lead_of(SPECIMENS / f"{name}.py", problem)
    assert line in lines[lead.line - 1] and says in lead.words
    assert until in lines[lead.until - 1] if until else lead.until == 0


@pytest.mark.slow
def test_nothing_to_look_for(tmp_path):
    """Is nothing named where a kernel is right, and nothing built for a compile error?"""
    path = tmp_path / "logsumexp.py"
    path.write_text((KERNELS_REF / "logsumexp" / "solution.py").read_text(encoding="utf-8"), encoding="utf-8")
    verdict, lead, _ = lead_of(path, "logsumexp")
    assert verdict.first_problem is None and lead is None
    verdict.stages[1] = Stage(name=StageName.build, status=Status.failed, reason=Reason.compile_error)
    assert not fault_localization.wanted(verdict)


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="graded on the CPU, as a notebook without a GPU does")
def test_no_mutant_passes(tmp_path):
    """Is no line blamed where the whole formula is wrong?"""
    path = tmp_path / "logsumexp.py"
    text = (SPECIMENS / "logsumexp_infinity.py").read_text(encoding="utf-8")
    path.write_text(
        text.replace("sum += expf(x[(n * C + c) * pixels + p])", "sum += 3.7f * c").replace(
            "logf(sum)", "sum * 1.1f + p * 0.3f"
        ),
        encoding="utf-8",
    )
    verdict, lead, _ = lead_of(path, "logsumexp")
    assert verdict.reason is Reason.wrong_values and lead is None


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="graded on the CPU, as a notebook without a GPU does")
def test_a_late_mutant_is_waited_for(monkeypatch):
    """Is the right mutant found, and said to correct all cases, where each slow launch reaches the time limit, as on a
    machine with much else to do?
    """
    monkeypatch.setattr(mutant_worker, "KERNEL_SECONDS", (0.001, 0.001))
    monkeypatch.setattr(fault_localization, "SLOW_SECONDS", 1.0)
    _, lead, _ = lead_of(SPECIMENS / "conv2d_swapped_rows_and_columns.py", "conv2d")
    assert lead is not None and lead.kind == "order" and "makes the failing cases pass" in lead.words


def candidate(kind: str, what: str = "", needed: str = "") -> leads.Candidate:
    """Return a candidate at line 5, and line 6 if something is missing between two lines."""
    return leads.Candidate(mutants.Mutant(1, 5, kind, what=what, needed=needed), 5, 6)


@pytest.mark.parametrize(
    "good, sentence",
    [
        (
            [candidate("operator", "c / n", "c")],
            "Line 5 divides `c` by `n`, and the expected values are without that. Use `c` alone.",
        ),
        ([candidate("operator", "c / n", "c % n")], "Line 5 computes `c / n` where it needs `c % n`."),
        ([candidate("operator", "n / 8", operator_mutants.ROUNDED_UP)], "is left out. Round it up."),
        ([candidate("sign", "v > 0.0f", "v != 0.0f")], "`v > 0.0f` in line 5 takes values below 0 for 0, and they are"),
        (
            [candidate("operator", "n / 8"), candidate("operator", "n / 8", operator_mutants.ROUNDED_UP)],
            "`n / 8` in line 5 rounds down: what is left over by the division is left out. Round it up.",
        ),
        ([candidate("term", "H - K", operator_mutants.ONE_MORE)], "`H - K` in line 5 is one too small: the last"),
        ([candidate("variable", "w", "c")], "Line 5 uses `w` where it needs `c`."),
        ([candidate("comparison", "v < best", ">")], "tests `v < best` the wrong way round: it needs `>` between"),
        ([candidate("outer index", "x", "n * C + c")], "leaves out `n`. Use `(n * C + c)` in place of `c`."),
        (
            [candidate("unused", "bias", "sum + bias[c]")],
            "never uses its parameter `bias`. Add `bias[c]` to `sum` in line 5.",
        ),
        ([candidate("unused", "s", "a + b * s")], "Multiply `a + b` by `s` in line 5."),
        ([candidate("unused", "top", "v - top")], "Subtract `top` from `v` in line 5."),
        ([candidate("unused", "s", f"{'x + ' * 20}x * s")], "Multiply the value by `s` in line 5."),
        (
            [candidate("unused", "bias", "sum + bias[c]"), candidate("unused", "bias", "sum + bias[n]")],
            "never uses its parameter `bias`. It is missing in line 5.",
        ),
        (
            [candidate("argument", "expf", "- top")],
            "The argument of `expf` in line 5 lacks a term or a factor. Subtract",
        ),
        ([candidate("barrier")], "between line 5 and line 6. Put a `__syncthreads()` there."),
        (
            [candidate("condition", "n > 4"), candidate("statement", "v = 0")],
            "Line 5 runs `v = 0` where `n > 4`, and must not run it there.",
        ),
        ([candidate("statement", "a[{}] = b;")], "Line 5 makes the result wrong: `a[{}] = b;`."),
    ],
)
def test_a_sentence_names_what_the_mutants_agree_on(good, sentence):
    """Is what the line needs named where all mutants agree on it, and left out where two of them do not?"""
    assert sentence in leads.describe_mistake(good[0], good, 5, 6)


@pytest.mark.parametrize(
    "good, code, sentence",
    [
        (
            [candidate("term", "last - first", operator_mutants.ONE_MORE)],
            "int seen = last - first;\nfor (int j = 0; j < seen; ++j) sum += x[j];",
            "is one too small: the loop in line 6, which runs to `seen`, leaves out its last pass, and makes none "
            "where `last - first` is 0.",
        ),
        (
            [candidate("operator", "n / 2", "n"), candidate("operator", "n / 2")],
            "for (int d = 1; d < n / 2; d *= 2) {",
            "The loop in line 5 ends too early: at `n / 2`, its last passes are missing. Let it run to `n`.",
        ),
        (
            [candidate("operator", "c / size", "c")],
            "int g = c / size;\ny[i] = x[i] * gamma[g] + beta[g];",
            "so that several values of `c` get the same result and share one element of `gamma` and `beta`.",
        ),
        (
            [
                candidate("term", "v + eps", "v"),
                leads.Candidate(mutants.Mutant(2, 9, "term", 0, 0, "s + eps", "s"), 9, 0),
            ],
            "float variance = v + eps;",
            "Line 5 and line 9 both add `eps`. Once is expected.",
        ),
        (
            [candidate("operator", "w / N", "w")],
            "w += gy[i]; gweight[c] = w / N;",
            "divides `w` by `N`: that is a mean, and the sum is expected.",
        ),
        (
            [candidate("too early", "top")],
            "float shrink = expf(top - score);\ntop = score;",
            "Line 6 overwrites `top` before line 5 uses its old value. There `top - score` is always 0, and "
            "`expf(top - score)` is always 1. Move line 6 below line 5.",
        ),
        ([candidate("sum factor", "dot", "y[c]")], "dot += gy[c];", "terms to `dot` that lack the factor `y[c]`"),
        ([candidate("unscaled", "sum", "shrink")], "acc *= shrink;", "Multiply `sum` by `shrink` as well."),
        (
            [candidate("tile start", "query", "query - first")],
            "int seen = min(count, query + 1);",
            "inside the loop over `first` the elements are counted from `first` on. Use `query - first`.",
        ),
        (
            [leads.Candidate(mutants.Mutant(1, 6, "guard", what="i < n", needed="v"), 6, 5)],
            "float v = i < n ? x[i] : 0;\natomicAdd(&bins[find(v)], 1);",
            "Where `i < n` is false there is no element: `v` is 0 there (line 5), and line 6 counts it like an element."
            " Let line 6 run only where `i < n`.",
        ),
        (
            [candidate("own value", "upto", "own")],
            "y[i] = upto;",
            "Line 5 stores a sum that includes `own`, from which `upto` starts.",
        ),
        ([candidate("index", "x", operator_mutants.ONE_LESS)], "s += x[k];", "comes from the element after the one"),
        (
            [leads.Candidate(mutants.Mutant(1, 7, "index", what="y", needed=operator_mutants.ONE_LESS), 7, 0)],
            "int place = first[d] + rank;\nplace += lower;\ny[place] = x[i];",
            "The index of `y` in line 7 is one too large: each value goes to the element after its own. Check how "
            "`place` is computed in line 5 and line 6.",
        ),
        (
            [candidate("index", "bins", operator_mutants.ONE_MORE)],
            "atomicAdd(&bins[find(x[i])], 1);",
            "is one too small: each value goes to the element before its own.",
        ),
        (
            [candidate("scale", "sum", "expf(top - new_top)")],
            "sum = sum + expf(x[c] - new_top);",
            "`sum` holds so far is relative to the maximum `top`, and line 5 adds terms relative to `new_top`",
        ),
    ],
)
def test_a_sentence_says_what_the_line_does(good, code, sentence):
    """Is it said what follows from the line as it is, and not only what the mutant that passes computes?"""
    line, until = (good[0].line, good[0].until) if good[0].line != 5 else (5, 6)
    assert sentence in leads.describe_mistake(good[0], good, line, until, ["", "", "", "", *code.split("\n")])


def test_two_lines_that_disagree_are_both_marked():
    """Are both lines marked where swapping two names in either helps, and is an edit of another kind not offered?"""
    good = [
        leads.Candidate(mutants.Mutant(1, 5, "swapped", what="ky", needed="kx"), 5, 0, passed=1),
        leads.Candidate(mutants.Mutant(2, 7, "swapped", what="ky", needed="kx"), 7, 0, passed=1),
        leads.Candidate(mutants.Mutant(3, 9, "number", what="256"), 9, 0, passed=1),
    ]
    verdict = grade(SPECIMENS / "groupnorm_empty_file.py", problem=KERNELS_REF / "groupnorm" / "model.py")
    found = leads.make_lead(good, 1, verdict)
    assert (found.line, found.until, found.also) == (5, 7, (7,))
    assert "`ky` and `kx` are swapped" in found.words and "line 7 instead" in found.words
    assert "line 9" not in found.words


def test_of_two_swapped_indices_the_store_is_named_first():
    """Is the line that stores the result named first, where the result lies in memory with rows and columns swapped?"""
    good = [
        leads.Candidate(mutants.Mutant(1, 1, "swapped", what="ky", needed="kx"), 1, 0, passed=1),
        leads.Candidate(mutants.Mutant(2, 2, "swapped", what="ky", needed="kx"), 2, 0, passed=1),
    ]
    verdict = grade(SPECIMENS / "groupnorm_empty_file.py", problem=KERNELS_REF / "groupnorm" / "model.py")
    verdict.stages[0].evidence = [Evidence(pattern="rows and columns are swapped")]
    found = leads.make_lead(good, 1, verdict, "sum += x[ky * W + kx];\nw[kx * K + ky] = sum;")
    assert (found.line, found.until) == (2, 1) and "line 1 instead" in found.words


def test_a_loop_that_ends_too_early_is_told_before_a_comparison():
    """Is the halved bound named where a larger bound and another comparison both help?"""
    good = [
        leads.Candidate(mutants.Mutant(1, 1, "comparison", what="d < n / 2"), 1, 0, passed=1),
        leads.Candidate(mutants.Mutant(2, 1, "operator", what="n / 2", needed="n"), 1, 0, passed=1),
    ]
    verdict = grade(SPECIMENS / "groupnorm_empty_file.py", problem=KERNELS_REF / "groupnorm" / "model.py")
    found = leads.make_lead(good, 1, verdict, "for (int d = 1; d < n / 2; d *= 2) {")
    assert found.words.startswith("The loop in line 1 ends too early: at `n / 2`, its last passes are missing.")


@pytest.mark.parametrize("needed, blamed", [("i", False), ("digit", True)])
def test_a_lane_that_is_matched_with_itself_alone_hides_the_mistake(needed, blamed):
    """Is no line blamed in which an index of threads in place of a bin lets each lane count for itself?"""
    verdict = grade(SPECIMENS / "groupnorm_empty_file.py", problem=KERNELS_REF / "groupnorm" / "model.py")
    good = [leads.Candidate(mutants.Mutant(1, 3, "variable", what="b", needed=needed), 3, 0, passed=1)]
    source = "int i = blockIdx.x * 256 + threadIdx.x;\nint digit = b >> 4;\nint peers = __match_any_sync(~0u, b);"
    assert (leads.make_lead(good, 1, verdict, source) is not None) is blamed


def test_a_barrier_lies_between_the_accesses_that_race():
    """Is no place in front of both accesses named, where a barrier changes the order of threads on a CPU alone?"""
    verdict = grade(SPECIMENS / "groupnorm_empty_file.py", problem=KERNELS_REF / "groupnorm" / "model.py")
    message = "A reads `cnt`, which B writes in line 60 without a barrier in between. "
    message += "Put a `__syncthreads()` between the two."
    race = Stage(name=StageName.safe, status=Status.failed, reason=Reason.race, message=message)
    race.evidence = [Evidence(line=51)]
    verdict.stages.append(race)
    good = [
        leads.Candidate(mutants.Mutant(1, line, "barrier", until=until, depth=1), line, until, passed=1)
        for line, until in ((49, 50), (50, 51), (51, 53), (53, 54))
    ]
    found = leads.make_lead(good, 1, verdict)
    assert (found.line, found.until) == (51, 54)
    assert leads.make_lead(good[:2], 1, verdict) is not None


def test_dropping_what_exp_subtracts_is_believed_last():
    """Is another mutant preferred to one that drops the maximum in the argument of exp, which small values need not?"""
    good = [
        leads.Candidate(mutants.Mutant(1, 5, "term", what="score - top", needed="score"), 5, 0, passed=2),
        leads.Candidate(mutants.Mutant(2, 4, "too early", what="top"), 4, 3, passed=2),
    ]
    verdict = grade(SPECIMENS / "groupnorm_empty_file.py", problem=KERNELS_REF / "groupnorm" / "model.py")
    source = "\n\ntop = score;\nfloat shrink = expf(top - score);\nfloat weight = expf(score - top);"
    found = leads.make_lead(good, 2, verdict, source)
    assert (found.line, found.until, found.kind) == (4, 3, "too early")
    assert leads.make_lead(good, 2, verdict).line == 5


@pytest.mark.parametrize(
    "seconds, chosen",
    [((0.01, 0.02, 0.3), ["a", "b"]), ((0.3, 0.02, 0.2), ["b", "c"]), ((0.9, 0.02, 0.8), ["b"])],
)
def test_of_slow_failing_cases_the_fastest_is_searched(monkeypatch, seconds, chosen):
    """Is one slow failing case searched where no failing case is fast, and none that is far too slow?"""
    clock = iter([moment for run in seconds for moment in (0.0, run)])
    monkeypatch.setattr(fault_localization.time, "monotonic", lambda: next(clock))
    cases = [types.SimpleNamespace(name=name, fails=name != "b", seconds=0.0) for name in "abc"]
    search: Any = object.__new__(fault_localization.Search)
    search.worker = types.SimpleNamespace(case=None, construct=lambda case: setattr(search.worker, "case", case))
    search.worker.is_right = lambda number: not search.worker.case.fails
    assert sorted(case.name for case in search._choose_fast(cases)) == chosen


def test_mutants_that_crash_do_not_end_the_search():
    """Is the right mutant found behind those of a line that crash the worker, of which only the first is tried?"""
    tried = []

    def is_right(number: int, patient: bool = False) -> bool:
        tried.append(number)
        search.worker.deaths += number < 9
        return number == 9

    search: Any = object.__new__(fault_localization.Search)
    search.worker = types.SimpleNamespace(construct=lambda case: None, is_right=is_right, deaths=0, late=set())
    made = [mutants.Mutant(number, 5 if number < 9 else 6, "comparison") for number in range(1, 10)]
    search.candidates = {one.number: leads.Candidate(one, one.line, 0) for one in made}
    search.source = types.SimpleNamespace(text="")
    found = search._find_good(types.SimpleNamespace(gradients=None))
    assert [one.mutant.number for one in found] == [9] and tried == [1, 9]


@pytest.mark.parametrize("often, kept", [(0, [1, 2]), (3, [2]), (8, [])])
def test_mutants_that_pass_by_luck_are_left_out(often, kept):
    """Is a mutant that passes in some runs alone left out where the kernel itself passes in some, and all where it
    passes in most?
    """
    runs = {0: [True] * often + [False] * 10, 1: [True, True, False], 2: [True] * 10}
    search: Any = object.__new__(fault_localization.Search)
    search.worker = types.SimpleNamespace(construct=lambda case: None)
    search.worker.is_right = lambda number, patient=False: runs[number].pop(0)
    good = [leads.Candidate(mutants.Mutant(number, number, "variable"), number, 0, passed=1) for number in (1, 2)]
    left = search._leave_out_lucky(types.SimpleNamespace(seconds=0.01), good)
    assert [one.mutant.number for one in left] == kept


def test_every_kind_has_words():
    """Has each kind of mutant its sentences, with the line in each and no name needed in the last one?

    Those of kinds that need an exact evidence name what is needed.
    """
    assert set(leads.SENTENCES) == set(mutants.KINDS)
    assert all("{line}" in sentence for sentences in leads.SENTENCES.values() for sentence in sentences)
    free = {kind: one[-1] for kind, one in leads.SENTENCES.items() if kind not in leads.EXACT}
    assert all(set(re.findall(r"{(\w+)}", last)) <= {"line", "until"} for last in free.values())
    assert all("{needed}" in leads.SENTENCES[kind][-1] for kind in leads.EXACT)


def test_what_two_edits_mend_in_two_ways_is_not_blamed():
    """Is a variable for which two others do left out, and another kind's candidate taken in its place?"""
    vague = [candidate("variable", "w", "c"), candidate("variable", "w", "j")]
    assert not leads.describe_mistake(vague[0], vague, 5, 6)
    clear = leads.Candidate(mutants.Mutant(9, 7, "operator", what="i / C", needed="i % C"), 7, 0, 1)
    verdict = grade(SPECIMENS / "groupnorm_empty_file.py", problem=KERNELS_REF / "groupnorm" / "model.py")
    lead = leads.make_lead([*vague, clear], 1, verdict)
    assert lead is not None and lead.line == 7 and "where it needs `i % C`" in lead.words


@pytest.mark.parametrize(
    "tested, lines, named",
    [
        (4, (5,), True),
        (4, (5, 5), True),
        (4, (5, 7), False),  # two places that have nothing to do with each other
        (5, (5,), False),  # most cases still fail
        (2, (5, 7), True),  # all cases pass
    ],
)
def test_a_mutant_that_mends_some_cases_needs_more_evidence(tested, lines, named):
    """Is a line with whose mutant only some cases pass left out where they are few, or other lines do as well?"""
    verdict = grade(SPECIMENS / "groupnorm_empty_file.py", problem=KERNELS_REF / "groupnorm" / "model.py")
    search: Any = object.__new__(fault_localization.Search)
    search.source, search.birth, search.tested = types.SimpleNamespace(text=""), None, tested
    search.good = [
        leads.Candidate(mutants.Mutant(n, line, "variable", what="w", needed="c"), line, 0, passed=2)
        for n, line in enumerate(lines)
    ]
    assert (search.best_candidate(verdict) is not None) is named


def test_a_condition_that_never_holds_is_no_cure():
    """Is a statement named that must not run, where another variable in its condition keeps it from running?"""
    good = [
        leads.Candidate(mutants.Mutant(n, 5, kind, what=what, needed=needed), 5, 0, passed=1)
        for n, (kind, what, needed) in enumerate(
            [("variable", "a", "b"), ("number", "15", "16"), ("condition", "a == 15", ""), ("statement", "v = 0", "")]
        )
    ]
    verdict = grade(SPECIMENS / "groupnorm_empty_file.py", problem=KERNELS_REF / "groupnorm" / "model.py")
    lead = leads.make_lead(good, 1, verdict)
    assert lead is not None and lead.words.startswith("Line 5 runs `v = 0` where `a == 15`, and must not run it there.")
    lead = leads.make_lead(good[:3], 1, verdict)
    assert lead is not None and "uses `a` where it needs `b`" in lead.words


def test_a_brace_that_closes_own_lines_is_not_given():
    """Is a } taken for given after given lines, and not after lines of the student's?"""
    text = "if (a) {\n    b();\n}\n\nif (c) {\n    d();\n\n}\ne();"
    assert fault_localization.leave_own_braces(text, {1, 3, 5, 6, 8, 9}) == {1, 5, 6, 8, 9}
