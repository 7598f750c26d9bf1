"""Does `grader grade` end with the documented status, and say in one sentence what is wrong?"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.authoring import working_copies
from grader.cli import grade as grade_command
from grader.cli import statuses
from grader.paths import KERNELS_REF, ROOT
from grader.problems import exercises
from grader.problems.cases import OWN_SIZES
from grader.verdict import Outcome, Reason, Stage, StageName, Status, schema
from grader.worker import sandbox
from tests.grader.cli.commands import grade, run, shell
from tests.grader.scaffold import PROBLEM, RIGHT, forward
from tests.sample import sample


@pytest.mark.slow
def test_passed_is_0_and_the_json_is_a_verdict_a_line(written, problem, tmp_path):
    out = tmp_path / "out.json"
    result = grade(written(RIGHT), "--problem", problem, "--seed", 5, "--json", out)
    assert result.exit_code == 0 and "passed" in result.stdout
    made = schema.from_json(out.read_text())
    assert (made.outcome, made.seed, made.problem) == (Outcome.passed, 5, "scaling")


@pytest.mark.slow
def test_several_end_with_the_worst_and_a_summary(written, problem, tmp_path):
    out = tmp_path / "out.json"
    files = [written(RIGHT, "a.py"), written("", "b.py"), written("def f(:", "c.py")]
    result = grade(*files, "--problem", problem, "--json", out, "--allow-unsandboxed")
    assert result.exit_code == statuses.FAILED
    assert [schema.from_json(line).reason for line in out.read_text().splitlines()] == [
        None,
        Reason.empty_file,
        Reason.syntax_error,
    ]
    assert "outcome" in result.stdout  # the summary's head


def test_own_sizes_are_graded_alone_on_request(written, tmp_path):
    """Does --own-sizes pass a file that is right there alone, and is the setting in the verdict, for --resume?"""
    made, out = tmp_path / "own.py", tmp_path / "out.json"
    made.write_text(PROBLEM.split("CASES")[0].replace("batch_size = 4", "batch_size = 40"))
    tuned = written(forward("assert x.shape == (40, 6)", "return x * self.scale"))
    result = grade(tuned, "--problem", made, "--json", out, "--own-sizes")
    verdict = schema.from_json(out.read_text())
    assert result.exit_code == 0 and verdict.settings == {"CASES": repr(OWN_SIZES)}
    assert [case.name for case in verdict.stage("correct").cases] == [OWN_SIZES]


def test_not_attempted_is_4(tmp_path):
    path = tmp_path / "groupnorm.py"
    path.write_text(exercises.skeleton((exercises.KERNELS_REF / "groupnorm" / "solution.py").read_text(), "groupnorm"))
    result = grade(path)
    assert result.exit_code == statuses.NOT_ATTEMPTED
    assert "not attempted" in result.stdout and "failed" not in result.stdout


def test_the_changed_copy_is_named(tmp_path):
    """Is a student who grades the course's own file, and has changed the copy in mine/, told so?"""
    file = tmp_path / "kernels_student" / "groupnorm.py"
    file.parent.mkdir()
    (tmp_path / "lessons").mkdir()
    file.write_text(exercises.skeleton((exercises.KERNELS_REF / "groupnorm" / "solution.py").read_text(), "groupnorm"))
    working_copies.prepare(tmp_path)
    assert "changed" not in grade(file).stderr
    copy = tmp_path / "mine" / "kernels_student" / "groupnorm.py"
    copy.write_text(copy.read_text() + "# begun\n")
    assert f"You have changed the copy {copy}: `grader check groupnorm` grades that one." in grade(file).stderr
    assert "changed the copy" not in grade(copy).stderr


def test_an_empty_place_is_named(tmp_path):
    """Is a marked place that is still empty named in the terminal, as in a notebook, and none where all have code?"""
    path = tmp_path / "groupnorm.py"
    text = exercises.skeleton((exercises.KERNELS_REF / "groupnorm" / "solution.py").read_text(), "groupnorm")
    first, second = exercises.empty_places(text)
    lines = text.splitlines()
    lines.insert(first, "    int c = 0;")
    path.write_text("\n".join([*lines, "class"]))
    result = grade(path)
    assert (
        result.exit_code == statuses.FAILED and f"Still empty: the marked place in line {second + 1}." in result.stdout
    )
    lines.insert(second + 1, "    int c = 0;")
    path.write_text("\n".join([*lines, "class"]))
    assert "Still empty" not in grade(path).stdout


def test_a_file_that_cannot_be_read_fails(tmp_path):
    (tmp_path / "groupnorm.py").mkdir()
    result = grade(tmp_path / "groupnorm.py")
    assert result.exit_code == statuses.FAILED and "folder" in result.stdout


