"""Do `grader check`, `hint`, `profile` and `compare` show in a terminal what a notebook shows?"""

import functools
import os
import re
import shutil
import time

import msgspec
import pytest

from grader.cli import parts, statuses
from grader.diagnosis import hints
from grader.diagnosis.background import Looking
from grader.diagnosis.fault_localization import Lead
from grader.notebook import cells, check, kept_checks
from grader.notebook import profile as profiles
from grader.paths import ROOT
from grader.problems import exercises, problem
from grader.reports import feedback, terminal
from grader.reports.feedback import Code, Words
from grader.source import contract
from grader.verdict import Outcome, Prediction, Reason, Stage, StageName, Status
from grader.verdict.schema import PredictedLaunch
from tests.grader.cli.commands import run
from tests.grader.notebook.verdicts import SOURCE, SPECIMENS, cpu_only, plain, verdict_of  # noqa: F401 - a fixture

WRONG = SPECIMENS / "conv2d_last_row_not_written.py"


@pytest.fixture(autouse=True)
def checks(tmp_path, monkeypatch):
    """The folder of kept checks: another one for each test, and a notebook's memory that is empty."""
    monkeypatch.setattr(kept_checks, "folder", lambda: tmp_path / "checks")
    for memory in (check._kept, check._given):
        memory.clear()
    return tmp_path / "checks"


@pytest.fixture
def graded(monkeypatch):
    """The names of the kernels that are graded; each fails with wrong values in two cases and the line 3."""
    names = []

    def fail(subject, case, seed, gpu, drawn=True):
        names.append(subject.name)
        return verdict_of(), [], Looking()

    monkeypatch.setattr(check, "run", fail)
    return names


def predicted_on(gpu: str) -> Prediction:
    return Prediction(
        gpu=gpu,
        sizes=[[1]],
        ms=1.0,
        low=0.5,
        high=2.0,
        limit="DRAM bytes",
        bound_ms=0.5,
        launches=[PredictedLaunch(kernel="k", grid=[1], block=[1], times=1, ms=1.0, limit="DRAM bytes")],
    )


def written(tmp_path, text: str = SOURCE):
    path = tmp_path / "groupnorm.py"
    path.write_text(text)
    return path


def test_the_terminal_says_what_the_notebook_says():
    """Has `grader check` each line that grader.check has, with its own way to the next hint?"""
    result = run("check", "groupnorm")
    told = repr(check.check("groupnorm"))
    assert result.exit_code == statuses.NOT_ATTEMPTED and "not attempted" in told and "failed" not in told
    assert result.stdout.splitlines()[:-1] == told.splitlines()[:-1]
    assert result.stdout.splitlines()[-1].startswith("`grader hint groupnorm` shows a hint")


def test_hints_advance_with_each_call(graded, tmp_path):
    """Does each hint, and each check of an unchanged file, give one more, and is the kernel graded only once?"""
    path, expected = written(tmp_path), hints.of(verdict_of())
    first = run("check", path)
    assert first.exit_code == statuses.FAILED and not any(hint in first.stdout for hint in expected)
    for number, hint in enumerate(expected[:2], 1):
        result = run("hint", path)
        assert result.stdout.splitlines() == [f"Hint {number} of {len(expected)}", *hint.splitlines()]
    again = run("check", path)
    assert all(hint in again.stdout for hint in expected[:3]) and expected[3] not in again.stdout
    assert "has not changed since the last check" in again.stdout
    assert "\n".join(first.stdout.splitlines()[:-1]) in again.stdout
    assert graded == ["groupnorm.py"]
    for _ in expected:
        last = run("hint", path)
    assert last.stdout == "That was the last hint.\n"


