"""Are the warnings of a problem's file shown once, however often its Model runs?"""

import warnings

from grader.problems import problem
from grader.problems.cases import Case
from tests.grader.problems.linear import LINEAR

WARNS = LINEAR.replace(
    "return torch.relu", "import warnings; warnings.warn(f'Model warns of {x.shape[0]} rows'); return torch.relu"
)


def test_a_warning_of_model_is_shown_once(write):
    """Is it shown once for all sizes, weights and runs, and one with other words as well?"""
    read = problem.read(write(WARNS))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for case in (Case("a"), Case("b", {"inner": 5}), Case("c", {"batch_size": 2})):
            instance = read.instantiate(case, 1)
            instance.noise(instance.expected())
            read.share_seed().instantiate(case, 1).eager()
    words = [str(one.message) for one in seen]
    assert words == ["Model warns of 4 rows", "Model warns of 2 rows"]
