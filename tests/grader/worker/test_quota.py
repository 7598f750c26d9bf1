"""Is a worker stopped that fills the disk, and are its limits set for all of its processes together?"""

import os

import pytest

from grader.worker import cgroups, client, protocol, quota, sandbox
from grader.worker.levels import Level
from simt.toolchain.removal import remove_tree
from tests.grader.worker.attacked import Attacked
from tests.sample import sample


def test_what_is_counted(tmp_path):
    """Are bytes and files in all folders counted, links not followed, and missing folders nothing?"""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_bytes(bytes(100_000))
    (tmp_path / "a" / "link").symlink_to("/usr")
    (tmp_path / "a" / "sparse").open("wb").truncate(1 << 40)
    made = quota.Quota([tmp_path / "a", tmp_path / "none"], most_bytes=1 << 20)
    assert not made.is_exceeded() and made.entries == 4 and 100_000 <= made.bytes < 200_000


@pytest.mark.parametrize("limits, words", [((50_000, 10), "wrote more than"), ((1 << 20, 3), "made more than 3 files")])
def test_a_limit(tmp_path, limits, words):
    """Is each limit named that is exceeded?"""
    for number in range(4):
        (tmp_path / str(number)).write_bytes(bytes(20_000))
    made = quota.Quota([tmp_path], *limits)
    assert made.is_exceeded() and words in made.excess


def test_a_deep_tree(tmp_path):
    """Is a tree too deep for any path an excess, and no endless walk?"""
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("d", dir_fd=here)
        there = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
    os.close(here)
    made = quota.Quota([tmp_path])
    exceeded = made.is_exceeded()
    assert remove_tree(tmp_path / "d")  # pytest cannot remove it
    assert exceeded and "inside one another" in made.excess


@pytest.mark.parametrize("when", sample(["at once", "and then sleeps"], ["and then sleeps"]))
def test_a_worker_that_fills_the_disk(tmp_path, when):
    """Is it stopped when it replies, and while it still runs?"""
    made = Attacked(Level.none, tmp_path.resolve())
    made.client.quota = quota.Quota(made.process.folders, most_bytes=1 << 20)
    later = "time.sleep(600)" if when != "at once" else "None"
    with pytest.raises(client.Gone, match="was stopped: it wrote more than"):
        source = f"import time\nopen('big', 'wb').write(bytes(1 << 22))\ntime.sleep(0.6)\n{later}\n"
        made.client.ask(protocol.Build(source, str(made.submission), 60.0), 60.0)
    assert not made.process.alive()


# --- what stays in the cache ---

LEFT = {
    "too many bytes": "open(folder + '/big', 'wb').write(bytes(1 << 20) * 60)",
    "too many files": "[open(f'{folder}/{n}', 'w').close() for n in range(1500)]",
    "too deep": "[(os.mkdir(folder + '/d' * n), 0) for n in range(1, 100)]",
}


@pytest.mark.parametrize("what", sample(LEFT, ["too deep"]))
def test_builds_that_are_no_builds_do_not_stay(tmp_path, what):
    """Is a folder of builds removed after the grading if it holds more than builds do?"""
    made = Attacked(Level.none, tmp_path.resolve())
    builds = made.builds
    made.client.quota = quota.Quota([])  # else the limits of a running worker may end it first
    made.run(f"[{LEFT[what]} for folder in [os.environ['TORCH_EXTENSIONS_DIR']]]")
    assert any(builds.iterdir())
    made.process.kill()
    assert not builds.exists()


def test_builds_stay_for_the_next_time(tmp_path):
    """Is a build of usual size still there after the grading?"""
    made = Attacked(Level.none, tmp_path.resolve())
    made.run("open(os.environ['TORCH_EXTENSIONS_DIR'] + '/extension.so', 'wb').write(bytes(5 << 20))")
    made.process.kill()
    assert (made.builds / "extension.so").stat().st_size == 5 << 20


def test_builds_of_few_submissions_are_kept(tmp_path, monkeypatch):
    """Are the folders of the submissions that were graded last kept, and the others removed?"""
    monkeypatch.setattr(sandbox, "KEPT", 3)
    for number in range(6):
        (tmp_path / "builds" / str(number)).mkdir(parents=True)
        os.utime(tmp_path / "builds" / str(number), (number, number))
    sandbox._claim([tmp_path / "builds" / "0"])
    assert sorted(os.listdir(tmp_path / "builds")) == ["0", "4", "5"]


# --- control groups ---


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A folder that looks like a control group which has been delegated."""
    made = {"subtree_control": "memory pids cpu", "controllers": "cpu io memory pids", "procs": ""}
    for name, text in made.items():
        (tmp_path / f"cgroup.{name}").write_text(text)
    monkeypatch.setattr(cgroups, "_find_own", lambda: tmp_path)
    real = cgroups._set

    def write(file, text):
        if file.name != "cgroup.kill":
            file.touch()  # the kernel makes these files
        real(file, text)

    monkeypatch.setattr(cgroups, "_set", write)
    return tmp_path


def test_the_limits_of_a_group(tree):
    """Are memory, processes and CPU of a group limited, and is its description what a report says?"""
    group = cgroups.make_group(1 << 30, 100)
    assert group and group.folder.parent == tree and "1 GiB, 100 processes" in group.description
    found = {name: (group.folder / name).read_text() for name in ("memory.max", "pids.max", "cpu.max")}
    assert (found["memory.max"], found["pids.max"]) == (str(1 << 30), "100")
    assert found["cpu.max"] == f"{len(os.sched_getaffinity(0)) * 100_000} 100000"
    for file in group.folder.iterdir():  # the kernel removes them with the folder
        file.unlink()
    group.end()
    assert not group.folder.exists()


@pytest.mark.parametrize("missing", ["cgroup.subtree_control", "cgroup.procs", "memory"])
def test_no_group(tree, missing):
    """Is there no group where nothing is delegated, or the limits are not?"""
    if missing.startswith("cgroup"):
        (tree / missing).unlink()
    else:
        for name in ("subtree_control", "controllers"):
            (tree / f"cgroup.{name}").write_text("cpu pids")
    assert cgroups.make_group(1 << 30, 100) is None and not list(tree.glob("grader-*"))
