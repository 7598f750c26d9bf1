"""Does JupyterLab show a student's copies, and the course itself where none can be made?"""

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from grader.notebook.lab_server import open_course


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course with one lesson, and a home of its own for what JupyterLab trusts."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    folder = tmp_path / "course"
    (folder / "lessons").mkdir(parents=True)
    cell = nbformat.v4.new_code_cell("1 + 1", outputs=[nbformat.v4.new_output("display_data", {"text/html": "2"})])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / "lessons" / "01_first.ipynb")
    return folder


def test_copies_are_shown_and_trusted(course):
    assert open_course(course) == course / "mine"
    copy = nbformat.read(course / "mine" / "lessons" / "01_first.ipynb", nbformat.NO_CONVERT)
    assert NotebookNotary().check_signature(copy)


def test_the_course_is_shown_where_no_copy_can_be_made(course, capsys):
    (course / "mine").write_text("a file")
    assert open_course(course) == course
    assert "mine cannot be written" in (told := capsys.readouterr().err)
    assert told.rstrip().endswith("The course's own files are opened instead of copies.")


def test_a_damaged_lesson_is_one_sentence(course, capsys):
    (course / "lessons" / "02_damaged.ipynb").write_text("{")
    assert open_course(course) == course / "mine"
    assert capsys.readouterr().err.startswith("The outputs of 02_damaged.ipynb are shown without their style")