def test_each_check_predicts_for_the_gpu_that_it_names(monkeypatch, tmp_path):
    """Is a kernel that passed graded again for another GPU, and again without one, and not for the same one?"""
    asked = []

    def succeed(subject, case, seed, gpu, drawn=True):
        asked.append(gpu)
        timed = Stage(name=StageName.fast, status=Status.skipped, reason=Reason.no_gpu, prediction=predicted_on(gpu))
        return msgspec.structs.replace(verdict_of(), outcome=Outcome.passed, stages=[timed], sandbox=""), [], Looking()

    monkeypatch.setattr(check, "run", succeed)
    path = written(tmp_path)
    for options, gpu in (("--gpu", "T4"), "T4"), ((), "H200"), ((), "H200"), (("--gpu", "A100"), "A100"):
        result = run("check", path, *options)
        assert result.exit_code == statuses.PASSED and f"Predicted on the {gpu}:" in result.stdout
    assert run("hint", path).stdout == "The kernel passed, so there is no hint.\n"
    assert "Predicted on the A100:" in run("check", path, "--gpu", "A100").stdout
    assert asked == ["T4", "H200", "A100"]


def test_a_kernel_that_fails_is_not_graded_again_for_another_gpu(graded, tmp_path):
    """No time is predicted for it: are its hints shown on, whichever GPU is named?"""
    path, expected = written(tmp_path), hints.of(verdict_of())
    run("check", path, "--gpu", "T4")
    assert run("hint", path).stdout.splitlines()[1] == expected[0].splitlines()[0]
    assert expected[1] in run("check", path).stdout
    assert graded == ["groupnorm.py"]


@pytest.mark.parametrize("options", [("--case", "odd"), ("--seed", "5"), ("--problem", "matmul")])
def test_a_check_with_other_options_is_another_check(graded, monkeypatch, tmp_path, options):
    """Is a kernel graded again with each option that may change its verdict?"""
    path = written(tmp_path)
    monkeypatch.setattr(check, "check_case", lambda *_: None)
    run("check", path)
    assert "has not changed" not in run("check", path, *options).stdout and len(graded) == 2


def test_hints_go_on_after_an_edit_that_does_not_help(graded, tmp_path):
    """Is an edited kernel graded again, and do its hints go on where the same ones were left?"""
    path, expected = written(tmp_path), hints.of(verdict_of())
    run("hint", path)
    written(tmp_path, SOURCE + "# edited\n")
    result = run("check", path)
    assert len(graded) == 2 and "has not changed" not in result.stdout
    assert expected[0] in result.stdout and expected[1] not in result.stdout
    assert run("hint", path).stdout.splitlines()[1] == expected[1].splitlines()[0]


def test_a_hint_on_a_kernel_that_was_not_checked_begins_with_the_verdict(graded, tmp_path):
    """Does the first `grader hint` show the verdict, then the hint?"""
    result = run("hint", written(tmp_path))
    assert result.stdout.startswith("groupnorm: failed\n") and hints.of(verdict_of())[0] in result.stdout


@pytest.mark.parametrize("sandbox", ["none: the submission could read files", "bubblewrap: no network"])
def test_a_kernel_that_ran_without_a_sandbox_is_told_so(monkeypatch, tmp_path, sandbox):
    """Does standard error say so, and say nothing where there was a sandbox?"""
    verdict = msgspec.structs.replace(verdict_of(), sandbox=sandbox)
    monkeypatch.setattr(check, "run", lambda *_, **__: (verdict, [], Looking()))
    result = run("check", written(tmp_path))
    assert result.stderr == (f"{terminal.UNPROTECTED}\n" if sandbox.startswith("none") else "")


