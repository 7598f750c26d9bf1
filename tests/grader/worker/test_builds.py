"""Is the judge told when a compiler runs, and does no build fail twice?"""

import subprocess
import sys

import pytest

from grader.paths import ROOT
from grader.worker.builds import BuildReporter
from grader.worker.protocol import Building, Built
from simt.errors import CompileError, Diagnostic, LinkError


class Compiler:
    """A load_inline that fails. calls: how often it was called."""

    def __init__(self, kind: type[CompileError]):
        self.calls, self.kind = 0, kind

    def load_inline(self, name, cpp_sources, cuda_sources=None, functions=None):
        self.calls += 1
        raise self.kind([Diagnostic("cuda_sources", 1, 1, "error", f"call {self.calls}")])


@pytest.mark.parametrize(("kind", "calls"), [(CompileError, 2), (LinkError, 4)])
def test_a_build_that_would_fail_again_is_not_repeated(kind, calls):
    """Does each call raise the error, while the compiler sees sources only once, unless it may fare better?"""
    compiler, replies = Compiler(kind), []
    reporter = BuildReporter(replies.append, gpu=False)
    load_inline = reporter.wrap(compiler.load_inline)
    for source in ("a", "b", "a", "b"):
        with pytest.raises(kind):
            load_inline("name", source, functions=["f"])
    assert compiler.calls == calls
    assert [type(one) for one in replies] == [Building, Built] * calls and all(one.failure for one in replies[1::2])
    reporter.start("/other.py", {})
    with pytest.raises(kind):
        load_inline("name", "a", functions=["f"])
    assert compiler.calls == calls + 1


@pytest.mark.slow
def test_what_torchs_compiler_does_is_reported():
    """Is a report open whenever the compiler runs: during its import and for each graph, and never otherwise?"""
    program = """
import torch
from grader.worker.builds import BuildReporter
from grader.worker.protocol import Building
open_reports, seen = 0, []
def reply(message):
    global open_reports
    open_reports += 1 if isinstance(message, Building) else -1
def backend(graph, inputs):
    seen.append(open_reports)
    return graph
torch.compile = BuildReporter(reply, gpu=False).wrap_compile(torch.compile)
def double(x):
    seen.append(open_reports) if not torch.compiler.is_compiling() else None
    return 2 * x
compiled = torch.compile(double, backend=backend)
assert compiled(torch.ones(3)).sum() == 6 and seen == [1], seen
double(torch.ones(3))
assert seen == [1, 0] and open_reports == 0, seen
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr
