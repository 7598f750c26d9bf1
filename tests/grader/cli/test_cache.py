"""Does `grader cache` tell what builds take, and remove them?"""

import os

import pytest
from click.testing import CliRunner

from grader.cli.cache import cache, format_bytes
from simt.toolchain import cache as kept
from simt.toolchain.cache import KINDS


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "simt"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    for name, count in (("simt/header/one", 3 << 20), ("simt/submissions/deep/er", 1 << 20), ("user/grader/triton", 5)):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_bytes(b"x" * count)
    return tmp_path


def test_sizes_are_those_of_the_files(folders):
    done = CliRunner().invoke(cache, [])
    lines = {line.split()[0]: line for line in done.output.splitlines() if line.split()}
    assert done.exit_code == 0, done.output
    assert lines["header"].endswith("3.0 MiB") and lines["submissions"].endswith("1.0 MiB") and "4.0 MiB" in done.output


def test_everything_goes_and_nothing_else(folders):
    """Are builds removed, behind links only the links, and files that are none of the cache's left?"""
    (folders / "outside").mkdir()
    (folders / "outside" / "file").write_text("kept")
    (folders / "simt" / "header" / "link").symlink_to(folders / "outside")
    (folders / "simt" / "notes.txt").write_text("kept")
    done = CliRunner().invoke(cache, ["--empty"])
    assert done.exit_code == 0 and done.output.startswith("Removed 4.0 MiB."), done.output
    left = [str(path.relative_to(folders)) for path in sorted(folders.rglob("*")) if path.is_file()]
    assert left == ["outside/file", "simt/notes.txt"]
    assert CliRunner().invoke(cache, ["--empty"]).output.startswith("Removed 0.0 MiB.")


def test_a_cache_that_cannot_be_used_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "file" / "simt"))
    done = CliRunner().invoke(cache, [])
    assert done.exit_code == 3 and done.stderr.count("\n") == 1 and "cannot be used" in done.stderr


def test_every_kind_of_entry_is_listed(folders):
    """Does the command tell of each kind, and can a build add none that it does not know?"""
    for kind in KINDS:
        kept.find_or_make(kind, "key", lambda folder: (folder / "file").write_bytes(b"x" * (1 << 20)))
    done = CliRunner().invoke(cache, [])
    listed = {line.split()[0] for line in done.output.splitlines() if "1.0 MiB" in line or "4.0 MiB" in line}
    assert listed >= KINDS.keys(), done.output
    with pytest.raises(KeyError, match="another"):
        kept.find_or_make("another", "key", lambda folder: pytest.fail("it was begun"))


def test_each_kind_has_limits_that_are_kept(folders, monkeypatch):
    """Does a build remove what is past its kind's limit?"""
    monkeypatch.setattr(kept, "RECENT_S", 0)
    monkeypatch.setitem(KINDS, "gpu_extension", kept.Kind("linked kernels", 2))
    for number in range(4):
        kept.find_or_make("gpu_extension", f"{number}", lambda folder: (folder / "file").write_text("built"))
    left = os.listdir(folders / "simt" / "gpu_extension")
    assert sorted(name for name in left if not name.startswith(".")) == ["2", "3"]


def test_bytes_are_readable():
    assert [format_bytes(n) for n in (0, 5 << 19, 3 << 30)] == ["0.0 MiB", "2.5 MiB", "3.0 GiB"]
