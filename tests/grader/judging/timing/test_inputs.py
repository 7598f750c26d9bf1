"""Are the inputs of each round new, the same again when the judge makes them once more, and watched for changes?"""

import statistics

import pytest
import torch

from grader.judging.timing import inputs as timed
from grader.judging.timing.inputs import TimedInputs
from grader.judging.timing.results import NoResult
from grader.problems import problem
from grader.worker import protocol
from tests.grader.judging.timing.views import Memory, at, make_room

MODEL = """
import torch

n = 300

class Model(torch.nn.Module):
    def forward(self, x, where, times):
        return torch.tril(x)[where] * times

def get_inputs():
    return [torch.tril(torch.randn(n, n)), torch.randint(0, n, (5,)), 3]

def get_init_inputs():
    return []
"""


def make(read, case, count) -> TimedInputs:
    """Return inputs which a worker on the CPU and the submission's have."""
    made = TimedInputs(read, case, 7, count, device="cpu")
    made.add(make_room(made))
    made.add(make_room(made), submission=True)
    return made


@pytest.fixture
def made(tmp_path):
    path = tmp_path / "triangle.py"
    path.write_text(MODEL)
    read = problem.read(path)
    return make(read, read.full(), 3)


def test_each_refresh_draws_new_values_with_the_problems_own_structure(made):
    """Are values never seen before, and a triangular matrix still triangular?"""
    seen = [made.ours[1][0].clone()]
    for _ in range(3):
        made.refresh([1])
        now = made.ours[1][0]
        assert all(not torch.equal(now, old) for old in seen)
        assert torch.equal(now, torch.tril(now)) and now.abs().sum() > 0
        seen.append(now.clone())
    assert made.ours[1][2] == 3


def test_inputs_can_be_made_again(made):
    """Does the judge get the values that it wrote, also after a worker has changed the memory?"""
    made.refresh([0, 2])
    x, where = made.ours[2][0].clone(), made.ours[2][1].clone()
    made.ours[2][0].zero_()
    again = made.again(2)
    assert torch.equal(again[0], x) and torch.equal(again[1], where) and again[2] == 3
    assert again[0].data_ptr() != made.ours[2][0].data_ptr()


def test_a_changed_input_is_noticed(made):
    made.refresh([0, 1])
    made.give([0, 1])
    assert not made.find_modified([0, 1])
    made.theirs[1][0].view(-1)[-1] += 1.0
    assert made.find_modified([0, 1]) and not made.find_modified([0])
    made.refresh([0, 1])
    made.give([0, 1])
    assert not made.find_modified([0, 1])


def test_new_inputs_are_the_submissions_once_they_are_given(made):
    """Does the submission's memory keep the values of the round before until then?"""
    made.give([0, 1])
    before = made.theirs[1][0].clone()
    made.rehearse([0, 1])
    made.refresh([0, 1])
    assert torch.equal(made.theirs[1][0], before) and not torch.equal(made.ours[1][0], before)
    made.give([0, 1])
    assert torch.equal(made.theirs[1][0], made.ours[1][0])
    usual = statistics.median(made.seconds[2])
    assert made.given(usual / 2, 2) == made.giving == usual / 2
    assert usual < made.given(1e3, 2) == made.giving < 2 * usual + 1e-3


def test_what_takes_long_to_draw_is_rolled(monkeypatch, made):
    """Are values that are slow to draw moved instead, differently each time, and again the same when made once more?"""
    monkeypatch.setattr(timed, "SLOW_DRAW_S", 0.0)
    slow = make(made.problem, made.case, 2)
    monkeypatch.setattr(slow.problem, "draw_inputs", lambda *_: pytest.fail("drawn"))
    slow.refresh([0, 1])
    first = slow.ours[0][0].clone()
    assert torch.equal(slow.again(0)[0], first)
    slow.refresh([0])
    assert not torch.equal(slow.ours[0][0], first)
    assert torch.equal(slow.ours[0][0].flatten().sort().values, first.flatten().sort().values)