def test_the_line_is_shown_when_the_search_for_it_ends(monkeypatch, tmp_path):
    """Where the line is found after the verdict, is it added once, shown by the next check with the verdict, and the
    only hint, as others are vaguer?
    """
    lead = Lead(3, 0, "Line 3 reads one element too far.", "token")

    class Late(Looking):
        """A search that runs until it is waited for."""

        def __init__(self):
            super().__init__()
            self.done = False

        running = property(lambda self: not self.done)  # type: ignore[assignment]

        def wait(self):
            self.done = True
            return lead

    monkeypatch.setattr(check, "run", lambda *_, **__: (verdict_of(), [], Late()))
    path = written(tmp_path)
    first = run("check", path).stdout
    assert first.count(lead.words) == 1 and first.index("Stage correct") < first.index(lead.words)
    assert hints.of(verdict_of()) and "grader hint" not in first and "still running" not in first
    assert run("hint", path).stdout.splitlines()[:2] == ["Hint 1 of 1", lead.words]
    for _ in range(2):
        assert run("hint", path).stdout == "That was the last hint.\n"
    assert run("check", path).stdout.count(lead.words) == 1


def test_the_last_hint_is_said_to_be_the_last_where_the_kernel_is_run_again(graded, tmp_path):
    """Does a kernel that reads another file, and is graded by each command, come to the end of its hints?"""
    path, expected = written(tmp_path, "open('weights.txt')\n"), hints.of(verdict_of())
    for number, _ in enumerate(expected, 1):
        shown = run("hint", path).stdout
        assert f"Hint {number} of {len(expected)}" in shown and "That was the last hint." not in shown
    assert run("hint", path).stdout.endswith("That was the last hint.\n") and len(graded) == len(expected) + 1


@pytest.mark.parametrize("is_late", [True, False])
def test_a_repeated_check_says_all_that_the_first_one_said(monkeypatch, tmp_path, is_late):
    """Where lines were suspect before the wrong one was found, are they shown again, and no hint promised?"""
    monkeypatch.setattr(feedback, "failure_parts", lambda *_: [Words("the wrong line" if _[-1] else "suspect lines")])
    lead = Lead(3, 0, "Line 3 reads one element too far.", "token")
    looking = Looking(lead)
    monkeypatch.setattr(Looking, "running", property(lambda self: is_late and self is looking and not self.done))
    monkeypatch.setattr(looking, "done", False, raising=False)

    def wait():
        looking.done = True  # type: ignore[attr-defined]
        return lead

    monkeypatch.setattr(looking, "wait", wait)
    monkeypatch.setattr(check, "run", lambda *_, **__: (verdict_of(), [], looking))
    path = written(tmp_path)
    first, second = run("check", path).stdout, run("check", path).stdout
    assert ("suspect lines" in first) == is_late and set(first.splitlines()) <= set(second.splitlines())
    assert "no hint says more" in second and "shows a hint" not in second


def test_a_kept_check_that_cannot_be_read_is_made_again(graded, tmp_path, checks):
    """Is a damaged file, and a folder in its place, no more than another grading?"""
    path = written(tmp_path)
    run("check", path)
    [file] = checks.iterdir()
    file.write_text("{")
    assert run("check", path).exit_code == statuses.FAILED and len(graded) == 2
    file.unlink()
    file.mkdir()
    assert run("check", path).exit_code == statuses.FAILED and len(graded) == 3


@pytest.mark.parametrize("command", ["check", "hint", "profile"])
@pytest.mark.parametrize(
    "named, meant",
    [
        ("gruopnorm", "Did you mean groupnorm?"),
        ("logsumexp_backwards.py", "Did you mean logsumexp_backward?"),
        (ROOT / "kernels_student" / "matmull.py", "Did you mean " + str(ROOT / "kernels_student" / "matmul.py") + "?"),
        ("xyz", f"The problems are {', '.join(exercises.exercises())}."),
    ],
)
def test_a_mistyped_name_is_one_sentence(command, named, meant):
    """Does a name that does not exist end with status 2 and the name that is most like it?"""
    result = run(command, named)
    assert result.exit_code == statuses.USAGE
    assert result.output == f"Error: There is no file and no problem named {named}. {meant}\n"


