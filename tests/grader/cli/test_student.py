"""Does `grader student` end with its status and one sentence?"""

import pytest

from grader.cli import statuses
from grader.problems import exercises
from tests.grader.cli.commands import run


def test_student_check_fails_on_drift_and_passes_after_writing(tmp_path, monkeypatch):
    monkeypatch.setattr(exercises, "KERNELS_STUDENT", tmp_path / "kernels_student")
    assert run("student", "--check").exit_code == statuses.FAILED
    assert run("student").exit_code == 0
    assert run("student", "--check").exit_code == 0


SPOILT = {  # what is done to the folder of the students' files -> what --check and writing end with, and say
    "a folder": (
        lambda folder: (folder / "conv2d.py").mkdir(parents=True),
        statuses.FAILED,
        "conv2d.py is not what",
        statuses.CANNOT,
        "conv2d.py cannot be",
    ),
    "a file": (
        lambda folder: folder.write_text(""),
        statuses.FAILED,
        "kernels_student is no folder.",
        statuses.CANNOT,
        "it is no folder",
    ),
    "read-only": (
        lambda folder: folder.symlink_to("/proc/self"),
        statuses.FAILED,
        "conv2d.py is missing",
        statuses.CANNOT,
        "cannot be read or written",
    ),
}


@pytest.mark.parametrize("way", SPOILT)
def test_a_student_folder_that_cannot_be_used_is_one_sentence(tmp_path, monkeypatch, way):
    """Does `grader student` end with its status and a sentence that names the file, not with a traceback?"""
    folder = tmp_path / "kernels_student"
    monkeypatch.setattr(exercises, "KERNELS_STUDENT", folder)
    spoil, checked, found, written, message = SPOILT[way]
    spoil(folder)
    for arguments, code, words in ((["student", "--check"], checked, found), (["student"], written, message)):
        result = run(*arguments)
        assert (result.exit_code, words in result.output, type(result.exception)) == (code, True, SystemExit)
    assert len(result.stderr.splitlines()) == 1