@pytest.mark.parametrize("name", sample(["rich", "click", "msgspec", "torch", "simt"], ["torch"]))
def test_a_submission_is_no_module_of_the_judge(tmp_path, name):
    """Does `python -m grader`, run in the folder of the submissions, import none of them under a module's name?"""
    (tmp_path / f"{name}.py").write_text("print('imported')\n")
    done = shell(f"grader grade {name}.py; grader --help", tmp_path)
    assert "imported" not in done.stdout + done.stderr and "Traceback" not in done.stderr
    assert "Commands:" in done.stdout


@pytest.mark.parametrize("named", [["nosuch/*.py"], ["nosuch/*.py", "conv2d.py"], ["a.py", "b.py"]])
def test_a_mistyped_folder_costs_no_verdict(tmp_path, named):
    """Is a pattern that matched nothing, or a command none of whose files exists, refused before an earlier run's
    verdicts are replaced?
    """
    earlier = tmp_path / "verdicts.jsonl"
    earlier.write_text("earlier\n")
    result = run("grade", *named, "--json", str(earlier))
    assert result.exit_code == statuses.USAGE and "nothing was graded" in result.stderr
    assert earlier.read_text() == "earlier\n"


@pytest.mark.parametrize(
    "named, meant",
    [
        ("kernels_student/gruopnorm.py", "kernels_student/groupnorm.py"),
        ("groupnorm", "kernels_student/groupnorm.py"),
        ("xyz.py", ""),
    ],
)
def test_a_mistyped_file_is_one_sentence_with_the_nearest_name(monkeypatch, named, meant):
    """Is a file that does not exist no failed submission but wrong usage, with the name that is most like it?"""
    monkeypatch.chdir(ROOT)
    result = run("grade", named)
    assert result.exit_code == statuses.USAGE and f"{named} does not exist." in result.stderr
    assert result.stderr.partition("Did you mean ")[2].strip() == (f"{meant}?" if meant else "")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "SUBMISSION"),
        (["FILE", "--problem", "nowhere.py"], "nowhere.py"),
        (["FILE", "--problem", "gruopnorm"], "one of attention, bias_scale_sigmoid, compaction,"),
        (["FILE", "--problem", "groupnorm_backward"], "no problem of the course is called so"),
        (["FILE", "--problem", "PROBLEM", "--set", "batch_size"], "NAME=VALUE"),
        (["FILE", "--problem", "PROBLEM", "--set", "batch_size=many"], "literal"),
        (["FILE", "--problem", "PROBLEM", "--set", "colour=3"], "colour"),
        (["FILE"], "scaling"),
        (["FILE", "--timeout", "0"], "--timeout"),
        (["FILE", "--timeout", "nan"], "not a number"),
        (["FILE", "--timeout", "1e12"], "range"),
        (["FILE", "--resume"], "--json"),
        (["FILE", "--resume", "--json", "-"], "ordinary file"),
        (["FILE", "--json", "/nowhere/at/all.json"], "/nowhere/at/all.json"),
    ],
)
def test_wrong_usage_and_unusable_problems_are_2_with_a_sentence(written, problem, arguments, message):
    put = {"FILE": written(RIGHT), "PROBLEM": str(problem)}
    result = grade(*[put.get(argument, argument) for argument in arguments])
    assert result.exit_code == statuses.USAGE and message in result.output
    assert "Traceback" not in result.output


def test_a_problem_of_the_course_is_known_by_its_name(written, tmp_path, monkeypatch):
    """Does --problem groupnorm mean the course's problem, but a file of that name if there is one?"""
    out, file = tmp_path / "v.jsonl", written("")
    monkeypatch.chdir(tmp_path)
    assert grade(file, "--problem", "groupnorm", "--json", out).exit_code == 1
    made = schema.from_json(out.read_text())
    assert made.problem == "groupnorm" and "contains no code" in made.stages[0].message
    Path("groupnorm").write_text("no = 1")
    result = grade(written(RIGHT), "--problem", "groupnorm")
    assert result.exit_code == 2 and "Model" in result.output


def test_sizes_that_no_problem_can_have_are_2(tmp_path):
    """--set may ask for what the problem's own code refuses: that is no fault of the machine's."""
    file = tmp_path / "bias_scale_sigmoid.py"
    file.write_bytes(
        (Path(__file__).resolve().parents[3] / "kernels_ref" / "bias_scale_sigmoid" / "solution.py").read_bytes()
    )
    result = grade(file, "--set", "batch_size=-1")
    assert result.exit_code == statuses.USAGE and "negative" in result.output and "get_inputs()" in result.output


