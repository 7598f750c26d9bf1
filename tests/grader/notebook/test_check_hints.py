"""The hints of grader.check: do they begin with what the failing cases show, and go further each time?"""

import re
from pathlib import Path

import pytest

from grader.diagnosis import hints
from grader.diagnosis.background import Looking
from grader.diagnosis.fault_localization import Lead
from grader.notebook import cells, check
from grader.paths import KERNELS_REF
from grader.problems import exercises, problem
from grader.reports import feedback as shown
from grader.verdict import (
    EXPLANATIONS,
    CaseResult,
    Evidence,
    Reason,
    Status,
)
from tests.grader.notebook.verdicts import SOURCE, SPECIMENS, cpu_only, plain, verdict_of  # noqa: F401 - a fixture


def test_an_empty_place_is_named():
    """Is a marked place that is still empty named by its line, and none where code follows the mark?"""
    untouched = (exercises.KERNELS_STUDENT / "groupnorm.py").read_text(encoding="utf-8")
    first, second = exercises.empty_places(untouched)
    lines = untouched.splitlines()
    half = "\n".join([*lines[:first], "    float sum = 0.0f;", *lines[first:]])

    def shown_of(text: str) -> str:
        return repr(check.Checked(verdict_of(), cells.Subject("x.py", Path("x.py"), text, "groupnorm", None), []))

    assert f"Still empty: the marked place in line {second + 1}." in shown_of(half)
    assert "Still empty" not in shown_of(half.replace(lines[second - 1], lines[second - 1] + "\n    int c = 0;"))
    assert exercises.empty_places(
        exercises.skeleton(exercises.source_of("groupnorm").read_text(encoding="utf-8"), "groupnorm")
    ) == [first, second]


def test_the_hint_for_a_notebook_is_about_the_notebook():
    """Is nothing asked about a class that the verdict did not look for, and of a file nothing about a notebook?"""
    verdict = verdict_of(Reason.no_model_new)
    verdict.stages[-1].message = "conv2d.py is a notebook. Put the code of its ModelNew into a .py file."
    given = hints.of(verdict)
    assert given[0].startswith("In the notebook, ") and not any(hint.startswith("Is a class") for hint in given)
    verdict.stages[-1].message = "conv2d.py has no class named ModelNew."
    given = hints.of(verdict)
    assert given[0].startswith("Is a class named ") and not any(hint.startswith("In the notebook") for hint in given)


def test_the_wrong_line_is_given_as_a_hint_once():
    """Is a line that says all the only hint, and the last one said to be so?"""
    lead = Lead(3, 0, "Line 3 reads one element too far.", "token")
    subject = cells.Subject("x.py", Path("x.py"), SOURCE, "groupnorm", None)
    made = check.Checked(verdict_of(), subject, [], Looking(lead))
    assert made.hint().head == "Hint 1 of 1"
    assert str(made.hint()) == str(made.hint()) == "That was the last hint."


def test_hints_go_further_each_time():
    """Does each call give the next hint, and does the display then have what was given?"""
    made = check.Checked(verdict_of(), cells.Subject("x.py", Path("x.py"), SOURCE, "groupnorm", None), [])
    given = [str(made.hint()) for _ in range(3)]
    assert len(set(given)) == 3 and all(hint in repr(made) for hint in given)
    for _ in range(50):
        last = made.hint()
    assert str(last) == "That was the last hint."


