"""Fixtures of the command line's tests."""

import pytest

from tests.grader import scaffold

problem = scaffold.problem


@pytest.fixture
def written(tmp_path):
    """A function that writes a submission and returns its path."""

    def write(source: str, name: str = "scaling.py") -> str:
        path = tmp_path / name
        path.write_text(source)
        return str(path)

    return write