STRIDED = """
import torch

class Model(torch.nn.Module):
    def forward(self, turned, repeated):
        return turned * repeated

def get_inputs():
    return [torch.rand(30, 20).T, torch.rand(20, 1).expand(20, 30)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize("slow_draw_s", [0.0, 100.0], ids=["rolled", "drawn"])
def test_inputs_are_timed_with_the_strides_of_the_file(monkeypatch, tmp_path, slow_draw_s):
    """Do the submission and its rivals get transposed and repeated inputs, new ones each round, with right values?"""
    monkeypatch.setattr(timed, "SLOW_DRAW_S", slow_draw_s)
    path = tmp_path / "strided.py"
    path.write_text(STRIDED)
    read = problem.read(path)
    made = make(read, read.full(), 2)
    other = make_room(made)
    made.add(other)
    before = [value.clone() for value in made.theirs[1]]
    made.refresh([0, 1])
    made.give([0, 1])
    assert not made.find_modified([0, 1])
    for each in (made.ours[1], made.theirs[1], other[1], made.again(1)):
        assert [value.stride() for value in each] == [(1, 20), (1, 0)]
        assert all(map(torch.equal, each, made.again(1)))
    assert not any(map(torch.equal, made.theirs[1], before))


# --- memory in a worker, as the worker tells of it ---


@pytest.fixture
def mapped(tmp_path, monkeypatch):
    """Two lists of inputs that no worker has yet, the memory that one offers, and what it says of it."""
    path = tmp_path / "triangle.py"
    path.write_text(MODEL)
    read = problem.read(path)
    made = TimedInputs(read, read.full(), 7, 2, device="cpu")
    rooms = make_room(made)
    memory = Memory(**{f"{n}.{place}": rooms[n][place] for n in range(2) for place in range(2)})
    monkeypatch.setattr(timed.protocol, "Foreign", lambda: memory)
    located = [[at(f"{n}.0", rooms[n][0]), at(f"{n}.1", rooms[n][1]), None] for n in range(2)]
    return made, rooms, located


def test_a_worker_has_the_values_in_its_own_memory(mapped):
    """Is what a worker made room for filled with the inputs that it is asked to compute with?"""
    made, rooms, located = mapped
    made.map(protocol.Prepared(located))
    assert all(
        torch.equal(room[0], again[0]) and torch.equal(room[1], again[1])
        for room, again in zip(rooms, (made.again(0), made.again(1)), strict=True)
    )
    assert made.ours[1][2] == 3 and rooms[0][0].abs().sum() > 0
    made.release()
    assert not made.ours


def test_other_rivals_get_the_same_values(mapped, made):
    """Does each refresh reach the reference's worker too, and the submission's only when it is given?"""
    other = make_room(made)
    made.add(other)
    made.refresh([0, 1, 2])
    assert torch.equal(other[2][0], made.ours[2][0]) and other[2][0].abs().sum() > 0
    assert not torch.equal(made.theirs[2][0], made.ours[2][0])


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda located: protocol.Done(), "did not say where its inputs are"),
        (lambda located: protocol.Prepared(located[:1]), "did not say where all"),
        (lambda located: protocol.Prepared([located[0], located[1][:2]]), "did not say where all"),
        (lambda located: protocol.Prepared([located[0], [None, *located[1][1:]]]), "cannot write to"),
        (lambda located: protocol.Prepared([located[0], [located[0][1], *located[1][1:]]]), "another dtype or shape"),
        (lambda located: protocol.Prepared([located[0], [_turned(located[1][0]), *located[1][1:]]]), "another dtype"),
        (lambda located: protocol.Prepared([located[0], located[0]]), "share memory"),
        (lambda located: protocol.Prepared([located[0], [_lost(located[1][0]), *located[1][1:]]]), "an input lies"),
    ],
)
def test_memory_that_was_not_asked_for_is_refused(mapped, change, says):
    """Does a worker that says less, or something else, of its inputs get no figure, with the reason?"""
    made, _, located = mapped
    with pytest.raises(NoResult, match=says):
        made.map(change(located), submission=True)


def _turned(location):
    return protocol.Location(location.dtype, location.shape, location.strides[::-1], location.handle, location.offset)


def _lost(location):
    return protocol.Location(location.dtype, location.shape, location.strides, b"?" * 64, location.offset)


def test_memory_with_the_strides_of_the_file_is_mapped(tmp_path, monkeypatch):
    """Is a worker's transposed and repeated room what was asked for, and a contiguous one in its place refused?"""
    path = tmp_path / "strided.py"
    path.write_text(STRIDED)
    read = problem.read(path)
    made = TimedInputs(read, read.full(), 7, 1, device="cpu")
    rooms = make_room(made)[0]
    plain = torch.empty(20, 30)
    memory = Memory(turned=rooms[0], repeated=rooms[1], plain=plain)
    monkeypatch.setattr(timed.protocol, "Foreign", lambda: memory)
    made.map(protocol.Prepared([[at("turned", rooms[0]), at("repeated", rooms[1])]]))
    assert all(map(torch.equal, rooms, made.again(0)))
    with pytest.raises(NoResult, match="strides"):
        made.map(protocol.Prepared([[at("plain", plain), at("repeated", rooms[1])]]), submission=True)
