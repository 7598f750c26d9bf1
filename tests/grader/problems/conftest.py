"""Fixtures of the problems' tests."""

import textwrap

import pytest


@pytest.fixture
def write(tmp_path):
    """A function that writes a problem file and gives its path."""

    def write(text, name="thing.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    return write
