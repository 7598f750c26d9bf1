"""Is what a worker sees an allow-list that holds what it needs, however this machine is set up?"""

import os
import sys
from pathlib import Path

import pytest

from grader.paths import inductor_cache, kept_ratios
from grader.worker import view
from simt.toolchain import compilers


@pytest.fixture
def submission(tmp_path):
    made = tmp_path / "handed_in" / "mine.py"
    made.parent.mkdir()
    made.write_text("# mine\n")
    (made.parent / "neighbour.py").write_text("# not mine\n")
    return made


def sees(made: view.View, path: Path) -> bool:
    """Return whether a worker with this view can reach a path."""
    real = path.resolve()
    if real == made.submission:
        return True
    return any(real.is_relative_to(folder) for folder in (*made.readable, *made.writable))


def reaches(made: view.View, path: Path) -> bool:
    """Return whether each link on the way to a path is there as well."""
    links: dict[Path, str] = {}
    view.trace(path, links)
    visible = (*made.readable, *made.writable, *filter(None, [made.submission]))
    return sees(made, path) and all(
        at in made.links or any(at.is_relative_to(folder) for folder in visible) for at in links
    )


def test_what_is_seen(submission, tmp_path):
    """Are the interpreter, torch, simt, the compiler and the submission visible?"""
    made = view.make_view(submission, [tmp_path / "work"], tmp_path / "cache", gpu=False)
    torch = next(Path(path) / "torch" for path in sys.path if (Path(path) / "torch" / "__init__.py").exists())
    needed = [Path(sys.executable), Path(os.__file__), torch / "__init__.py", submission, Path("/bin/sh")]
    needed += [view.PROJECT / "simt" / "__init__.py", view.PROJECT / "grader" / "worker" / "main.py"]
    assert all(reaches(made, path) for path in (*needed, Path(compilers.find_compiler()[0])))
    assert tmp_path / "work" in made.writable


def test_what_is_not_seen(submission, tmp_path):
    """Are neighbours, homes, the rest of the project, other builds and devices invisible?"""
    for kind in ("header", "extension", "submissions"):
        (tmp_path / "cache" / kind).mkdir(parents=True)
    made = view.make_view(submission, [tmp_path / "work"], tmp_path / "cache", gpu=False)
    hidden = [submission.parent, submission.with_name("neighbour.py"), Path.home(), Path("/"), Path("/etc/shadow")]
    hidden += [
        view.PROJECT / name for name in (".git", "kernels_ref", "tests", "lessons", "grader/judging", "grader/cli")
    ]
    hidden += [tmp_path / "cache", tmp_path / "cache" / "extension", tmp_path / "cache" / "submissions"]
    hidden += [kept_ratios(), inductor_cache()]
    hidden += [Path("/var/log"), Path("/run"), Path("/etc/passwd"), Path("/dev/shm"), Path("/proc/1")]
    assert not [path for path in hidden if sees(made, path)] and not made.devices
    assert sees(made, tmp_path / "cache" / "header")


def test_an_environment_inside_the_project(submission, tmp_path, monkeypatch):
    """Does a virtual environment whose folder is the project's, or the submissions', show its own parts alone?"""
    prefix = submission.parent
    (prefix / "lib").mkdir()
    monkeypatch.setattr(sys, "prefix", str(prefix))
    made = view.make_view(submission, [], None, gpu=False)
    assert sees(made, prefix / "lib") and not sees(made, submission.with_name("neighbour.py"))


def test_a_compiler_in_an_unusual_place(submission, tmp_path, monkeypatch):
    """Is a compiler visible that $CXX names by a link, with the folder that it is installed in?"""
    home = tmp_path / "gcc-99"
    for part in ("bin", "lib"):
        (home / part).mkdir(parents=True)
    program = home / "bin" / "g++-99"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    link = tmp_path / "links" / "compiler"
    link.parent.mkdir()
    link.symlink_to("../gcc-99/bin/g++-99")
    monkeypatch.setenv("CXX", f"ccache {link}")
    made = view.make_view(submission, [], None, gpu=False)
    assert reaches(made, link) and sees(made, home / "lib") and made.links[link] == "../gcc-99/bin/g++-99"


