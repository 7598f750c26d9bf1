"""Do the commands end with the documented status, and say in one sentence what is wrong?"""

import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader import cli, sandbox, student, verdict
from grader.verdict import Outcome, Reason, Stage, StageName, Status
from tests.grader.scaffold import RIGHT, forward, problem  # noqa: F401


@pytest.fixture
def written(tmp_path):
    """Writes a submission and gives its path."""

    def write(source: str, name: str = "scaling.py") -> str:
        path = tmp_path / name
        path.write_text(source)
        return str(path)

    return write


def run(*arguments: object):
    return CliRunner().invoke(cli.cli, [str(argument) for argument in arguments])


def grade(*arguments: object):
    return run("grade", "--device", "cpu", *arguments)


def test_passed_is_0_and_the_json_is_a_verdict_a_line(written, problem, tmp_path):  # noqa: F811
    out = tmp_path / "out.json"
    result = grade(written(RIGHT), "--problem", problem, "--seed", 5, "--json", out)
    assert result.exit_code == 0 and "passed" in result.stdout
    made = verdict.from_json(out.read_text())
    assert (made.outcome, made.seed, made.problem) == (Outcome.passed, 5, "scaling")


def test_several_end_with_the_worst_and_a_summary(written, problem, tmp_path):  # noqa: F811
    out = tmp_path / "out.json"
    files = [written(RIGHT, "a.py"), written("", "b.py"), written("def f(:", "c.py")]
    result = grade(*files, "--problem", problem, "--json", out)
    assert result.exit_code == cli.FAILED
    assert [verdict.from_json(line).reason for line in out.read_text().splitlines()] == [
        None,
        Reason.empty_file,
        Reason.syntax_error,
    ]
    assert "outcome" in result.stdout  # the summary's head


def test_not_attempted_is_4(tmp_path):
    path = tmp_path / "groupnorm.py"
    path.write_text(student.skeleton((student.KERNELS_REF / "groupnorm" / "solution.py").read_text(), "groupnorm"))
    result = grade(path)
    assert result.exit_code == cli.NOT_ATTEMPTED and "not attempted" in result.stdout


def test_an_empty_place_is_named(tmp_path):
    """Is a marked place that is still empty named in the terminal, as in a notebook, and none where all have code?"""
    path = tmp_path / "groupnorm.py"
    text = student.skeleton((student.KERNELS_REF / "groupnorm" / "solution.py").read_text(), "groupnorm")
    first, second = student.empty_places(text)
    lines = text.splitlines()
    lines.insert(first, "    int c = 0;")
    path.write_text("\n".join([*lines, "class"]))
    result = grade(path)
    assert result.exit_code == cli.FAILED and f"Still empty: the marked place in line {second + 1}." in result.stdout
    lines.insert(second + 1, "    int c = 0;")
    path.write_text("\n".join([*lines, "class"]))
    assert "Still empty" not in grade(path).stdout


def test_a_file_that_cannot_be_read_fails(tmp_path):
    result = grade(tmp_path / "groupnorm.py")
    assert result.exit_code == cli.FAILED and "no such file" in result.stdout


@pytest.mark.parametrize("named", [["nosuch/*.py"], ["nosuch/*.py", "conv2d.py"], ["a.py", "b.py"]])
def test_a_mistyped_folder_costs_no_verdict(tmp_path, named):
    """Is a pattern that matched nothing, or a command none of whose files exists, refused before an earlier run's verdicts are replaced?"""
    earlier = tmp_path / "verdicts.jsonl"
    earlier.write_text("earlier\n")
    result = run("grade", *named, "--json", str(earlier))
    assert result.exit_code == cli.USAGE and "nothing was graded" in result.stderr
    assert earlier.read_text() == "earlier\n"


