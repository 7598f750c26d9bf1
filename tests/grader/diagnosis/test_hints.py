"""Do hints that an author spoilt reach nobody, and is the author told?"""

import pytest
from click.testing import CliRunner

from grader.cli.main import cli
from grader.diagnosis import hints
from grader.problems import exercises
from grader.verdict import Evidence, Outcome, Reason, Stage, StageName, Status, Submission, Verdict

SPOILT = {  # the file's bytes; what `grader student` says of it; what is left of it
    "no end": (b"steps = [", "it is not TOML (", {}),
    "latin-1": ('steps = ["Zuf\xe4llig?"]'.encode("latin-1"), "line 1 is not UTF-8 text: save the file as UTF-8.", {}),
    "a text": (
        b'steps = "one"\n',
        '`steps` must be a list of texts, as in `steps = ["First hint.", "Second hint."]`.',
        {},
    ),
    "numbers": (b"steps = [1, 2]\nrace = ['One?']\n", "`steps` must be a list of texts", {"race": ["One?"]}),
    "an empty text": (b'steps = ["one", ""]\n', "`steps` must be a list of texts", {}),
    "a table": (b'[steps]\none = "two"\n', "`steps` must be a list of texts", {}),
    "deep": (b"steps = " + b"[" * 5000, "it is not TOML (", {}),
    "a mistyped key": (
        b'steps = ["One?"]\nwrng_values = ["Two?"]\n',
        "`wrng_values` is neither `steps`, `passed` nor a verdict's reason: did you mean `wrong_values`?",
        None,
    ),
    "an unknown key": (
        b'xyz = ["Two?"]\n',
        "`xyz` is neither `steps`, `passed` nor a verdict's reason, as a report or its JSON names it.",
        None,
    ),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A kernels_ref with one problem, which has no solution."""
    monkeypatch.setattr(exercises, "KERNELS_REF", tmp_path / "kernels_ref")
    monkeypatch.setattr(exercises, "KERNELS_STUDENT", tmp_path / "kernels_student")
    monkeypatch.setattr(hints, "KERNELS_REF", tmp_path / "kernels_ref")
    (tmp_path / "kernels_ref" / "double_it").mkdir(parents=True)
    (tmp_path / "kernels_ref" / "double_it" / "model.py").write_text("")
    return tmp_path / "kernels_ref" / "double_it"


def verdict_of(problem: str) -> Verdict:
    stages = [
        Stage(name=StageName.build, status=Status.passed),
        Stage(name=StageName.correct, status=Status.failed, reason=Reason.wrong_values),
    ]
    return Verdict(
        problem=problem,
        submission=Submission(path="x.py", sha256=""),
        outcome=Outcome.failed,
        stages=stages,
        device="cpu",
        versions={},
        seed=0,
        seconds=0.0,
        sandbox="",
    )


@pytest.mark.parametrize("exercise, file", [("double_it", "hints.toml"), ("double_it_backward", "hints_backward.toml")])
@pytest.mark.parametrize("way", SPOILT)
def test_spoilt_hints(folder, way, exercise, file):
    """Is the author told in one sentence with status 2, and does a student have the general hints and what is sound of
    these?
    """
    data, said, left = SPOILT[way]
    general = hints.of(verdict_of("another"))
    (folder / file).write_bytes(data)
    for command in (["student"], ["student", "--check"]):
        done = CliRunner().invoke(cli, command)
        assert (
            done.exit_code == 2
            and f"Error: kernels_ref/double_it/{file}: {said}" in done.output
            and "Traceback" not in done.output
        )
    assert len(general) > 1 and set(hints.of(verdict_of(exercise))) >= set(general)
    assert left is None or hints.of_problem(exercise) == left


def test_hints_in_no_file_and_in_a_folder(folder):
    """Is a folder of the file's name, too, no trouble to a student, and told with status 3?"""
    assert hints.of_problem("double_it") == {}
    (folder / "hints_backward.toml").mkdir()
    assert hints.of_problem("double_it_backward") == {}
    done = CliRunner().invoke(cli, ["student"])
    assert done.exit_code == 3 and "hints_backward.toml cannot be read or written" in done.output


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"], ids=["plain", "with a byte order mark"])
def test_sound_hints(folder, start):
    """Does a student have the problem's own hints, those for the reason before the steps?"""
    (folder / "hints.toml").write_bytes(start + 'steps = ["Größe?"]\nwrong_values = ["Twice?"]\n'.encode())
    assert CliRunner().invoke(cli, ["student"]).exit_code == 0
    assert hints.of(verdict_of("double_it"))[-2:] == ["Twice?", "Größe?"]


@pytest.mark.parametrize(
    "reason, message, begins",
    [
        (
            Reason.exception,
            "forward raised an exception: SystemExit: the code called exit('done')",
            "`sys.exit()` ends",
        ),
        (Reason.exception, "forward raised an exception: RuntimeError: shape", "Compare the named line"),
        (Reason.compile_error, "functions= generates a PYBIND11_MODULE, and the source too", "`functions=` makes"),
        (Reason.compile_error, "`oz` was not declared", "Read the marked line"),
    ],
)
def test_a_hint_fits_the_message(reason, message, begins):
    """Is the first hint the one for this exit or this binding, and the general one for any other message?"""
    verdict = verdict_of("groupnorm")
    verdict.stages[1] = Stage(
        name=StageName.correct, status=Status.failed, reason=reason, message=message, evidence=[Evidence(line=1)]
    )
    assert hints.of(verdict)[0].startswith(begins)