@pytest.mark.parametrize(
    "problem, reason, wrong, first",
    [
        ("scale_maxpool_clamp", Reason.wrong_values, ["some NaN"], "If only `some NaN` fails"),
        ("scale_maxpool_clamp", Reason.wrong_values, ["negative scale", "all below zero"], "If only `negative scale`"),
        ("scale_maxpool_clamp", Reason.wrong_values, ["prime sizes", "even rows"], "If only `prime sizes`"),
        ("scale_maxpool_clamp", Reason.wrong_values, ["some NaN", "one window"], "Take the first wrong"),
        (
            "ratio_interval",
            Reason.uninitialized,
            ["coarse clock"],
            "If only `coarse clock` fails: many of its ratios are equal.",
        ),
        (
            "ratio_interval",
            Reason.uninitialized,
            ["coarse clock", "two rounds"],
            "Shared memory and `torch::empty` start with",
        ),
    ],
)
def test_the_hint_for_just_these_cases_comes_first(problem, reason, wrong, first):
    """Is a hint that names the cases that fail the first one, and is it left out where others fail too?"""
    verdict = verdict_of(reason)
    verdict.problem, verdict.stages[-1].cases = problem, [CaseResult(name=name, status=Status.failed) for name in wrong]
    given = hints.of(verdict)
    assert given[0].startswith(first)
    own = hints.of_problem(problem)[reason.value]
    fitting = {text for text in own if not text.startswith("If only") or set(wrong) <= set(quoted(text))}
    assert len(given) == len(set(given)) and set(given) & set(own) == fitting


def quoted(text: str) -> list[str]:
    """Return the names in the condition with which a hint begins."""
    return re.findall("`([^`]+)`", text.partition(":")[0])


def square(sizes: dict) -> bool:
    return sizes.get("height", 128) == sizes.get("width", 128)


def single(sizes: dict) -> bool:
    return sizes.get("batch_size", 128) == 1


@pytest.mark.parametrize(
    "exercise, begins, property_of",
    [
        ("conv2d", "If `one pixel`, `one of everything` and `power of two` pass: their images are square.", square),
        ("conv2d", "If `one pixel`, `many channels` and `batch 1` pass: they have a single image.", single),
        ("conv2d_backward", "If `one pixel`, `one of everything` and `power of two` pass: their", square),
        ("conv2d_backward", "If `one pixel`, `many channels` and `batch 1` pass: they have", single),
        ("im2col_conv_backward", "If `one pixel`, `many channels` and `batch 1` pass: they have", single),
        ("im2col_conv", "If `power of two` passes: its matrices", None),
        ("logsumexp", "If only `far below zero` fails", None),
        ("groupnorm", "If only `large mean` fails", None),
    ],
)
def test_a_condition_on_cases_holds_where_its_hint_is_shown(exercise, begins, property_of):
    """Whichever single case fails, or passes alone, is such a hint shown just where the verdict agrees with it, and do
    the cases that it names have what it says of them?
    """
    own = hints.of_problem(exercise)
    ((reason, text),) = [(key, text) for key, texts in own.items() for text in texts if text.startswith(begins)]
    cases = problem.read(KERNELS_REF / exercises.problem_of(exercise) / "model.py").cases()
    if property_of:
        assert all(property_of(case.set) for case in cases if case.name in quoted(text))
    names = [case.name for case in cases]
    shown = []
    for wrong in [{name} for name in names] + [set(names) - {name} for name in names] + [set(names)]:
        verdict = verdict_of(Reason(reason))
        verdict.problem = exercise
        verdict.stages[-1].cases = [
            CaseResult(name=name, status=Status.failed if name in wrong else Status.passed) for name in names
        ]
        fits = wrong <= set(quoted(text)) if text.startswith("If only") else not wrong & set(quoted(text))
        shown.append(text in hints.of(verdict))
        assert shown[-1] is fits, wrong
    assert any(shown) and not all(shown)


def test_the_known_cases_decide():
    """Where one case alone was checked, is no hint shown that rests on others? And one on some cases only where some
    pass?
    """
    verdict = verdict_of(Reason.wrong_values)
    verdict.problem = "conv2d"
    for cases, expected in (
        ([("prime sizes", Status.failed)], (False, False)),
        ([("prime sizes", Status.failed), ("power of two", Status.skipped)], (False, False)),
        ([("prime sizes", Status.failed), ("batch 1", Status.passed)], (False, True)),
        ([("prime sizes", Status.failed), ("one of everything", Status.passed)], (True, True)),
        ([], (False, False)),
    ):
        verdict.stages[-1].cases = [CaseResult(name=name, status=status) for name, status in cases]
        given = hints.of(verdict)
        one = any(text.startswith("If `one of everything` passes: ") for text in given)
        assert (one, any(text.startswith("If only some cases") for text in given)) == expected, cases


