"""Does the judge find out for itself what a submission says of its launches, its checks, its inputs and its kernels?

tests/test_dishonest.py grades the files that lie about it, tests/specimens/dishonest/facts_*.py and kernels_*.py.
"""

import struct
import time
from pathlib import Path
from unittest import mock

import pytest
import torch

from grader.judging import facts
from grader.judging.provenance import HOST_FIRST, NO_WRITER, TOO_LONG, TOO_MUCH, Result, find_host_work
from grader.judging.trial import FindingError
from grader.problems.cases import Case
from grader.source.contract import Source
from grader.verdict import Reason
from grader.worker import protocol
from simt.runtime.monitor import Finding, Recorded, Report, Write

# --- launches ---

ONE = (1, 1, 1)
LAUNCH = protocol.Launch("k", ONE, (32, 1, 1))
KIND = ("k", ONE, (32, 1, 1))


def test_claimed_launches_are_confirmed():
    """Is a launch that the runtime has made accepted, as often as it was made, and any other one refused?"""
    report = Report(launches=2, kinds={KIND: 2})
    facts.confirm_launches([[LAUNCH], [LAUNCH]], report, "a case")
    facts.confirm_launches([], report, "a case")
    for claimed in ([[LAUNCH] * 3], [[protocol.Launch("other", ONE, (32, 1, 1))]], [[protocol.Launch("k", ONE, ONE)]]):
        with pytest.raises(FindingError) as error:
            facts.confirm_launches(claimed, report, "a case")
        assert error.value.finding.reason is Reason.false_report


def test_more_kinds_of_launches_than_are_listed():
    """Are claims believed where the list of the runtime is not complete?"""
    facts.confirm_launches([[LAUNCH]], Report(launches=300, more=True), "a case")


def test_launches_that_the_worker_conceals():
    """Does the judge know launches of which the worker says nothing, and none where the runtime made none?"""
    assert facts.list_launches([], Report(launches=1, kinds={KIND: 1})) == [LAUNCH]
    assert facts.list_launches([LAUNCH], Report(launches=1, kinds={KIND: 1})) == [LAUNCH]
    assert facts.list_launches([LAUNCH], Report()) == []


def test_kernels_that_a_run_leaves_out():
    """Is a kernel found that is not launched with the same grid and block, and are further launches allowed?"""
    other = ("other", ONE, (32, 1, 1))
    assert facts.find_missing(set(), {KIND}) == facts.find_missing({KIND}, {KIND, other}) == ""
    assert facts.find_missing({KIND, other}, {KIND}) == "other"
    assert facts.find_missing({KIND}, {("k", ONE, ONE)}) == "k"


# --- checks ---


def made_finding(check="race", message="", warning=False, first=1, **fields) -> Finding:
    usual = {
        "what": "write", "space": "global", "array": "y", "type": "", "index": 5, "elements": 4, "element": 4,
        "kernel": "k", "file": "cuda_sources", "line": 0, "column": 0, "block": (0, 0, 0), "thread": (3, 0, 0),
        "other": None, "count": 1,
    }  # fmt: skip
    return Finding(check=check, message=message, warning=warning, first=first, **(usual | fields))


CLAIM = protocol.Found("out_of_bounds", "Thread 3 writes element 5.", "k", "cuda_sources", 7, [0, 0, 0], [3, 0, 0])


def test_findings_keep_the_words_of_the_worker():
    """Are a claim's words and line used where the runtime reports the same check and kernel?"""
    assert facts.find_defects([CLAIM], Report(findings=[made_finding("out_of_bounds")]), "a case") == [CLAIM]


def test_findings_that_the_worker_conceals():
    """Does the judge describe what the worker does not mention?"""
    (found,) = facts.find_defects([], Report(findings=[made_finding("out_of_bounds")]), "a case")
    assert (found.check, found.kernel, found.line, found.thread) == ("out_of_bounds", "k", 0, [3, 0, 0])
    assert "writes element 5 of `y`, which has 4 elements" in found.message


def test_findings_that_are_none():
    """Are warnings no errors, and neither what simt's headers cause nor what follows from an odd shuffle?"""
    odd = made_finding("warp_divergence", warning=True, first=1)
    for report in ([], [made_finding(warning=True)], [made_finding("illegal_address", "host")],
                   [odd, made_finding("int_overflow", first=2)]):  # fmt: skip
        assert facts.find_defects([], Report(findings=report), "a case") == []
    assert facts.find_defects([], Report(findings=[odd, made_finding("int_overflow", first=0)]), "a case")