def test_a_required_sandbox_that_is_not_there_is_3(written, problem, monkeypatch):
    monkeypatch.setattr(sandbox, "why_not", lambda: "bubblewrap is not installed.")
    result = grade(written(RIGHT), "--problem", problem, "--require-sandbox")
    assert result.exit_code == statuses.CANNOT and "not installed" in result.output


@pytest.mark.parametrize(
    "count, options, required",
    [(1, [], False), (2, [], True), (1, ["--require-sandbox"], True), (2, ["--allow-unsandboxed"], False)],
)
def test_when_a_sandbox_is_required(written, problem, monkeypatch, count, options, required):
    """Is it required for several submissions, unless the option allows to go without?"""
    given = []

    def refused(path, **settings):
        given.append(settings["require_sandbox"])
        raise RuntimeError

    monkeypatch.setattr("grader.judging.grading.grade", refused)
    grade(*(written(RIGHT, f"{number}.py") for number in range(count)), "--problem", problem, *options)
    assert given == count * [required]


def test_options_that_exclude_each_other(written, problem):
    result = grade(written(RIGHT), "--problem", problem, "--require-sandbox", "--allow-unsandboxed")
    assert result.exit_code == statuses.USAGE and "exclude each other" in result.output


@pytest.mark.slow
def test_set_changes_the_problem(written, problem, tmp_path):
    picky = forward("if x.shape[0] != 9: raise ValueError(x.shape[0])", "return x * self.scale")
    result = grade(written(picky), "--problem", problem, "--set", "batch_size=9")
    assert result.exit_code == 0, result.output


@pytest.mark.slow
def test_a_cache_that_cannot_be_made_is_one_sentence(tmp_path):
    """Does an unusable cache folder end with status 3 and what to set, not with a traceback?"""
    solution = Path(__file__).parents[3] / "kernels_ref" / "logsumexp" / "solution.py"
    done = subprocess.run(
        [sys.executable, "-m", "grader", "grade", str(solution)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SIMT_CACHE": "/proc/nope"},
    )
    assert done.returncode == 3 and "SIMT_CACHE" in done.stdout + done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "outcome, reason, code",
    [
        (Outcome.passed, None, 0),
        (Outcome.failed, Reason.crash, 1),
        (Outcome.error, Reason.no_compiler, 3),
        (Outcome.not_attempted, Reason.not_attempted, 4),
        (Outcome.error, Reason.interrupted, 130),
    ],
)
def test_each_outcome_has_its_status(outcome, reason, code):
    status = Status.error if outcome is Outcome.error else Status.failed if reason else Status.passed
    made = schema.Verdict(
        problem="p",
        submission=schema.Submission(path="p.py", sha256=""),
        outcome=outcome,
        device="cpu",
        versions={},
        stages=[Stage(name=StageName.build, status=status, reason=reason)],
        seed=0,
        seconds=0,
        sandbox="",
    )
    assert grade_command.exit_code(made) == code


def test_the_help_documents_every_status():
    text = run("grade", "--help").output
    for code in statuses.WORST_FIRST:
        assert f" {code} " in text


# --- names that students choose ---

EVIL = "import pathlib; pathlib.Path('executed').write_text('')\n"


@pytest.mark.parametrize("value", ["evil.py", ".evil.py"])
@pytest.mark.parametrize("others", [[], ["b.py"]])
def test_a_file_that_is_called_like_an_option_is_none(tmp_path, monkeypatch, value, others):
    """Is a name that a pattern such as *.py gives never an option, and no code of such a problem executed?"""
    monkeypatch.chdir(tmp_path)
    for name in (f"--problem={value}", value, "groupnorm.py", *others):
        Path(name).write_text(EVIL)
    named = sorted(str(path) for path in Path().glob("*.py") if not path.name.startswith("."))
    result = run("grade", *named)
    assert result.exit_code == statuses.USAGE and "write -- before the files" in result.stderr
    assert not Path("executed").exists()


@pytest.mark.parametrize("name", ["-h", "--resume", "--json=x.py", "--problem"])
def test_any_option_that_is_a_files_name_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("")
    assert run("grade", name, "groupnorm.py").exit_code == statuses.USAGE
    assert run("bench", name, "groupnorm.py").exit_code == statuses.USAGE


def test_after_two_dashes_any_name_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("--problem=groupnorm.py").write_text("")
    result = run("grade", "--device", "cpu", "--", "--problem=groupnorm.py")
    assert result.exit_code == statuses.FAILED and "contains no code" in result.stdout