def test_a_hint_on_a_gradient_is_for_that_one():
    """Is what is said of one gradient shown where that one is wrong, and for no other?"""
    verdict = verdict_of(Reason.wrong_gradient)
    verdict.problem = "scale_maxpool_clamp_backward"
    for name in ("x", "scale"):
        verdict.stages[-1].evidence = [Evidence(case="prime sizes", gradient=name)]
        about = [quoted(text) for text in hints.of(verdict) if text.startswith("If the gradient of")]
        assert about == [[name]]


# Conditions that are not on cases or gradients: on elements of one result.
ON_ELEMENTS = (
    "If nearly all are wrong, suspect the formula.",
    "If all values are wrong, they come from shared memory that was read too early; if only the last ones are,",
)
CONDITION = re.compile(
    r"\b(?:[Ii]f(?! that is right| these are right)|[Dd]oes only|[Dd]o only)\b[^.:?;]*"
    r"\b(?:fails?|pass(?:es)?|(?:is|are) (?:wrong|right))\b"
)


@pytest.mark.parametrize("name", [*exercises.exercises(), ""])
def test_a_condition_in_a_hint_is_one_that_is_tested(name):
    """Does each hint with a condition on what fails or passes begin with it, in words by which hints.of tests it?"""
    texts = hints.of_problem(name) if name else hints._read(hints.GENERAL)
    for text in (text for key, texts in texts.items() if key != "passed" for text in texts):
        for words in ON_ELEMENTS:
            text = text.replace(words, "")
        forms = [form.match(text) for form in (hints.CASES, hints.PASSING, hints.SOME, hints.GRADIENT)]
        rest = text[max((match.end() for match in forms if match), default=0) :]
        assert not CONDITION.search(rest), rest


@pytest.mark.parametrize("name", exercises.exercises())
def test_cases_in_hints_are_real(name):
    """Is each case that a hint waits for one of the problem's, and does no hint mistype the words by which it waits?"""
    read = problem.read(KERNELS_REF / exercises.problem_of(name) / "model.py")
    every, graded = {case.name for case in read.cases()}, {case.name for case in read.cases() if case.gradient}
    for key, text in ((key, text) for key, texts in hints.of_problem(name).items() for text in texts):
        named_cases = hints.CASES.match(text) or hints.PASSING.match(text)
        cases = graded if key == "wrong_gradient" else every
        assert not named_cases or hints.find_names(named_cases) <= cases, text
        named_gradients = hints.GRADIENT.match(text)
        if named_gradients:
            one = read.instantiate(read.cases()[0], seed=1)
            inputs, parameters = one.differentiable()
            assert hints.find_names(named_gradients) <= {*parameters, *(one.names()[n] for n in inputs)}, text
        assert named_cases or named_gradients or not re.match(r"If (?:only )?(?:the case )?`[^`]+`", text), text


@pytest.mark.parametrize(
    "message, shown, hidden",
    [
        (
            (
                "reads element 1 of `a`, which thread (1, 0, 0) of the same block writes in line 3 without a barrier "
                "in between."
            ),
            "One block:",
            "Two blocks:",
        ),
        (
            (
                "reads element 1 of `a`, which thread (1, 0, 0) of block (1, 0, 0) writes in line 3. Blocks run in "
                "any order."
            ),
            "Two blocks:",
            "One block:",
        ),
    ],
)
def test_hints_are_for_the_threads_that_met(message, shown, hidden):
    """Is the hint on two blocks not given for threads of one, and the other way round?"""
    given = hints.of(verdict_of(Reason.race, f"Thread (0, 0, 0) of block (0, 0, 0) {message}"))
    assert any(hint.startswith(shown) for hint in given) and not any(hint.startswith(hidden) for hint in given)


def test_hints_that_may_be_left_out():
    """Is there a hint that begins with each of the words by which one is left out?"""
    general = hints._read(hints.GENERAL)
    for reason, begins, _ in hints.ELSEWHERE:
        assert any(hint.startswith(begins) for hint in general[reason])