def test_a_path_of_links(submission, tmp_path, monkeypatch):
    """Is the compiler found where PATH has links to programs alone?"""
    for name in ("g++", "gcc"):
        (tmp_path / name).symlink_to(compilers.find_compiler()[0])
    monkeypatch.setenv("PATH", str(tmp_path))
    made = view.make_view(submission, [], None, gpu=False)
    assert reaches(made, tmp_path / "g++")
    path = view.make_environment(tmp_path, {})["PATH"].split(os.pathsep)
    assert path[0] == str(tmp_path) and {"/usr/bin", "/bin"} <= {*path}  # there are the assembler and the linker


@pytest.fixture
def finds_again():
    """Has the compiler looked for in each test, which is otherwise done once."""
    compilers.find_compiler.cache_clear()
    yield
    compilers.find_compiler.cache_clear()


def test_a_worker_finds_no_compiler_where_the_judge_finds_none(tmp_path, monkeypatch, finds_again):
    """Do `grader doctor` and a worker agree where PATH has no compiler and the usual folders have one?"""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    made = view.make_environment(tmp_path, {})
    assert made["PATH"] == str(tmp_path) and "CXX" not in made


def test_a_worker_uses_the_compiler_that_the_judge_uses(tmp_path, monkeypatch, finds_again):
    """Is a compiler of another name on the PATH not passed over for the usual one, which the judge does not find?"""
    (tmp_path / "clang++").symlink_to(compilers.find_compiler()[0])
    compilers.find_compiler.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    made = view.make_environment(tmp_path, {})
    assert made["CXX"] == str(tmp_path / "clang++") == compilers.find_compiler()[0]
    assert made["PATH"].split(os.pathsep)[0] == str(tmp_path)


@pytest.mark.parametrize("where", ["/", "{home}", "{project}", "{folder}"])
def test_a_variable_that_names_too_much(submission, where, monkeypatch):
    """Is a folder that holds homes, the project or the submissions left out, whichever variable names it?"""
    named = where.format(home=Path.home(), project=view.PROJECT, folder=submission.parent)
    for name in ("LD_LIBRARY_PATH", "CPATH", "CUDA_HOME"):
        monkeypatch.setenv(name, named)
    made = view.make_view(submission, [], None, gpu=True)
    assert not sees(made, submission.with_name("neighbour.py")) and not sees(made, view.PROJECT / "README.md")
    assert not sees(made, Path.home()) and Path("/") not in made.readable


def test_a_circle_of_links(tmp_path):
    """Is a circle of links an error, and no endless loop?"""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="links"):
        view.trace(tmp_path / "a", {})


def test_links_are_followed_as_the_kernel_does(tmp_path):
    """Does `..` after a link mean the parent of the folder that it leads to?"""
    (tmp_path / "deep" / "inner").mkdir(parents=True)
    (tmp_path / "deep" / "file").touch()
    (tmp_path / "short").symlink_to("deep/inner")
    (tmp_path / "file").symlink_to("short/../file")
    links: dict[Path, str] = {}
    assert view.trace(tmp_path / "file", links) == tmp_path / "deep" / "file"
    assert set(links) == {tmp_path / "file", tmp_path / "short"}


def test_the_environment_is_an_allow_list(tmp_path, monkeypatch):
    """Does a worker inherit what compilers and torch need, and nothing that names a secret or another program?"""
    for name in ("AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "TORCH_TOKEN", "ANYTHING", "PYTEST_X", "HTTP_PROXY"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(view.PROJECT), "/opt/site-packages"]))
    made = view.make_environment(tmp_path, {"SIMT_CACHE": "/cache"})
    assert "secret" not in made.values() and (made["OMP_NUM_THREADS"], made["SIMT_CACHE"]) == ("3", "/cache")
    assert made["HOME"] == str(tmp_path) and made["PYTHONPATH"] == f"{view.PROJECT}{os.pathsep}/opt/site-packages"


def test_a_submission_is_not_resolved_again(submission, tmp_path):
    """Does a link that has replaced the submission's file leave its target, and the way there, invisible?"""
    secret = tmp_path / "secret"
    secret.write_text("of the judge")
    submission.unlink()
    submission.symlink_to(secret)
    made = view.make_view(submission, [], None, gpu=False)
    assert made.submission == submission and not sees(made, secret)
    assert submission not in made.links and secret not in made.readable


def test_a_submission_in_a_visible_folder(tmp_path):
    """Is a file that a visible folder holds not shown a second time?"""
    assert view.make_view(tmp_path / "mine.py", [tmp_path], None, gpu=False).submission is None