@pytest.mark.parametrize(
    "arguments, said",
    [
        ([], "SUBMISSION"),
        (["FILE", "--problem", "nowhere.py"], "nowhere.py"),
        (["FILE", "--problem", "PROBLEM", "--set", "batch_size"], "NAME=VALUE"),
        (["FILE", "--problem", "PROBLEM", "--set", "batch_size=many"], "literal"),
        (["FILE", "--problem", "PROBLEM", "--set", "colour=3"], "colour"),
        (["FILE"], "scaling"),
        (["FILE", "--timeout", "0"], "--timeout"),
        (["FILE", "--timeout", "nan"], "no number"),
        (["FILE", "--timeout", "1e12"], "range"),
        (["FILE", "--resume"], "--json"),
        (["FILE", "--resume", "--json", "-"], "ordinary file"),
        (["FILE", "--json", "/nowhere/at/all.json"], "/nowhere/at/all.json"),
    ],
)
def test_wrong_usage_and_unusable_problems_are_2_with_a_sentence(written, problem, arguments, said):  # noqa: F811
    put = {"FILE": written(RIGHT), "PROBLEM": str(problem)}
    result = grade(*[put.get(argument, argument) for argument in arguments])
    assert result.exit_code == cli.USAGE and said in result.output
    assert "Traceback" not in result.output


def test_sizes_that_no_problem_can_have_are_2(tmp_path):
    """--set may ask for what the problem's own code refuses: that is no fault of the machine's."""
    file = tmp_path / "bias_scale_sigmoid.py"
    file.write_bytes((Path(__file__).resolve().parents[2] / "kernels_ref" / "bias_scale_sigmoid" / "solution.py").read_bytes())
    result = grade(file, "--set", "batch_size=-1")
    assert result.exit_code == cli.USAGE and "negative" in result.output and "get_inputs()" in result.output


def test_a_required_sandbox_that_is_not_there_is_3(written, problem, monkeypatch):  # noqa: F811
    monkeypatch.setattr(sandbox, "why_not", lambda: "bubblewrap is not installed.")
    result = grade(written(RIGHT), "--problem", problem, "--require-sandbox")
    assert result.exit_code == cli.CANNOT and "not installed" in result.output


# --- --json ----------------------------------------------------------------------------------------------------------


