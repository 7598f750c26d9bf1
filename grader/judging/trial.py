"""Define what the stages pass on: a case with its results, a finding, the limits of a grading. Load no torch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

from grader.verdict import USUAL_TIMEOUT, Evidence, Reason, StageName

if TYPE_CHECKING:
    import torch

    from grader.judging.tolerance import Difference
    from grader.problems.cases import Case
    from grader.problems.instance import Instance
    from grader.worker.protocol import Launch

Progress = Callable[[StageName, str], None]
Kind = tuple[str, tuple[int, int, int], tuple[int, int, int]]  # of launches: kernel, grid, block

MOST_OWN = 30  # times the limit for one step, which all steps together have
CHECK_TIMEOUT_FACTOR = 8  # a launch with simt's checks takes up to so many times as long
FEWEST_ROUNDS, ENOUGH_ROUNDS = 12, 32  # of timing; a kernel that waits for the host scatters for ever
MIB = 1 << 20
MESSAGE_BYTES = MIB  # of a reply, besides its tensors
PRINTED_CHARACTERS = 4000  # kept of what the submission printed


class Refused(Exception):
    """Raised where grading cannot start on this machine as requested; the text is one sentence."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of time, in seconds, and of rounds of timing.

    own: the submission's own time for its import, its construction and each call of forward. total: for all of these
    together. build: all compilers together. kernel: one launch on the CPU. rounds: after so many, the submission's time
    may scatter as it likes; where someone waits for the verdict FEWEST_ROUNDS do, which tell how much faster it is.
    """

    own: float = USUAL_TIMEOUT
    build: float = 600.0
    rounds: int = ENOUGH_ROUNDS

    @property
    def total(self) -> float:
        return self.own * MOST_OWN

    @property
    def kernel(self) -> float:
        return min(10.0, self.own / 2)

    @property
    def checked_kernel(self) -> float:
        """Return the limit of one launch with simt's checks on."""
        return min(self.own * 0.9, self.kernel * CHECK_TIMEOUT_FACTOR)


@dataclasses.dataclass(frozen=True)
class Finding:
    """A reason with its sentence and its evidence. fatal: the worker is dead or can no longer be used."""

    reason: Reason
    message: str
    evidence: list[Evidence]
    fatal: bool = False


class FindingError(Exception):
    """Raised if a finding ends the current step; the finding is its attribute `finding`."""

    def __init__(self, finding: Finding):
        super().__init__(finding.message)
        self.finding = finding


@dataclasses.dataclass
class ExpectedGradients:
    """The expected gradients of one case.

    names: of each input and parameter that has one. inputs: numbers of those inputs. parameters: names of those
    parameters. upstream: what backward starts with. reductions: how many terms are summed for an element of each
    gradient.
    """

    names: list[str]
    inputs: list[int]
    parameters: list[str]
    upstream: list[torch.Tensor]
    expected: list[torch.Tensor]
    eager: list[torch.Tensor]
    noise: list[torch.Tensor | None]
    reductions: list[int]


@dataclasses.dataclass
class Trial:
    """One case with its instance and expected outputs, and what the submission's two runs of it showed.

    first_outputs, launches: of the first run. difference: of these outputs from the expected ones, None if there is
    none. kinds: what simt's runtime launched in both runs. side_findings: what the stage "safe" reports besides its
    own. gradients: the expected ones, once the stage "gradient" has computed them (on the CPU alone).
    """

    case: Case
    instance: Instance
    expected: list[torch.Tensor]
    eager: list[torch.Tensor]
    noise: list[torch.Tensor]
    first_outputs: list[torch.Tensor] = dataclasses.field(default_factory=list)
    difference: Difference | None = None
    launches: list[Launch] = dataclasses.field(default_factory=list)
    kinds: set[Kind] = dataclasses.field(default_factory=set)
    side_findings: list[Finding] = dataclasses.field(default_factory=list)
    gradients: ExpectedGradients | None = None


def prepare_trial(case: Case, instance: Instance) -> Trial:
    """Return the case with its expected outputs. Raises ProblemError where Model raises."""
    expected = instance.expected()
    return Trial(case, instance, expected, instance.eager(), instance.noise(expected))