@pytest.mark.slow
@cpu_only
def test_a_check_names_the_line():
    """For wrong values, does the check itself mark the wrong line, and no other, with its evidence? Is the line kept
    with the verdict, and does no vaguer hint follow it?
    """
    made = check.check(SPECIMENS / "conv2d_last_row_not_written.py", problem="conv2d")
    assert "line 16" in made.lead.words and made.lead.words in repr(made) and "return;" not in made.lead.words
    assert re.findall(r"^→.*$", repr(made), re.MULTILINE) == ["→ 16 │     if (oy >= OH - 1) return;"]
    assert hints.of(made.verdict) and not made.has_more_hints and ".hint()" not in repr(made)
    given = made.hint()
    assert str(given) == made.lead.words and given.head == "Hint 1 of 1"
    assert str(made.hint()) == str(made.hint()) == "That was the last hint."
    again = check.check(SPECIMENS / "conv2d_last_row_not_written.py", problem="conv2d")
    assert (
        again.lead is made.lead
        and "Hint " not in repr(again)
        and "save it first" in repr(again)
        and "save it first" not in repr(made)
    )


@pytest.mark.slow
@cpu_only
def test_a_late_line_is_the_first_hint(monkeypatch):
    """Where the search takes longer than a check should, does the check say so, and does the first hint wait for the
    line?
    """
    monkeypatch.setattr(check, "LOCALIZATION_TIMEOUT_S", 0.0)
    monkeypatch.setattr(shown, "plain", lambda: False)
    made = check.check(SPECIMENS / "conv2d_last_row_not_written.py", problem="conv2d", seed=7)
    assert made.lead is not None or "still running" in repr(made)
    assert "line 16" in str(made.hint()) or made.lead is not None
    assert made.lead is not None and "→ 16 │" in repr(made) and "still running" not in repr(made)
    monkeypatch.setattr(check, "_last_search", check.Looking())


@pytest.mark.parametrize("name", exercises.exercises())
def test_hints_of_every_problem(name):
    """Has each problem steps, the first of which gives no code of the solution away, and a text for a pass, and are its
    reasons real?
    """
    own = hints.of_problem(name)
    assert len(own["steps"]) >= 4 and set(own) - {"steps", "passed"} <= {reason.value for reason in Reason}
    assert len(own["passed"]) == 1 and hints.explain_pass(name) == own["passed"][0]
    solution = exercises.source_of(name).read_text(encoding="utf-8")
    code = {line.split("//")[0].strip() for line in cut(solution)}
    assert code and not any(line in own["steps"][0] for line in code if len(line) > 12)
    everything = [text for texts in own.values() for text in texts]
    assert len(everything) == len(set(everything))


def cut(solution: str) -> list[str]:
    """The lines that the exercise leaves out, or has otherwise."""
    inside, found = False, []
    for line in solution.splitlines():
        opens = bool(exercises.OPEN.match(line) or exercises.DEFECT.match(line))
        inside = (inside or opens) and not exercises.CLOSE.match(line)
        found += [line] if inside and not opens else []
    return found


def test_hints_for_every_failure():
    """Has each reason for which a submission can fail a general hint, or an explanation that is all there is to say?"""
    without = {
        *(
            "empty_file",
            "unreadable",
            "not_attempted",
            "unsupported_cuda",
            "no_compiler",
            "build_timeout",
            "wrong_device",
        ),
        *("no_gpu", "inconclusive", "not_reached", "interrupted", "no_problem", "grader_error"),
    }
    assert {reason.value for reason in EXPLANATIONS} - set(hints._read(hints.GENERAL)) == without


@pytest.mark.slow
@cpu_only
def test_hints_follow_the_line_of_the_first_infinity():
    """Where only the line is known at which infinity appears, do the problem's hints still say what to change?"""
    made = check.check(SPECIMENS / "logsumexp_infinity.py", problem="logsumexp")
    assert made.lead.kind == "birth" and made.has_more_hints and ".hint()" in repr(made)
    given = [str(made.hint()) for _ in hints.of(made.verdict)]
    assert given == hints.of(made.verdict) and str(made.hint()) == "That was the last hint."