def test_errors_that_are_counted_and_not_listed():
    """Is silence about errors that the runtime counted a finding of its own, and is a claim about them used?"""
    with pytest.raises(FindingError) as error:
        facts.find_defects([], Report(errors=90), "a case")
    assert error.value.finding.reason is Reason.false_report
    assert facts.find_defects([CLAIM], Report(errors=90), "a case") == [CLAIM]
    assert facts.find_defects([], Report(errors=1, findings=[made_finding()]), "a case")[0].check == "race"


def test_findings_that_make_no_sense_get_words_too():
    """Does a report of a kind that the runtime never writes not raise?"""
    (found,) = facts.find_defects([], Report(findings=[made_finding("out_of_bounds", what="odd", element=0)]), "a case")
    assert found.message == "The check out_of_bounds failed."


def test_calls_without_probes():
    """Is a build that the checks do not see a finding?"""
    facts.confirm_checks(Report(), "a case")
    facts.confirm_checks(Report(launches=2, checked=2), "a case")
    for report in (Report(unprobed=1), Report(launches=2, checked=1)):
        with pytest.raises(FindingError) as error:
            facts.confirm_checks(report, "a case")
        assert error.value.finding.reason is Reason.false_report


def test_the_line_of_a_write_is_a_claim_and_its_thread_is_not():
    """Does the evidence have the kernel and thread that the runtime reports, and the line that a worker names?"""
    text = 'cuda = """\nx[0] = 1;\n"""\n'
    source, strings = Source(Path("it.py"), text, ""), [{"cuda_sources": "\nx[0] = 1;\n"}]
    write = Write(64, "k", (0, 0, 0), (3, 0, 0))
    evidence = facts.describe_write(write, [protocol.Written(64, "cuda_sources", 2)], source, strings)
    assert (evidence.kernel, evidence.thread, evidence.line, evidence.text) == ("k", [3, 0, 0], 2, "x[0] = 1;")
    assert facts.describe_write(write, [], source, strings).line is None
    assert facts.describe_write(Write(64, "", None, None), [], source, strings).kernel is None


# --- who wrote a result first ---

X = torch.linspace(-2, 2, 64)
Y = torch.sin(3 * X) + X**2


def recorded(by_kernel: bool, launch: int, values: torch.Tensor) -> Recorded:
    values = values.contiguous()
    return Recorded(by_kernel, launch, memoryview(protocol.raw(values)))


def find(*records: Recorded, got=Y, expected=Y, given=(X,), least=16, summed=False, **fields) -> str:
    result = Result(got, expected.double(), expected, None, Case("a case"))
    report = Report(launches=9, recorded=list(records), **fields)
    return find_host_work([result], list(given), report, least, summed)


HONEST = {
    "a kernel writes the result": [recorded(True, 1, Y)],
    "from a copy of the input": [recorded(False, 1, X), recorded(True, 1, Y)],
    "among other things, in another order": [recorded(True, 1, torch.cat([X * 7, Y.flip(0), X]))],
    "in two kernels": [recorded(True, 1, Y[:40]), recorded(True, 2, Y[30:])],
    "and a second kernel gets a copy of it": [recorded(True, 1, Y), recorded(False, 2, Y), recorded(True, 2, X * 5)],
    "in double precision": [recorded(True, 1, Y.double())],
    "and the host copies parts of it, permuted": [
        recorded(True, 1, Y),
        recorded(False, 2, torch.cat([Y[32:], X[:5], Y[:32].flip(0)])),
        recorded(True, 2, Y),
    ],
    "where the host has many other numbers": [recorded(False, 1, torch.linspace(-1, 6, 5000)), recorded(True, 1, Y)],
    "from weights and indices": [recorded(False, 1, torch.arange(64)), recorded(True, 1, Y)],
}


@pytest.mark.parametrize("what", HONEST)
def test_results_of_kernels(what):
    """Is no kernel's work taken for the host's?"""
    assert find(*HONEST[what]) == ""


DISHONEST = {
    "a copy": ([recorded(False, 1, Y), recorded(True, 1, Y)], HOST_FIRST),
    "a copy in double precision": ([recorded(False, 1, Y.double()), recorded(True, 1, Y)], HOST_FIRST),
    "a result of another sign": ([recorded(False, 1, -Y), recorded(True, 1, Y)], HOST_FIRST),
    "a result that is scaled and shifted": ([recorded(False, 1, 3 * Y + 7), recorded(True, 1, Y)], HOST_FIRST),
    "a copy after another kernel": (
        [recorded(True, 1, X * 9), recorded(False, 2, Y), recorded(True, 2, Y)],
        HOST_FIRST,
    ),
    "a copy behind other numbers": ([recorded(False, 1, torch.cat([X[:9] * 3, Y])), recorded(True, 1, Y)], HOST_FIRST),
    "a copy in pieces": (
        [
            one
            for n in range(4)
            for one in (recorded(False, n + 1, Y[16 * n :][:16]), recorded(True, n + 1, Y[16 * n :][:16]))
        ],
        HOST_FIRST,
    ),
    "a copy in another order": ([recorded(False, 1, Y.flip(0)), recorded(True, 1, Y)], HOST_FIRST),
    "most of a copy of another sign": ([recorded(False, 1, -Y[10:]), recorded(True, 1, Y)], HOST_FIRST),
    "a flag": ([recorded(True, 1, torch.ones(4))], NO_WRITER),
    "the last elements": ([recorded(True, 1, Y[-20:])], NO_WRITER),
    "a copy of the input": ([recorded(True, 1, X)], NO_WRITER),
}