@pytest.mark.parametrize("what", ["conv2d", SPECIMENS / "conv2d_bias_forgotten.py"])
def test_an_unknown_case_is_refused_first(graded, what):
    """In an untouched exercise too, does it end with status 2, the cases, and the name that is most like it?"""
    result = run("check", what, "--problem", "conv2d", "--case", "batch1")
    assert result.exit_code == statuses.USAGE and not graded and len(result.output.splitlines()) == 1
    assert result.output.startswith("Error: conv2d has no case 'batch1': it has ")
    assert result.output.endswith(" Did you mean 'batch 1'?\n")


@pytest.mark.parametrize(
    "command, status", [("check", statuses.FAILED), ("hint", statuses.FAILED), ("profile", statuses.CANNOT)]
)
def test_a_file_that_is_too_large_is_refused_at_once(tmp_path, command, status):
    """Is a file of 300 MB, which would take minutes to parse, one sentence with the limit?"""
    path = tmp_path / "conv2d.py"
    with path.open("w") as file:
        file.truncate(300_000_000)
    begun = time.monotonic()
    result = run(command, path)
    assert result.exit_code == status and f"{path} cannot be read: {contract.TOO_LARGE}." in result.output
    assert time.monotonic() - begun < 10


def test_two_files_that_are_too_large_are_not_compared(tmp_path):
    """Does `grader compare` refuse them as `grader profile` does, and a problem file likewise?"""
    path = tmp_path / "conv2d.py"
    path.write_text("#" * (contract.MAX_BYTES + 1))
    assert contract.TOO_LARGE in run("compare", path, path).output
    with pytest.raises(problem.ProblemError, match=contract.TOO_LARGE):
        problem.read(path)


@pytest.fixture
def odd_files(tmp_path, monkeypatch):
    """In the current folder: a folder with a file's name, a pipe, a link that leads nowhere and a link to itself."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dir.py").mkdir()
    os.mkfifo("pipe.py")
    os.symlink("nosuch.py", "link.py")
    os.symlink("loop.py", "loop.py")


NO_REGULAR_FILE = "is a pipe or a device, not a regular file"
UNUSABLE = {
    "dir.py": "is a folder",
    "./": "is a folder",
    "..": "is a folder",
    "pipe.py": NO_REGULAR_FILE,
    "/dev/null": NO_REGULAR_FILE,
    "link.py": "is a link to nosuch.py, which does not exist",
    "loop.py": "is a link to loop.py, which does not exist",
}


@pytest.mark.parametrize("command", ["check", "hint", "profile"])
@pytest.mark.parametrize("named, why", UNUSABLE.items())
def test_what_is_no_file_is_described(odd_files, command, named, why):
    """Does what lies there, but is no file, end with status 2 and with what it is?"""
    result = run(command, named)
    assert result.exit_code == statuses.USAGE
    assert result.output == f"Error: {named} {why}. Name a file or a problem.\n"


@pytest.mark.parametrize("command", ["check", "grade"])
@pytest.mark.parametrize("named", ["dir.py", "/dev/null", "link.py"])
def test_what_is_no_problem_file_is_described(odd_files, tmp_path, command, named):
    """The same for --problem?"""
    result = run(command, written(tmp_path), "--problem", named)
    assert result.exit_code == statuses.USAGE and f" {named} {UNUSABLE[named]}. Give a" in result.output


def test_a_link_that_leads_nowhere_is_not_graded(odd_files):
    """Does `grader grade` say where it leads?"""
    result = run("grade", "link.py")
    assert result.exit_code == statuses.USAGE and f"link.py {UNUSABLE['link.py']}. So nothing was" in result.output


@pytest.mark.parametrize("named", ["x.", "x" * 300 + ".", "..x.."])
def test_a_name_that_ends_in_a_dot_is_quoted(named):
    """Is a dot that belongs to the name told from the sentence's own?"""
    assert f"no problem named {named!r}. The problems are" in run("check", named).output


