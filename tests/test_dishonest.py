"""Dishonest submissions: does none get a point that it did not earn, stop or mislead the grader, or leave anything?

The specimens are files in tests/specimens/dishonest, what is expected of them is in expected.toml next to them. They
are graded before an honest file, at the level of the sandbox that is in force here; GRADER_SANDBOX chooses another one.
"""

import itertools
import os
import re
import socket
import time
from pathlib import Path

import pytest
import torch

from grader.worker.levels import Level, probe
from tests.arena import machine
from tests.arena.arena import Arena
from tests.arena.batches import attempt_batch, make_batches
from tests.arena.furniture import KINDS, PLANTS
from tests.arena.specimen import CLASSES, SPECIMENS, Attempt, Specimen, read_specimens

ROWS = {one.name: one for device in ("cpu", "cuda") for one in read_specimens(device)}
# One of what the sandbox hides, by itself. (`make test` grades none: what each class stands for has other quick tests.)
ALONE = ["view_classmate"]

without_gpu = pytest.mark.skipif(
    torch.cuda.is_available(), reason="the specimens' verdicts are those of a machine without a GPU"
)


@pytest.fixture(scope="module")
def arena(tmp_path_factory):
    """A machine at the level in force, on which one file after another is graded."""
    import simt

    if probe().is_broken:
        pytest.skip(probe().trouble)
    simt.warm_up()
    made = Arena(probe().level, tmp_path_factory.mktemp("dishonest"))
    yield made
    made.close()


def test_table_and_files_agree():
    """Has every file a row, and every row a file, a class, and things that exist?"""
    assert sorted(ROWS) == sorted(path.stem for path in SPECIMENS.glob("*.py"))
    for row in ROWS.values():
        assert row.group in CLASSES and row.name.startswith(f"{row.group}_")
        assert row.kind in KINDS and set(row.plants) <= set(PLANTS)
        assert set(row.levels) <= set(Level) and set(row.succeeds_at) <= {Level.none}
    assert len(ROWS) >= 80


@pytest.mark.parametrize("path", sorted(SPECIMENS.glob("*.py")), ids=lambda path: path.stem)
def test_specimen_says_whom_it_would_fool(path):
    """Does each file begin with one sentence on whom it would fool?"""
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert re.fullmatch(r'"""Fools .{20,}\."""', first) and len(first) <= 120


def divide(names: list[str], most: int = 10) -> list:
    """Return the names as parameters: of one class each, and at most so many."""
    classes = [list(alike) for _, alike in itertools.groupby(sorted(names), key=lambda name: ROWS[name].group)]
    parts = [alike[start : start + most] for alike in classes for start in range(0, len(alike), most)]
    return [pytest.param(part, id=f"{part[0]} to {part[-1]}") for part in parts]


@without_gpu
@pytest.mark.slow
@pytest.mark.parametrize("name", ALONE)
def test_specimen(arena, name):
    """Does it get the promised verdict and achieve nothing, and does the honest file after it pass?"""
    if arena.level not in ROWS[name].levels:
        pytest.skip(f"not at level {arena.level}")
    attempt = arena.attempt(ROWS[name])
    assert not attempt.find_mistake(), attempt.printed[-2000:]


@without_gpu
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("names", divide(sorted({one.name for one in read_specimens()} - set(ALONE))))
def test_specimens_together(arena, names):
    """Do these get the promised verdicts and achieve nothing, and does an honest file after them pass?"""
    rows = [ROWS[name] for name in names if arena.level in ROWS[name].levels]
    made = [attempt for batch in make_batches(rows, arena.level) for attempt in attempt_batch(arena, batch)]
    assert sorted(attempt.specimen.name for attempt in made) == [row.name for row in rows]
    mistakes = {attempt.specimen.name: attempt.find_mistake() for attempt in made}
    assert not {name: mistake for name, mistake in mistakes.items() if mistake}


# --- does the arena see harm where there is some? ---


def test_a_promise_that_is_not_kept_is_a_mistake():
    """Is an attack that achieves something a mistake, and one that achieves nothing where it should succeed?"""
    row = Specimen("view_x", "view", succeeds_at=("none",))
    assert "it passed" in Attempt(row, Level.landlock, harms=["it passed"]).find_mistake()
    assert not Attempt(row, Level.none, harms=["it passed"]).find_mistake()
    assert "achieves nothing" in Attempt(row, Level.none).find_mistake()


def test_an_orphan_is_found_and_ended():
    """Is a daemon found that has left session, parent and environment behind, and ended?"""
    with machine.gather_orphans() as orphans:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execve("/bin/sleep", ["sleep", "321"], {})
            os._exit(0)
        time.sleep(0.5)
    assert len(orphans) == 1 and "sleep 321" in orphans[0]
    assert not Path(f"/proc/{orphans[0].split()[0]}").exists()


def test_changes_of_files_are_seen(tmp_path):
    """Is each kind of change in the watched folders seen?"""
    for name in ("content", "mode", "gone"):
        (tmp_path / "course").mkdir(exist_ok=True)
        (tmp_path / "course" / name).write_text("x")
    before = machine.list_files(tmp_path, ["course"])
    assert machine.list_files(tmp_path, ["course"]) == before
    (tmp_path / "course" / "content").write_text("xy")
    (tmp_path / "course" / "mode").chmod(0)
    (tmp_path / "course" / "gone").unlink()
    (tmp_path / "course" / "new").symlink_to("gone")
    after = machine.list_files(tmp_path, ["course"])
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    assert changed == {f"course/{name}" for name in ("content", "mode", "gone", "new")}


def test_a_service_that_is_reached_is_seen(tmp_path):
    """Is each of the services noticed, once?"""
    services = machine.Services()
    folder = tmp_path / "arena-x"
    folder.mkdir()
    services.listen(folder)
    with socket.create_connection(("127.0.0.1", services.port)), socket.socket(socket.AF_UNIX) as bus:
        bus.connect(f"\0{folder.name}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.sendto(b"x", str(folder / "datagrams"))
    assert services.take_reached() == ["abstract", "datagrams", "network"]
    assert services.take_reached() == []
    services.close()
