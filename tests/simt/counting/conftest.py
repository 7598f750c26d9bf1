"""The built kernels of counted_kernels.py."""

import pytest

import simt
from tests.simt.counting.counted_kernels import DECLARED, NAMES, SOURCE


@pytest.fixture(scope="module")
def kernels():
    with simt.run(mode="count"):
        return simt.load_inline("counted", DECLARED, SOURCE, functions=NAMES)