@pytest.mark.parametrize("command", ["check", "hint", "profile"])
def test_an_empty_name_is_refused_in_a_terminals_words(command):
    """Does the sentence leave out what only a notebook has?"""
    result = run(command, " ")
    assert result.exit_code == statuses.USAGE and "notebook" not in result.output and "' ' cannot be" in result.output


@pytest.mark.parametrize(
    "words",
    [
        ["profile", "groupnorm"],
        ["profile", "groupnorm_backward", "--gpu", "T4"],
        ["compare", "groupnorm", "kernels_ref/groupnorm/solution.py"],
        ["compare", "kernels_ref/groupnorm/solution.py", "groupnorm"],
    ],
)
def test_an_exercise_as_handed_out_is_not_profiled(words, monkeypatch):
    """Is it neither counted nor compared, but named as `grader check` names it, with the same status?"""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(profiles, "_counted", lambda *_: pytest.fail("it was counted"))
    result, name = run(*words), next(word for word in words if word.startswith("groupnorm"))
    assert result.exit_code == statuses.NOT_ATTEMPTED == 4 and "predicted" not in result.output
    assert result.stdout.splitlines() == run("check", name).stdout.splitlines()[:2]


def test_an_unknown_gpu_is_named():
    """Does a GPU without figures end with status 2 and the names of those that have some?"""
    result = run("compare", "groupnorm", "matmul", "--gpu", "H20")
    assert result.exit_code == statuses.USAGE and "Choose one of T4, A100" in result.output


def test_a_gpu_is_understood_however_it_is_written(graded, monkeypatch, tmp_path):
    """Do commands and notebooks get the full name?"""
    got = []
    monkeypatch.setattr(check, "run", lambda _, case, seed, gpu, **__: got.append(gpu) or (verdict_of(), [], Looking()))
    monkeypatch.setattr(check, "_checked", lambda *arguments: got.append(arguments[-1]))
    run("check", written(tmp_path), "--gpu", "rtx4060")
    check.check("groupnorm", gpu="h100")
    assert got == ["RTX 4060 Laptop", "H100"]


def test_parts_are_printed_as_text_in_pieces(capsys):
    """Is what is printed in two pieces the same as all of it at once?"""
    first = [Words("title", "title"), Code([(1, "x", True)])]
    second = [Words("what to know", "soft"), Words("a lead", "lead"), Words("text")]
    printer = parts.Printer()
    printer.print(first)
    printer.print(second)
    assert capsys.readouterr().out == feedback.as_text(first + second) + "\n"


@pytest.mark.slow
@cpu_only
def test_a_wrong_kernel_is_shown_as_in_the_notebook(tmp_path):
    """For wrong values, has the terminal the notebook's words, the wrong line marked among them?"""
    path = tmp_path / WRONG.name
    shutil.copy(WRONG, path)
    result = run("check", path, "--problem", "conv2d")
    told = feedback.as_text(check.check(path, problem="conv2d").parts(pictures=False))
    assert result.exit_code == statuses.FAILED
    assert re.findall(r"^→.*$", result.stdout, re.MULTILINE) == ["→ 16 │     if (oy >= OH - 1) return;"]
    assert result.stdout.splitlines()[:-1] == told.splitlines()[:-1]


@pytest.mark.slow
@cpu_only
def test_profiles_are_shown_as_in_the_notebook(monkeypatch):
    """Do `grader profile` and `grader compare` print the words of grader.profile and grader.compare?"""
    count = profiles._counted
    counted = functools.cache(lambda path, device: count(cells.subject(path), device))  # it takes seconds
    monkeypatch.setattr(profiles, "_counted", lambda subject, device: counted(str(subject.path), device))
    steps = [str(path) for path in sorted((ROOT / "kernels_ref" / "groupnorm" / "steps").glob("*.py"))[:2]]
    profile, compared = run("profile", steps[0], "--gpu", "T4"), run("compare", *steps, "--gpu", "T4")
    assert profile.exit_code == compared.exit_code == statuses.PASSED
    expected = feedback.as_text(profiles.profile(steps[0], "T4").parts(pictures=False))
    assert profile.output == expected + "\n" and "predicted on the T4" in expected
    assert compared.output == feedback.as_text(profiles.compare(steps[0], steps[1], "T4").parts(pictures=False)) + "\n"