def verdicts(path: Path) -> list[verdict.Verdict]:
    return [verdict.from_json(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("forgotten", [True, False])
def test_json_writes_over_no_students_file(written, forgotten):
    """Where the file name after --json is forgotten, or names a submission: is each file as it was, and nothing graded?"""
    files = [written(RIGHT, name) for name in ("a.py", "b.py")]
    result = grade("--json", *files) if forgotten else grade(*files, "--json", files[1])
    assert result.exit_code == cli.USAGE and "--json" in result.output and "scaling" not in result.output
    assert all(Path(file).read_text() == RIGHT for file in files)


def test_json_writes_over_nothing_that_is_graded_by_another_name(tmp_path, problem):  # noqa: F811
    """A link to the submission, and the problem's file: are both refused?"""
    for name, options in (("submission", []), ("model", ["--problem", tmp_path / "model"])):
        (tmp_path / name).write_text(RIGHT)
        (tmp_path / f"link_to_{name}").symlink_to(name)
        result = grade(tmp_path / "submission", *options, "--json", tmp_path / f"link_to_{name}")
        assert result.exit_code == cli.USAGE and (tmp_path / name).read_text() == RIGHT


def test_json_writes_over_nothing_but_verdicts(written, problem, tmp_path):  # noqa: F811
    """Are a stranger's notes kept, and the verdicts of an earlier run replaced?"""
    out = tmp_path / "out"
    out.write_text("my notes\n")
    result = grade(written(""), "--problem", problem, "--json", out)
    assert result.exit_code == cli.USAGE and out.read_text() == "my notes\n"
    out.write_text("")
    for seed in (1, 2):
        grade(written(""), "--problem", problem, "--json", out, "--seed", seed)
        assert [made.seed for made in verdicts(out)] == [seed]


def test_an_earlier_runs_verdicts_stay_until_there_are_new_ones(written, problem, tmp_path, monkeypatch):  # noqa: F811
    """Wrong usage, and an interruption before the first verdict: are the lines of the run before still there?"""
    out = tmp_path / "out.json"
    grade(written(""), "--problem", problem, "--json", out)
    before = out.read_bytes()
    assert grade(written(RIGHT), "--problem", tmp_path / "nowhere.py", "--json", out).exit_code == cli.USAGE

    def pressed(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("grader.judge.grade", pressed)
    assert grade(written(RIGHT), "--problem", problem, "--json", out).exit_code == cli.INTERRUPTED
    assert out.read_bytes() == before and [p.name for p in tmp_path.glob("*out*")] == ["out.json"]


def test_who_is_refused_has_a_line_and_a_row(written, tmp_path):
    """A file whose name says no problem, between two that do: is it among the verdicts, as one that could not be graded?"""
    out = tmp_path / "out.json"
    files = [written("", "a_groupnorm.py"), written(RIGHT, "misnamed.py"), written("", "b_groupnorm.py")]
    result = grade(*files, "--json", out)
    assert result.exit_code == cli.USAGE
    made = verdicts(out)
    assert [(one.submission.path, one.outcome) for one in made] == list(zip(files, [Outcome.failed, Outcome.error, Outcome.failed]))
    assert "No problem is called 'misnamed'" in made[1].first_problem.message and made[1].submission.sha256
    assert "could not be graded" in result.stdout


def test_without_the_sandbox_asked_for_each_has_a_line(written, problem, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(sandbox, "why_not", lambda: "bubblewrap is not installed.")
    out = tmp_path / "out.json"
    files = [written(RIGHT, "a.py"), written("", "b.py")]
    assert grade(*files, "--problem", problem, "--require-sandbox", "--json", out).exit_code == cli.CANNOT
    assert [(one.outcome, one.problem) for one in verdicts(out)] == [(Outcome.error, "scaling"), (Outcome.failed, "scaling")]


def test_resume_goes_on_after_an_interruption(written, problem, tmp_path, monkeypatch):  # noqa: F811
    """Of three, the second is interrupted: are the second and third graded then, the first not again, and a changed one anew?"""
    from grader import judge

    out, graded, real = tmp_path / "out.json", [], judge.grade
    files = [written(text, name) for text, name in (("", "a.py"), ("", "b.py"), ("def f(:", "c.py"))]
    stop = [files[1]]

    def counted(path, **options):
        graded.append(str(path))
        if str(path) in stop:
            raise KeyboardInterrupt
        return real(path, **options)

    monkeypatch.setattr("grader.judge.grade", counted)
    options = ["--problem", problem, "--json", out]
    result = grade(*files, *options)
    assert result.exit_code == cli.INTERRUPTED and "--resume" in result.stderr
    stop.clear(), graded.clear()
    result = grade(*files, *options, "--resume")
    assert result.exit_code == cli.FAILED and graded == files[1:] and "1 of 3" in result.stderr
    assert [made.submission.path for made in verdicts(out)] == files
    assert all(Path(file).name in result.stdout for file in files)  # the table at the end has all

    graded.clear()
    before = out.read_bytes()
    assert grade(*files, *options, "--resume").exit_code == cli.FAILED
    assert graded == [] and out.read_bytes() == before

    out.write_bytes(before + before[:40])  # killed while it wrote
    written("# other bytes", "a.py")
    grade(*files, *options, "--resume")
    assert graded == files[:1] and [Path(made.submission.path).name for made in verdicts(out)] == ["b.py", "c.py", "a.py"]


def test_resume_grades_again_what_was_asked_otherwise(written, problem, tmp_path):  # noqa: F811
    """With another --set both lines stay; with another seed the new one takes the old one's place."""
    out = tmp_path / "out.json"
    options = [written(""), "--problem", problem, "--json", out, "--resume"]
    grade(*options, "--seed", 1)
    grade(*options, "--seed", 1, "--set", "batch_size=2")
    assert [(made.settings, made.seed) for made in verdicts(out)] == [({}, 1), ({"batch_size": "2"}, 1)]
    grade(*options, "--seed", 2)
    assert [(made.settings, made.seed) for made in verdicts(out)] == [({"batch_size": "2"}, 1), ({}, 2)]


def test_resume_keeps_the_verdicts_on_others(written, problem, tmp_path):  # noqa: F811
    out = tmp_path / "out.json"
    for name in ("a.py", "b.py"):
        grade(written("", name), "--problem", problem, "--json", out, "--resume")
    assert [Path(made.submission.path).name for made in verdicts(out)] == ["a.py", "b.py"]


def test_resume_leaves_a_file_alone_that_it_cannot_read(written, problem, tmp_path):  # noqa: F811
    out = tmp_path / "out.json"
    grade(written(""), "--problem", problem, "--json", out)
    out.write_text(out.read_text() + '{"schema": "kernel-course/verdict/0"}\n')
    before = out.read_bytes()
    result = grade(written(""), "--problem", problem, "--json", out, "--resume")
    assert result.exit_code == cli.USAGE and "line 2" in result.output and out.read_bytes() == before


def test_resume_grades_again_what_another_problem_was_asked_of(written, problem, tmp_path):  # noqa: F811
    """Another problem file of the same name, an edited one, a line of a grader that did not keep its digest: does none of them stand?"""
    out, other = tmp_path / "out.json", tmp_path / "other" / problem.name
    other.parent.mkdir()
    other.write_text(problem.read_text() + "# another\n")
    options = [written(""), "--json", out, "--resume", "--problem"]
    assert "0 of 1" in grade(*options, problem).stderr and "1 of 1" in grade(*options, problem).stderr
    assert "0 of 1" in grade(*options, other).stderr and len(verdicts(out)) == 1
    other.write_text(other.read_text() + "# edited\n")
    assert "0 of 1" in grade(*options, other).stderr and "1 of 1" in grade(*options, other).stderr
    plain = json.loads(out.read_text())
    del plain["problem_sha256"]
    out.write_text(json.dumps(plain, separators=(",", ":")) + "\n")
    assert "0 of 1" in grade(*options, other).stderr and len(verdicts(out)) == 1


def test_a_name_that_is_not_utf8_has_a_line_as_well(written, problem, tmp_path):  # noqa: F811
    """Bytes in a file's name that JSON cannot hold: is it graded, the next one too, and is its verdict found again?"""
    files = [tmp_path / os.fsdecode(b"scaling_\xff.py"), written("", "scaling_z.py")]
    files[0].write_text(RIGHT)
    options = ["--problem", problem, "--json", out := tmp_path / "out.json"]
    assert grade(*files, *options).exit_code == cli.FAILED
    assert [Path(made.submission.path).name for made in verdicts(out)] == ["scaling_\\xff.py", "scaling_z.py"]
    assert [made.outcome for made in verdicts(out)] == [Outcome.passed, Outcome.failed]
    assert "2 of 2" in grade(*files, *options, "--resume").stderr


def test_a_file_of_verdicts_is_one_graders(written, problem, tmp_path):  # noqa: F811
    """While another grader uses it: is that said before anything is graded, and is a killed grader's lock nobody's?"""
    from grader import jsonl

    out = tmp_path / "out.json"
    first = jsonl.Lines(str(out))
    result = grade(written(""), "--problem", problem, "--json", out)
    assert result.exit_code == cli.USAGE and "another grader" in result.output and "scaling" not in result.output
    first.close()
    assert not list(tmp_path.glob("*out*"))
    killed = "import os, sys; from grader import jsonl; lines = jsonl.Lines(sys.argv[1]); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", killed, str(out)], check=False, env=os.environ | {"PYTHONPATH": str(sandbox.PROJECT)})
    assert grade(written(""), "--problem", problem, "--json", out).exit_code == cli.FAILED
    assert [path.name for path in tmp_path.glob("*out*")] == ["out.json"]


# --- output that cannot be written ------------------------------------------------------------------------------------


def shell(line: str, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess:
    """A line for bash; grader stands for the command."""
    line = line.replace("grader ", f"{sys.executable} -m grader ")
    mine = os.environ | {"PYTHONPATH": str(sandbox.PROJECT)} | environment
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, cwd=tmp_path, env=mine)


def test_a_reader_who_leaves_loses_no_verdict(written, tmp_path):
    """Are all graded and written, and the status that of the verdicts, when head has seen enough?"""
    for name in "abc":
        written("", f"{name}_groupnorm.py")
    done = shell("grader grade *.py --json out.json | head -1; echo ${PIPESTATUS[0]}", tmp_path)
    assert done.stdout.splitlines()[-1] == str(cli.FAILED) and done.stderr == ""
    assert len(verdicts(tmp_path / "out.json")) == 3


def test_progress_is_kept_where_the_table_has_no_reader(tmp_path):
    for folder in ("kernels_ref", "kernels_student"):  # a copy of the course
        (tmp_path / folder).mkdir()
    (tmp_path / "kernels_student" / "groupnorm.py").write_text("")
    progress = tmp_path / "progress.json"
    shell("grader grade kernels_student/groupnorm.py | true", tmp_path, GRADER_PROGRESS=str(progress))
    assert "groupnorm" in progress.read_text()


@pytest.mark.parametrize("where", ["> /dev/full", "--json /dev/full"])
def test_a_full_disk_is_3_and_one_sentence(where, written, tmp_path):
    written("", "groupnorm.py")
    done = shell(f"grader grade groupnorm.py {where}", tmp_path)
    assert done.returncode == cli.CANNOT
    assert len(done.stderr.splitlines()) == 1 and "No space left on device" in done.stderr


def test_a_disk_that_fills_keeps_whole_lines(tmp_path, monkeypatch):
    """Half of a line fits: is it taken away again, and the lines before it kept?"""
    from grader import jsonl

    lines = jsonl.Lines(str(tmp_path / "out.json"))
    one = cli._refused(tmp_path / "a.py", "said", {"problem": None, "seed": 1, "overrides": {}})
    assert lines.write(one) == ""

    class Full:
        def __init__(self, out):
            self.out, self.room = out, 20

        def write(self, data):
            if not self.room:
                raise OSError(28, "No space left on device")
            self.room -= (put := self.out.write(data[: self.room]))
            return put

        def fileno(self):
            return self.out.fileno()

    lines.out = Full(lines.out)
    assert lines.write(one) == "No space left on device"
    assert len(verdicts(tmp_path / "out.json")) == 1


def test_names_that_the_terminals_encoding_cannot_hold(written, tmp_path):
    written("", "groupnorm_ü.py")
    done = shell("grader grade groupnorm_*.py", tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == cli.FAILED and "groupnorm_\\xfc.py" in done.stdout and done.stderr == ""


def test_a_locale_without_utf8_grades_as_any_other(written, problem, tmp_path):  # noqa: F811
    """simt's sources, and a kernel, have letters that ASCII lacks: are they read and built all the same?"""
    solution = sandbox.PROJECT / "kernels_ref" / "logsumexp" / "solution.py"
    written(solution.read_text().replace("__global__", "// ü\n__global__", 1), "logsumexp_ü.py")
    ascii_only = dict(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    done = shell("grader grade --device cpu logsumexp_*.py", tmp_path, **ascii_only)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("columns", ["0", "5"])
def test_a_width_that_no_terminal_has_does_not_count(columns, written, tmp_path):
    written("", "groupnorm.py")
    assert "groupnorm.py as groupnorm" in shell("grader grade groupnorm.py", tmp_path, COLUMNS=columns).stdout


def test_other_commands_say_it_too(tmp_path):
    done = shell("grader doctor > /dev/full", tmp_path)
    assert done.returncode == cli.CANNOT and done.stderr.splitlines() == ["Standard output cannot be written (No space left on device)."]


# --- interruption ----------------------------------------------------------------------------------------------------


def test_ctrl_c_is_130_in_every_command(monkeypatch, capsys):
    """Before anything has begun, too?"""

    def pressed():
        raise KeyboardInterrupt

    monkeypatch.setattr("grader.doctor.examine", pressed)
    monkeypatch.setattr(sys, "argv", ["grader", "doctor"])
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, name))  # main puts its own there
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with pytest.raises(SystemExit) as end:
            cli.main()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert end.value.code == cli.INTERRUPTED and capsys.readouterr().err.strip() == "Interrupted."


REPEATED = """
import atexit, signal
from grader import cli, outlet
atexit.register(signal.raise_signal, signal.NUMBER)  # while Python ends, which is when end_all runs
def pressed():
    def told(*_, **__):
        signal.raise_signal(signal.NUMBER)  # while the first is being told of
    cli.click.echo = told
    signal.raise_signal(signal.NUMBER)
import grader.doctor
grader.doctor.examine = pressed
cli.main()
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_that_comes_again_ends_it_no_otherwise(number):
    """While the first is told of, and while the workers are ended: is the status 130, without a traceback?"""
    heard = functools.partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)  # under nohup it is never heard
    command = [sys.executable, "-c", REPEATED.replace("NUMBER", number), "doctor"]
    mine = os.environ | {"PYTHONPATH": str(sandbox.PROJECT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=mine, preexec_fn=heard)
    assert (done.returncode, done.stderr.strip()) == (cli.INTERRUPTED, "")


PRESSED = """
import signal, sys
class Pressed:
    def find_spec(self, name, *_):
        if name == "torch.nn":  # torch is half loaded
            sys.meta_path.remove(self)
            signal.raise_signal(signal.NUMBER)
sys.meta_path.insert(0, Pressed())
from grader import cli
try:
    cli.main()
finally:
    print("loaded:", hasattr(sys.modules.get("torch"), "compile"), file=sys.stderr)
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_ctrl_c_while_torch_is_loaded(number, written, problem, tmp_path):  # noqa: F811
    """Is torch loaded to its end, the submission told as interrupted, and the next one not begun?"""
    files = [written(RIGHT, "a.py"), written(RIGHT, "b.py")]
    command = [sys.executable, "-c", PRESSED.replace("NUMBER", number), "grade", *files, "--problem", str(problem), "--json", "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(sandbox.PROJECT)})
    assert done.returncode == cli.INTERRUPTED and "Traceback" not in done.stderr and "loaded: True" in done.stderr
    assert [made.reason for made in verdicts(tmp_path / "out")] == [Reason.interrupted]


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
    made = verdict.Verdict(
        problem="p", submission=verdict.Submission(path="p.py", sha256=""), outcome=outcome, device="cpu", versions={},
        stages=[Stage(name=StageName.build, status=status, reason=reason)], seed=0, seconds=0, sandbox="",
    )
    assert cli.exit_code(made) == code


def test_the_help_documents_every_status():
    text = run("grade", "--help").output
    for code in cli.WORST_FIRST:
        assert f" {code} " in text


def test_set_changes_the_problem(written, problem, tmp_path):  # noqa: F811
    picky = forward("if x.shape[0] != 9: raise ValueError(x.shape[0])", "return x * self.scale")
    result = grade(written(picky), "--problem", problem, "--set", "batch_size=9")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_and_a_closed_terminal_end_everything_with_130(number, written, problem, tmp_path):  # noqa: F811
    path = written(forward("time.sleep(600)"))
    command = [sys.executable, "-m", "grader", "grade", path, "--problem", str(problem), "--device", "cpu", "--json", "-"]
    mine = os.environ | {"TMPDIR": str(tmp_path)}
    heard = functools.partial(signal.signal, number, signal.SIG_DFL)  # under nohup a closed terminal is none of its business
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=mine, text=True, preexec_fn=heard)
    deadline = time.monotonic() + 30
    while not started_by(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(4)  # well into forward
    process.send_signal(number)
    out, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert json.loads(out)["outcome"] == "error" and "interrupted" in errors
    assert "Traceback" not in errors
    assert not started_by(process.pid)
    assert not list(tmp_path.glob("grader-*"))


def started_by(judge: int) -> list[str]:
    """Processes that this judge's workers are."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{sandbox.JUDGE}={judge}".encode() in entry.read_bytes().split(b"\0"):
                found.append(entry.parent.name)
        except OSError:
            pass
    return found


def test_the_doctor_names_every_part_and_what_its_absence_costs(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("CXX", "")
    monkeypatch.setenv("CUDA_HOME", "/nowhere")
    sandbox.why_not.cache_clear()
    try:
        result = run("doctor")
    finally:
        sandbox.why_not.cache_clear()
    assert result.exit_code == cli.CANNOT
    for part in ("C++ compiler", "ninja", "torch", "warm cache", "GPU", "nvcc", "sandbox"):
        assert part in result.output
    for cure in ("apt install g++", "ninja", "apt install bubblewrap"):
        assert cure in result.output


@pytest.mark.parametrize(
    "trouble, advised",
    [("bubblewrap is not installed (apt install bubblewrap).", 1), ("bubblewrap is installed but does not run here (no message).", 0)],
)
def test_the_doctor_advises_once_and_only_what_helps(monkeypatch, trouble, advised):
    """Is bubblewrap to be installed where it is missing, said once, and not where it is there and does not run?"""
    from grader import doctor

    monkeypatch.setattr(sandbox, "why_not", lambda: trouble)
    part = doctor._sandbox()
    assert f"{part.costs} {part.mend}".count("apt install bubblewrap") == advised and trouble.split(" (")[0] in part.costs


def test_student_check_fails_on_drift_and_passes_after_writing(tmp_path, monkeypatch):
    monkeypatch.setattr(student, "KERNELS_STUDENT", tmp_path / "kernels_student")
    assert run("student", "--check").exit_code == cli.FAILED
    assert run("student").exit_code == 0
    assert run("student", "--check").exit_code == 0


SPOILT = {  # what is done to the folder of the students' files -> what --check and writing end with, and say
    "a folder": (lambda folder: (folder / "conv2d.py").mkdir(parents=True), cli.FAILED, "conv2d.py is not what", cli.CANNOT, "conv2d.py cannot be"),
    "a file": (lambda folder: folder.write_text(""), cli.FAILED, "kernels_student is no folder.", cli.CANNOT, "it is no folder"),
    "read-only": (lambda folder: folder.symlink_to("/proc/self"), cli.FAILED, "conv2d.py is missing", cli.CANNOT, "cannot be read or written"),
}


@pytest.mark.parametrize("way", SPOILT)
def test_a_student_folder_that_cannot_be_used_is_one_sentence(tmp_path, monkeypatch, way):
    """Does `grader student` end with its status and a sentence that names the file, not with a traceback?"""
    folder = tmp_path / "kernels_student"
    monkeypatch.setattr(student, "KERNELS_STUDENT", folder)
    spoil, checked, found, written, said = SPOILT[way]
    spoil(folder)
    for arguments, code, words in ((["student", "--check"], checked, found), (["student"], written, said)):
        result = run(*arguments)
        assert (result.exit_code, words in result.output, type(result.exception)) == (code, True, SystemExit)
    assert len(result.stderr.splitlines()) == 1


def test_a_cache_that_cannot_be_made_is_one_sentence(tmp_path):
    """Does an unusable cache folder end with status 3 and what to set, not with a traceback?"""
    solution = Path(__file__).parents[2] / "kernels_ref" / "logsumexp" / "solution.py"
    done = subprocess.run(
        [sys.executable, "-m", "grader", "grade", str(solution)],
        capture_output=True, text=True, check=False, env={**os.environ, "SIMT_CACHE": "/proc/nope"},
    )
    assert done.returncode == 3 and "SIMT_CACHE" in done.stdout + done.stderr and "Traceback" not in done.stderr
