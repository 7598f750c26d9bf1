"""Do messages arrive whole, and does nothing else get through?"""

import itertools
import os
import socket
import threading
import time

import msgspec
import pytest
import torch

from grader.worker import protocol
from grader.worker.protocol import Answer, Channel, ChannelError, ChannelTimeout, Done, Order, Outputs, Result, Run

SOON = 5.0
LIMIT = 1 << 20


@pytest.fixture
def ends():
    """Judge's end and worker's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours), Channel(theirs)


def answer(judge: Channel, seconds: float = SOON, limit: int = LIMIT) -> Answer:
    return judge.answer(limit, time.monotonic() + seconds)


# --- frames ---


def test_an_answer_arrives_as_it_was_sent(ends):
    judge, worker = ends
    sent = Answer(3, Outputs([Run("Tensor", [Result("float32", [2], "cpu", b"12345678")], [0], [], True)]))
    worker.send(sent)
    assert answer(judge) == sent


def test_a_message_larger_than_the_sockets_buffer_arrives_whole(ends):
    judge, worker = ends
    data = os.urandom(8 << 20)
    sent = Answer(1, Outputs([Run("Tensor", [Result("uint8", [len(data)], "cpu", data)], [], [], False)]))
    sender = threading.Thread(target=worker.send, args=(sent,))
    sender.start()
    assert answer(judge, limit=9 << 20) == sent
    sender.join()


def test_messages_of_several_threads_arrive_whole(ends):
    judge, worker = ends
    reply = protocol.Failure("exception", "ValueError", "x" * 1000)
    senders = [threading.Thread(target=lambda: [worker.send(Answer(1, reply)) for _ in range(500)]) for _ in range(4)]
    for sender in senders:
        sender.start()
    assert all(answer(judge, seconds=20).reply == reply for _ in range(2000))


def test_an_order_arrives_as_it_was_sent(ends):
    judge, worker = ends
    sent = Order(1, protocol.Batch([0, 2, 1]))
    judge.send(sent)
    assert worker.order() == sent


@pytest.mark.parametrize("rubbish", [b"hello world, this is no message", b"\0" * 64, b"GRD1" + b"\xff" * 8])
def test_rubbish_is_refused_at_once(ends, rubbish):
    judge, worker = ends
    worker.sock.sendall(rubbish)
    started = time.monotonic()
    with pytest.raises(ChannelError) as caught:
        answer(judge)
    assert not isinstance(caught.value, ChannelTimeout) and time.monotonic() - started < 1


def frame(message: object) -> bytes:
    data = msgspec.msgpack.encode(message)
    return protocol.MAGIC + len(data).to_bytes(8, "little") + data


@pytest.mark.parametrize(
    "message",
    [
        {"number": 1, "reply": {"type": "verdict", "outcome": "passed"}},
        {"number": 1, "reply": {"type": "done", "also": 1}},
        {"number": "1", "reply": {"type": "done"}},
        {"number": 1},
        {"number": 1, "reply": {"type": "outputs", "runs": [{"kind": "Tensor"}]}},
        [1, 2, 3],
        None,
    ],
)
def test_a_message_outside_the_schema_is_refused(ends, message):
    judge, worker = ends
    worker.sock.sendall(frame(message))
    with pytest.raises(ChannelError, match="protocol"):
        answer(judge)


RESULT = {"dtype": "float32", "shape": [2], "device": "cpu", "data": b"12345678"}
RUN = {"kind": "Tensor", "results": [RESULT], "modified": [], "aliases": [], "reuses": False}
FOUND = {
    "check": "race",
    "message": "x",
    "kernel": "k",
    "source": "cuda_sources",
    "line": 3,
    "block": [0, 0, 0],
    "thread": [1, 0, 0],
}
FAILED = {"type": "failure", "reason": "exception", "kind": "E", "message": "x"}
NOTE = {"source": "s", "line": 1, "severity": "error", "message": "x", "text": "y"}
LAUNCH = {"kernel": "k", "grid": [1, 1, 1], "block": [1, 1, 1]}


def outputs(run: dict | None = None, **fields: object) -> dict:
    return {"type": "outputs", "runs": [RUN | (run or {})], "found": [FOUND], **fields}


def test_a_huge_name_outside_the_schema_is_not_repeated(ends):
    """Is the reason short and on one line, whatever a field or a type is called?"""
    judge, worker = ends
    for message in ({"number": 1, "reply": {"type": "x\n" * 100_000}}, {"number": 1, "y\n" * 100_000: 0}):
        sender = threading.Thread(target=worker.sock.sendall, args=(frame(message),))
        sender.start()
        with pytest.raises(ChannelError) as raised:
            answer(judge, limit=1 << 20)
        sender.join()
        assert len(str(raised.value)) < 300 and "\n" not in str(raised.value)


@pytest.mark.parametrize("reply", [outputs(), FAILED | {"notes": [NOTE]}, outputs({"launches": [LAUNCH] * 16})])
def test_what_is_within_the_bounds_is_taken(ends, reply):
    judge, worker = ends
    worker.sock.sendall(frame({"number": 1, "reply": reply}))
    assert answer(judge).number == 1


OUT_OF_BOUNDS = {
    "a long text": FAILED | {"message": "x" * 21_000},
    "a long reason": FAILED | {"reason": "x" * 300},
    "a long kind": FAILED | {"kind": "x" * 300},
    "a negative line": FAILED | {"line": -1},
    "a huge line": FAILED | {"line": 2**40},
    "a line of 64 bits": FAILED | {"source_line": 2**64 - 1},
    "a thread of two": FAILED | {"thread": [0, 0]},
    "a negative block": FAILED | {"block": [0, 0, -1]},
    "many notes": FAILED | {"notes": [NOTE] * 51},
    "a long note": FAILED | {"notes": [NOTE | {"message": "x" * 3000}]},
    "a long quoted line": FAILED | {"notes": [NOTE | {"text": "x" * 3000}]},
    "a negative size": outputs({"results": [RESULT | {"shape": [-1]}]}),
    "a size of 64 bits": outputs({"results": [RESULT | {"shape": [2**63]}]}),
    "many dimensions": outputs({"results": [RESULT | {"shape": [1] * 65}]}),
    "a long dtype": outputs({"results": [RESULT | {"dtype": "x" * 300}]}),
    "many results": outputs({"results": [RESULT] * 1001}),
    "many runs": outputs(runs=[RUN] * 65),
    "many findings": outputs(found=[FOUND] * 21),
    "a finding of a long kernel": outputs(found=[FOUND | {"kernel": "x" * 300}]),
    "many launches": outputs({"launches": [LAUNCH] * 17}),
    "a negative grid": outputs({"launches": [LAUNCH | {"grid": [1, 1, -1]}]}),
    "a modified input of a negative number": outputs({"modified": [-1]}),
    "many modified inputs": outputs({"modified": [1] * 10_001}),
    "many versions": {"type": "ready", "versions": {str(n): "" for n in range(65)}},
    "many sources": {"type": "built", "name": "x", "seconds": 1.0, "sources": {str(n): "" for n in range(65)}},
    "a long source": {"type": "built", "name": "x", "seconds": 1.0, "sources": {"x": "x" * 200_001}},
}


@pytest.mark.parametrize("reply", OUT_OF_BOUNDS.values(), ids=OUT_OF_BOUNDS.keys())
def test_what_is_out_of_bounds_is_refused(ends, reply):
    judge, worker = ends
    worker.sock.sendall(frame({"number": 1, "reply": reply}))
    with pytest.raises(ChannelError, match="protocol"):
        answer(judge)


def test_a_list_that_announces_billions_of_items_is_refused_at_once(ends):
    judge, worker = ends
    data = b"\x82\xa6number\x01\xa5reply\x82\xa4type\xa7outputs\xa4runs\xdd\xff\xff\xff\xff"
    worker.sock.sendall(protocol.MAGIC + len(data).to_bytes(8, "little") + data)
    started = time.monotonic()
    with pytest.raises(ChannelError, match="protocol"):
        answer(judge)
    assert time.monotonic() - started < 1


def test_a_message_that_looks_right_by_hand_is_taken(ends):
    judge, worker = ends  # so that the refusals above are not for the frame
    worker.sock.sendall(frame({"number": 1, "reply": {"type": "done"}}))
    assert answer(judge) == Answer(1, Done())


def test_a_message_over_the_limit_is_refused_before_it_is_read(ends):
    judge, worker = ends
    worker.sock.sendall(protocol.MAGIC + (LIMIT + 1).to_bytes(8, "little"))
    with pytest.raises(ChannelError, match="more than"):
        answer(judge)


def test_silence_ends_at_the_deadline(ends):
    judge, _ = ends
    started = time.monotonic()
    with pytest.raises(ChannelTimeout):
        answer(judge, seconds=0.2)
    assert 0.15 < time.monotonic() - started < 2


def test_half_a_message_ends_at_the_deadline_too(ends):
    judge, worker = ends
    worker.sock.sendall(frame({"number": 1, "reply": {"type": "done"}})[:-3])
    with pytest.raises(ChannelTimeout):
        answer(judge, seconds=0.2)


def test_a_closed_connection_is_noticed(ends):
    judge, worker = ends
    worker.sock.close()
    with pytest.raises(ChannelError, match="closed"):
        answer(judge)


def test_a_dead_worker_is_noticed_though_its_socket_is_still_open():
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(ChannelError, match="ended"):
        answer(Channel(ours, alive=lambda: False))


def test_the_last_message_of_a_dead_worker_is_still_read():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        Channel(theirs).send(Answer(1, Done()))
        assert answer(Channel(ours, alive=lambda: False)) == Answer(1, Done())


# --- values ---


@pytest.mark.parametrize("name", protocol.DTYPES)
def test_a_tensor_of_each_dtype_survives(name):
    dtype = protocol.DTYPES[name]
    tensor = (
        torch.randint(0, 2, (3, 4)).to(dtype) if name == "bool" else torch.arange(-3, 9).abs().reshape(3, 4).to(dtype)
    )
    back = protocol.unpack(protocol.pack(tensor))
    assert back.dtype == dtype and torch.equal(back, tensor)


def test_nan_payloads_survive():
    tensor = torch.tensor([0x7FC610BA], dtype=torch.int32).view(torch.float32)
    assert protocol.unpack(protocol.pack(tensor)).view(torch.int32).item() == 0x7FC610BA


def test_a_transposed_tensor_travels_in_row_major_order():
    tensor = torch.arange(6).reshape(2, 3).t()
    assert torch.equal(protocol.unpack(protocol.pack(tensor)), tensor)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2)])
def test_empty_and_scalar_shapes_survive(shape):
    assert protocol.unpack(protocol.pack(torch.ones(shape))).shape == shape


def test_nested_values_keep_their_types():
    value = [3, 2.5, "same", None, True, (1, (2, 3)), {"a": [1], "b": ()}, torch.float16, torch.device("cpu")]
    data = msgspec.msgpack.encode(protocol.pack(value))
    assert protocol.unpack(msgspec.msgpack.decode(data, type=protocol.Value)) == value


def test_what_has_no_form_is_named():
    with pytest.raises(TypeError, match="object"):
        protocol.pack(object())


@pytest.mark.parametrize(
    "dtype, shape, data",
    [
        *(("float32", [2], b"1234"), ("float99", [1], b"1234"), ("float32", [-1], b""), ("float32", [1] * 65, b"1234")),
        *(("float32", [2**40, 2**40, 0], b""), ("float32", [0, 2**62], b""), ("float32", [2**62, 2**62], b"")),
    ],
)
def test_a_tensor_that_does_not_add_up_is_refused(dtype, shape, data):
    with pytest.raises(ChannelError):
        protocol.unraw(dtype, shape, data)


def test_overlap_agrees_with_looking_at_every_byte():
    memory = torch.zeros(24, dtype=torch.int16)
    views = [
        memory[:4],
        memory[3:9],
        memory[4:8],
        memory[:24:8],
        memory.view(4, 6)[:, 5],
        memory[9:9],
        memory[20:].view(2, 2),
    ]
    for a, b in itertools.product(views, repeat=2):
        # Contiguous extents are compared, so interleaved views count as overlapping: so does this reference.
        reach = [
            range(t.data_ptr(), t.data_ptr() + 2 * (1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))))
            for t in (a, b)
        ]
        shared = bool(a.numel() and b.numel() and set(reach[0]) & set(reach[1]))
        assert protocol.overlap(a, b) == shared
    assert not protocol.overlap(memory, memory.clone())