@pytest.mark.slow
@cpu_only
def test_a_kernel_that_cannot_be_counted_is_one_sentence(tmp_path):
    """Does `grader profile` of a file that does not build end with status 3 and one sentence?"""
    path = written(tmp_path, "raise OSError\n" + ANY_MODEL.replace("CODE", "pass"))
    result = run("profile", path, "--problem", "groupnorm")
    assert result.exit_code == statuses.CANNOT and "cannot be counted" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_names_in_messages_are_those_of_commands():
    """Is the sentence on a file whose problem is unknown about the command line's option?"""
    result = run("check", cells.__file__)
    assert result.exit_code == statuses.USAGE and "--problem" in result.output and "problem=" not in result.output


def test_a_repeated_check_goes_on_with_hints_after_the_first_infinity(monkeypatch, tmp_path):
    """Where only the line is known at which infinity appears, does a repeated check give the next hint?"""
    lead = Lead(3, 0, "Line 3 is the first to turn finite numbers into infinity.", "birth")
    monkeypatch.setattr(check, "run", lambda *_, **__: (verdict_of(), [], Looking(lead)))
    path = written(tmp_path)
    first, second = run("check", path).stdout, run("check", path).stdout
    assert "Hint 1 of" not in first and "Hint 1 of" in second and "no hint says more" not in second
    assert run("hint", path).stdout.startswith("Hint 2 of")


@pytest.mark.parametrize(
    "text, says",
    [
        ("def", "conv2d.py: Python cannot parse line 1: invalid syntax.\n"),
        ("", "conv2d.py contains no code.\n"),
        ("x = 1\n", "conv2d.py has no class named ModelNew.\n"),
        (
            '{"cells": [], "nbformat": 4}',
            "conv2d.py is a notebook. Put the code of its ModelNew, with imports and CUDA ",
        ),
        ("class ModelNew: pass\n", "conv2d.py: ModelNew is not a torch.nn.Module: write `class ModelNew(nn.Module):`."),
    ],
)
@pytest.mark.parametrize("command", ["profile", "compare"])
def test_what_is_no_submission_is_not_counted(tmp_path, command, text, says):
    """Is a file that `grader check` refuses in its first stage refused with the same sentence, before it is run?"""
    path = tmp_path / "conv2d.py"
    path.write_text(text)
    result = run(command, *([WRONG] if command == "compare" else []), path, "--problem", "conv2d")
    assert result.exit_code == statuses.CANNOT and result.stderr.startswith(says), result.stderr
    assert says.rstrip("\n").removeprefix("conv2d.py: ") in run("check", path).stdout


ANY_MODEL = """
import torch
class ModelNew(torch.nn.Module):
    def __init__(self, *_): super().__init__()
    def load_reference(self, model): pass
    def forward(self, *_):
        CODE
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "code, says",
    [
        ("raise ValueError('no file')", "cannot be counted (at line 7): it raised ValueError: no file. "),
        ("pass", "cannot be counted: forward launches no CUDA kernel, so there is nothing to count. "),
    ],
)
def test_what_cannot_be_counted_ends_with_the_command_that_explains_more(tmp_path, code, says):
    """Is it a sentence, and is the next step spelled for a terminal?"""
    path = tmp_path / "relu.py"
    path.write_text(ANY_MODEL.replace("CODE", code))
    result = run("profile", path, "--problem", "bias_scale_sigmoid")
    assert result.exit_code == statuses.CANNOT and says in result.stderr, result.stderr
    assert result.stderr.endswith(f" Run `grader check {path} --problem bias_scale_sigmoid` first: it explains more.\n")