@pytest.mark.parametrize("what", DISHONEST)
def test_results_of_the_host(what):
    """Is the host's work seen, however a kernel passes it on?"""
    records, message = DISHONEST[what]
    assert find(*records) == message


def test_inputs_of_8_bits():
    """Are kernel and host told apart where an input has floats of 8 bits, and as many as the result?"""
    given = (X.to(torch.float8_e4m3fn),)
    assert find(*HONEST["a kernel writes the result"], given=given) == ""
    assert find(*DISHONEST["a copy"][0], given=given) == HOST_FIRST


def test_results_that_say_nothing():
    """Is nothing concluded from results that inputs hold already, that are few, or that are added up?"""
    relu = X.clamp_min(0)
    assert find(recorded(False, 1, X), recorded(True, 1, relu[relu == 0]), got=relu, expected=relu) == ""
    assert find(recorded(False, 1, X), recorded(True, 1, X), got=X, expected=X) == ""  # a problem that copies
    flag = DISHONEST["a flag"][0]
    assert find(*flag, got=Y[:8], expected=Y[:8]) == ""
    assert find(*flag, summed=True) == ""
    integers = torch.arange(64)
    result = Result(integers, integers, integers, None, Case(""))
    assert find_host_work([result], [], Report(launches=1), 16) == ""


def test_records_that_are_not_complete():
    """Does a result count as nobody's where the runtime could not record who wrote it, or no kernel ran?"""
    assert find(recorded(True, 1, Y), overflow=True) == TOO_MUCH
    assert find(recorded(False, 1, Y), overflow=True) == TOO_MUCH
    assert find() == NO_WRITER


def test_numbers_that_chance_produces():
    """Does it say nothing that the host has written whole numbers, few of a table, or so many that all are there?"""
    whole = torch.arange(64.0).repeat(4)
    counts = whole * 7 % 64
    assert find(recorded(False, 1, whole), recorded(True, 1, counts), got=counts, expected=counts) == ""
    table = torch.sin(X)[torch.arange(64 * 80) * 5 % 64 // 4]
    assert find(recorded(False, 1, torch.sin(X[:30])), recorded(True, 1, table), got=table, expected=table) == ""
    all_near_one = 1 + torch.arange(2**18) * 2.0**-23
    some = all_near_one[torch.randperm(2**17, generator=torch.Generator().manual_seed(1))[:500]]
    assert find(recorded(False, 1, all_near_one), recorded(True, 1, some), got=some, expected=some, given=()) == ""
    assert find(recorded(False, 1, all_near_one[::64]), recorded(True, 1, some), got=some, expected=some) == ""


def test_a_look_ends():
    """Is a result nobody's where looking through all that is written takes longer than it may?"""
    with mock.patch("grader.judging.provenance.SECONDS", 0.0):
        assert find(recorded(True, 1, Y)) == TOO_LONG


def test_many_copies_are_searched_in_little_time():
    """Is what a kernel has written sorted once, however many copies of a result the host has afterwards?"""
    big = torch.rand(1 << 20, generator=torch.Generator().manual_seed(1))
    begun = time.process_time()
    copies = [recorded(False, 2, Y + n * 0) for n in range(200)]
    assert find(recorded(True, 1, Y), recorded(True, 1, big), *copies) == ""
    assert time.process_time() - begun < 10


def test_few_results_may_be_added_up_on_the_host():
    """Is a small result, which the host may compute from partial sums, only looked for before the first launch?"""
    sums = [recorded(True, 1, X * 9), recorded(False, 2, Y), recorded(True, 2, X * 3)]
    assert find(*sums, least=1000) == ""
    assert find(recorded(False, 1, Y), recorded(True, 1, Y), least=1000) == HOST_FIRST


def test_records_of_odd_sizes():
    """Do bytes that are no whole number of elements not raise?"""
    odd = Recorded(True, 1, memoryview(struct.pack("<7s", b"1234567")))
    assert find(odd, recorded(True, 1, Y)) == ""
