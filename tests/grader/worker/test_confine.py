"""Does level 2 confine a process, with the user number that fits, on kernels of every age?"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.worker import confine, landlock, seccomp, view
from tests.grader.worker.attacked import run_python

needs_landlock = pytest.mark.skipif(bool(confine.find_trouble()), reason=confine.find_trouble() or "-")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can take another user number")


def make(readable=(), writable=(), user: int = 0) -> confine.Confinement:
    """Return a confinement in which Python runs."""
    listed = ["/usr", "/lib", "/lib64", "/bin", sys.prefix, sys.base_prefix, *readable]
    return confine.Confinement(readable=listed, opened=[], writable=list(writable), devices=[], seccomp="", user=user)


def run_confined(how: confine.Confinement, code: str) -> str:
    """Run a program after confine(), with its errors; return what it printed."""
    before = f"from grader.worker import confine\nconfine.confine({dict(how)!r})\nimport os\n"
    done = run_python(before + code)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


TRY = """
def can(what):
    try:
        what()
    except OSError as error:
        return error.errno
    return 0
"""


@needs_landlock
@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6, 7, 99])
def test_each_version_of_landlock(version, tmp_path):
    """Are files outside refused with the rights of each version that this kernel knows?"""
    if version > landlock.find_version() and version != 99:
        pytest.skip(f"this kernel has version {landlock.find_version()}")
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "file").write_text("x")
    code = f"""{TRY}
print(can(lambda: open({str(inside / "file")!r}, "a")), can(lambda: os.mkdir({str(inside / "new")!r})),
      can(lambda: open({str(outside / "file")!r})), can(lambda: open({str(outside / "new")!r}, "w")),
      can(lambda: os.listdir({str(outside)!r})), can(lambda: os.unlink({str(outside / "file")!r})),
      can(lambda: os.link({str(inside / "file")!r}, {str(outside / "link")!r})), can(lambda: open("/dev/null", "w")))
"""
    before = f"from grader.worker import landlock\nlandlock.find_version = lambda: {version}\n"
    how = make(writable=[str(inside)])
    done = run_python(f"{before}from grader.worker import confine\nconfine.confine({dict(how)!r})\nimport os\n{code}")
    assert done.returncode == 0, done.stderr
    first, second, *others, null = map(int, done.stdout.split())
    assert (first, second, null) == (0, 0, 0) and all(number in (1, 13, 18) for number in others), done.stdout


@needs_landlock
def test_a_path_that_is_not_there(tmp_path):
    """Is a listed path that does not exist left out?"""
    assert run_confined(make(readable=["/nowhere", "/usr"]), "print(1)") == "1"


@pytest.mark.parametrize("machine, version, expected", [("x86_64", 0, "Landlock"), ("riscv64", 3, "seccomp")])
def test_a_machine_without(monkeypatch, machine, version, expected):
    """Is a kernel without Landlock, or a processor without a filter, reported in one sentence?"""
    monkeypatch.setattr(landlock, "find_version", lambda: version)
    monkeypatch.setattr(seccomp.platform, "machine", lambda: machine)
    assert expected in confine.find_trouble() and confine.find_trouble().count(". ") == 0


@needs_landlock
@needs_root
@pytest.mark.parametrize("user", [0, 1_900_000_000])
def test_the_superusers_rights_are_gone(user, tmp_path):
    """Does a confined worker of the superuser's have no rights over others' files, processes and the machine?"""
    other = tmp_path / "other"
    other.write_text("x")
    other.chmod(0o600)
    code = f"""{TRY}
print(os.getuid(), can(lambda: os.setuid(1)), can(lambda: os.chown({str(other)!r}, 1, 1)),
      can(lambda: os.sethostname("x") if hasattr(os, "sethostname") else os.chroot("/")))
import subprocess
print(subprocess.run(["/usr/bin/id", "-u"], capture_output=True, text=True).stdout.strip())
"""
    first, after = run_confined(make(user=user), code).splitlines()
    number, *errors = map(int, first.split())
    assert number == user == int(after) and errors == [1, 1, 1]


@needs_landlock
@needs_root
def test_a_compiler_writes_to_a_folder_of_its_own_below_one_of_roots(tmp_path):
    """Does gcc, which asks access(2), use a TMPDIR in a folder that only the superuser may enter?"""
    user = 1_900_000_000
    work = tmp_path / "private" / "work"
    work.mkdir(parents=True)
    work.parent.chmod(0o700)
    os.chown(work, user, user)
    code = f"""
import subprocess
command = ["gcc", "-x", "c", "-c", "-o", "one.o", "-"]
done = subprocess.run(command, input="int one;", cwd={str(work)!r}, env=os.environ | {{"TMPDIR": {str(work)!r}}},
                      capture_output=True, text=True)
print(done.returncode, done.stderr)
"""
    assert run_confined(make(writable=[str(work)], user=user), code) == "0"


@needs_root
def test_the_user_number(monkeypatch, tmp_path):
    """Is it the same for the same folder, another for others, and 0 where it cannot be taken?"""
    seen = view.make_view(Path(__file__), [tmp_path], None, gpu=False)
    one, again, other = (confine.choose_user(tmp_path / name, seen) for name in ("a", "a", "b"))
    assert one == again != other and one
    monkeypatch.setattr(confine, "_has_capability", lambda number: number != confine._CAP_DAC_READ_SEARCH)
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    assert confine.choose_user(tmp_path, view.View((private,), (), (), {})) == 0
    assert confine.choose_user(tmp_path, view.View((Path("/usr"),), (), (), {})) > 0
    monkeypatch.setattr(confine, "_has_capability", lambda number: False)
    assert confine.choose_user(tmp_path, seen) == 0


def test_a_container_with_few_user_numbers(monkeypatch):
    """Is a number taken that this user namespace has?"""
    monkeypatch.setattr(confine.os, "geteuid", lambda: 0)
    monkeypatch.setattr(confine, "_has_capability", lambda number: True)
    monkeypatch.setattr(confine.Path, "read_text", lambda self, **_: "         0     100000      65536\n")
    first, end = confine._FEW_USERS
    assert first <= confine.choose_user(Path("/a"), view.View((), (), (), {})) < end


def test_the_supervisors_exit_status():
    """Does the supervisor end as its worker ended, and say why one could not start?"""
    from grader.worker import supervisor

    def run(*command: str) -> tuple[int, str]:
        reader, writer = os.pipe()
        plan = supervisor.Plan(
            command=list(command),
            judge=os.getpid(),
            pipe=reader,
            descriptors=[],
            group="",
            confinement=None,
            folders=[],
        )
        code = f"import json; from grader.worker import supervisor; supervisor.main({dict(plan)!r})"
        done = subprocess.run(
            [sys.executable, "-c", code], pass_fds=[reader], capture_output=True, text=True, check=False,
            env=os.environ | {"PYTHONPATH": str(view.PROJECT)}, timeout=60,
        )  # fmt: skip
        os.close(reader)
        os.close(writer)
        return done.returncode, done.stderr

    assert run("/bin/sh", "-c", "exit 7")[0] == 7
    assert run("/bin/sh", "-c", "kill -SEGV $$")[0] == -11
    assert run("/bin/sh", "-c", "kill -KILL $$")[0] == -9
    status, message = run("/nowhere")
    assert status == 70 and "could not be started" in message