def test_a_file_that_is_called_like_the_end_of_options(tmp_path, monkeypatch):
    """Is `grade * --json FILE` refused where the pattern gives a file --, after which nothing would be an option?"""
    monkeypatch.chdir(tmp_path)
    for name in ("--", "groupnorm.py"):
        Path(name).write_text("")
    result = run("grade", "--", "groupnorm.py", "--json", "verdicts")
    assert result.exit_code == statuses.USAGE and "'--' is the name of a file here" in result.stderr
    assert not Path("verdicts").exists()
    result = run("grade", "--json", "verdicts", "--allow-unsandboxed", "--", "--", "groupnorm.py")
    assert len(Path("verdicts").read_text().splitlines()) == 2, result.stderr


def test_a_link_to_itself_stops_no_batch(tmp_path, monkeypatch):
    """Does each other file get its verdict, with the problem named and without?"""
    monkeypatch.chdir(tmp_path)
    Path("a_groupnorm.py").symlink_to("a_groupnorm.py")
    Path("b_groupnorm.py").write_text("")
    Path("c.py").symlink_to("c.py")
    for options in ([], ["--problem", str(KERNELS_REF / "groupnorm" / "model.py")]):
        result = run("grade", *sorted(os.listdir()), *options, "--json", "../out", "--allow-unsandboxed")
        made = [schema.from_json(line) for line in Path("../out").read_text().splitlines()]
        assert [verdict.submission.path for verdict in made] == ["a_groupnorm.py", "b_groupnorm.py", "c.py"], result
        assert made[1].reason is Reason.empty_file and "Traceback" not in result.stderr


@pytest.mark.parametrize("problem", ["ada/model.py", "link/model.py", "bob/link.py"])
def test_a_problem_next_to_one_of_several_submissions_is_refused(tmp_path, monkeypatch, problem):
    """Is what may have been handed in as a problem not executed, also through links?"""
    monkeypatch.chdir(tmp_path)
    for name in ("ada", "bob"):
        Path(name).mkdir()
        Path(name, "groupnorm.py").write_text("")
    Path("ada/model.py").write_text(EVIL)
    Path("link").symlink_to("ada")
    Path("bob/link.py").symlink_to(tmp_path / "ada" / "model.py")
    result = run("grade", "ada/groupnorm.py", "bob/groupnorm.py", "--problem", problem)
    assert result.exit_code == statuses.USAGE and "lies next to the submissions" in result.stderr
    assert not Path("executed").exists()


def test_the_courses_own_problem_is_taken_for_several_files(tmp_path):
    """May the reference next to a problem of the course be graded with other files, as `make demo` does?"""
    own, other = KERNELS_REF / "groupnorm", tmp_path / "groupnorm.py"
    other.write_text("")
    files = [own / "hints.toml", other]  # neither is a submission, so that nothing is run
    result = run("grade", *map(str, files), "--problem", str(own / "model.py"), "--allow-unsandboxed")
    assert result.exit_code == statuses.FAILED, result.stderr


def test_a_problem_next_to_a_single_submission_is_taken(written, problem, tmp_path):
    """Does one's own file, with one's own problem beside it, stay what it was?"""
    (tmp_path / "model.py").write_text(problem.read_text())
    result = grade(written("def f(:", "mine.py"), "--problem", tmp_path / "model.py")
    assert result.exit_code == statuses.FAILED and "cannot parse" in result.stdout


def test_among_several_submissions_a_link_fails_with_its_sentence(written, problem, tmp_path):
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "a.py").symlink_to(written("x = 1", "secret.py"))
    (tmp_path / "class" / "b.py").write_text("")
    out = tmp_path / "out.json"
    result = grade(tmp_path / "class" / "a.py", tmp_path / "class" / "b.py", "--problem", problem, "--json", out)
    made = [schema.from_json(line) for line in out.read_text().splitlines()]
    assert result.exit_code == statuses.FAILED
    assert [verdict.reason for verdict in made] == [Reason.unreadable, Reason.empty_file]
    assert "symbolic link" in made[0].first_problem.message and not made[0].submission.sha256


def test_the_folder_of_several_submissions():
    assert grade_command.find_batch_folder([Path("/c/a/x.py")]) is None
    assert grade_command.find_batch_folder([Path("/c/a/x.py"), Path("/c/b/x.py")]) == Path("/c")
    assert grade_command.find_batch_folder([Path("/a/x.py"), Path("/b/x.py")]) is None


def test_among_several_submissions_a_link_does_not_name_the_problem(tmp_path):
    """Is the problem named by the submission, not by the file that its link leads to, which may be the judge's?"""
    for name in ("logsumexp.py", "other_relu.py"):
        (tmp_path / name).symlink_to("/etc/shadow")
    out = tmp_path / "out.json"
    result = grade(tmp_path / "logsumexp.py", tmp_path / "other_relu.py", "--json", out)
    made = [schema.from_json(line) for line in out.read_text().splitlines()]
    assert [verdict.problem for verdict in made] == ["logsumexp", "other_relu"] and "shadow" not in result.stdout
