"""Does every command survive signals and output that cannot be written, with the documented status?"""

import functools
import json
import os
import signal
import subprocess
import sys
import time
import tomllib

import pytest

from grader.cli import main, statuses
from grader.verdict import Reason
from grader.worker import sandbox
from tests.grader.cli.commands import shell, started_by, verdicts
from tests.grader.scaffold import RIGHT, forward


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
    assert done.returncode == statuses.CANNOT
    assert len(done.stderr.splitlines()) == 1 and "No space left on device" in done.stderr


def test_names_that_the_terminals_encoding_cannot_hold(written, tmp_path):
    written("", "groupnorm_ü.py")
    done = shell("grader grade groupnorm_*.py", tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == statuses.FAILED and "groupnorm_\\xfc.py" in done.stdout and done.stderr == ""


@pytest.mark.slow
def test_a_locale_without_utf8_grades_as_any_other(written, problem, tmp_path):
    """simt's sources, and a kernel, have letters that ASCII lacks: are they read and built all the same?"""
    solution = sandbox.PROJECT / "kernels_ref" / "logsumexp" / "solution.py"
    written(solution.read_text().replace("__global__", "// ü\n__global__", 1), "logsumexp_ü.py")
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = shell("grader grade --device cpu logsumexp_*.py", tmp_path, **ascii_only)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("columns", ["0", "5"])
def test_a_width_that_no_terminal_has_does_not_count(columns, written, tmp_path):
    written("", "groupnorm.py")
    assert "groupnorm.py as groupnorm" in shell("grader grade groupnorm.py", tmp_path, COLUMNS=columns).stdout


@pytest.mark.slow
def test_other_commands_say_it_too(tmp_path):
    done = shell("grader doctor > /dev/full", tmp_path)
    assert done.returncode == statuses.CANNOT and done.stderr.splitlines() == [
        "Standard output cannot be written (No space left on device)."
    ]


def test_ctrl_c_is_130_in_every_command(monkeypatch, capsys):
    """Before anything has begun, too?"""

    def pressed():
        raise KeyboardInterrupt

    monkeypatch.setattr("grader.cli.doctor.examine", pressed)
    monkeypatch.setattr(sys, "argv", ["grader", "doctor"])
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, name))  # main puts its own there
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with pytest.raises(SystemExit) as end:
            main.main()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert end.value.code == statuses.INTERRUPTED and capsys.readouterr().err.strip() == "Interrupted."


REPEATED = """
import atexit, signal
from grader.cli import main as cli, output as outlet
atexit.register(signal.raise_signal, signal.NUMBER)  # while Python ends, which is when end_all runs
def pressed():
    def interrupted_echo(*_, **__):
        signal.raise_signal(signal.NUMBER)  # while the first is being reported
    cli.click.echo = interrupted_echo
    signal.raise_signal(signal.NUMBER)
import grader.cli.doctor
from grader.cli import main
grader.cli.doctor.examine = pressed
cli.main()
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_that_comes_again_ends_it_no_otherwise(number):
    """While the first is reported, and while the workers are ended: is the status 130, without a traceback?"""
    heard = functools.partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)  # under nohup it is never heard
    command = [sys.executable, "-c", REPEATED.replace("NUMBER", number), "doctor"]
    mine = os.environ | {"PYTHONPATH": str(sandbox.PROJECT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=mine, preexec_fn=heard)
    assert (done.returncode, done.stderr.strip()) == (statuses.INTERRUPTED, "")


STARTED = """
import runpy, signal, sys
class Pressed:
    def find_spec(self, name, *_):
        if name == "NAME":
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Pressed())
sys.argv[0] = "grader"
runpy.run_module("grader", run_name="__main__")
"""


@pytest.mark.parametrize(
    "name", ["click", "grader.cli.check", "grader.notebook.kept_checks", "torch.version", "numpy", "torch.nn"]
)
def test_ctrl_c_while_the_command_starts_ends_it_at_once(name):
    """Whichever module is being imported, is the status 130 soon, with no more than one line?"""
    file = str(sandbox.PROJECT / "kernels_ref" / "groupnorm" / "solution.py")
    command = [sys.executable, "-c", STARTED.replace("NAME", name), "check", file]
    mine = os.environ | {"PYTHONPATH": str(sandbox.PROJECT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=mine)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (statuses.INTERRUPTED, "", "Interrupted.")


IN_EXEC = """
import grader.cli.doctor
from grader.cli import main
grader.cli.doctor.examine = lambda: exec("import signal; signal.raise_signal(signal.SIGINT)")
main.main()
"""


def test_ctrl_c_in_generated_code_is_130():
    """Python kills itself by the signal where it has interrupted exec(): is the status that of any other Ctrl-C?"""
    mine = os.environ | {"PYTHONPATH": str(sandbox.PROJECT)}
    command = [sys.executable, "-c", IN_EXEC, "doctor"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=mine)
    assert (done.returncode, done.stderr.strip()) == (statuses.INTERRUPTED, "Interrupted.")


def test_the_installed_command_is_the_module():
    """Do `grader` and `python -m grader` begin in the same place, which handles Ctrl-C?"""
    scripts = tomllib.loads((sandbox.PROJECT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"grader": "grader.cli.entry:main"}
    assert "from grader.cli.entry import main" in (sandbox.PROJECT / "grader" / "__main__.py").read_text()


@pytest.mark.parametrize("module", ["grader", "simt"])
def test_the_version_is_the_projects(module):
    """Do both commands say the version in pyproject.toml?"""
    wanted = tomllib.loads((sandbox.PROJECT / "pyproject.toml").read_text())["project"]["version"]
    done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.strip().endswith(f", version {wanted}")


PRESSED = """
import signal, sys
class Pressed:
    def find_spec(self, name, *_):
        if name == "torch.nn":  # torch is half loaded
            sys.meta_path.remove(self)
            signal.raise_signal(signal.NUMBER)
sys.meta_path.insert(0, Pressed())
from grader.cli import main as cli
try:
    cli.main()
finally:
    print("loaded:", hasattr(sys.modules.get("torch"), "compile"), file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_ctrl_c_while_torch_is_loaded(number, written, problem, tmp_path):
    """Is torch loaded to its end, the submission reported as interrupted, and the next one not begun?"""
    files = [written(RIGHT, "a.py"), written(RIGHT, "b.py")]
    command = [
        sys.executable,
        "-c",
        PRESSED.replace("NUMBER", number),
        "grade",
        *files,
        "--problem",
        str(problem),
        "--allow-unsandboxed",
        "--json",
        "out",
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(sandbox.PROJECT)},
    )
    assert done.returncode == statuses.INTERRUPTED and "Traceback" not in done.stderr and "loaded: True" in done.stderr
    assert [made.reason for made in verdicts(tmp_path / "out")] == [Reason.interrupted]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_and_a_closed_terminal_end_everything_with_130(number, written, problem, tmp_path):
    path = written(forward("time.sleep(600)"))
    command = [
        sys.executable,
        "-m",
        "grader",
        "grade",
        path,
        "--problem",
        str(problem),
        "--device",
        "cpu",
        "--json",
        "-",
    ]
    mine = os.environ | {"TMPDIR": str(tmp_path)}
    # under nohup a closed terminal is none of its business
    heard = functools.partial(signal.signal, number, signal.SIG_DFL)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=mine, text=True, preexec_fn=heard
    )
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
