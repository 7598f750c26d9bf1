"""What `make lab` adds to JupyterLab's server: a student's working copies are prepared, and can be reset from the page.

lessons/.jupyter/config.py calls open_course() and loads this module as an extension of the server.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from nbformat import NO_CONVERT, read
from nbformat.sign import NotebookNotary
from tornado import web

from grader.authoring import working_copies
from grader.paths import MINE


def open_course(course: Path) -> Path:
    """Return the folder that JupyterLab shows: the working copies, made or updated, which the reader's JupyterLab
    trusts; the course itself, after a sentence on standard error, if they cannot be made.
    """
    try:
        for news in working_copies.prepare(course):
            print(news, file=sys.stderr)
        folder = course / MINE
    except working_copies.WorkingCopyError as error:
        print(f"{error} The course's own files are opened instead of copies.", file=sys.stderr)
        folder = course
    trust(folder)
    return folder


def trust(folder: Path) -> None:
    """Let JupyterLab show the style of the lessons' outputs."""
    notary = NotebookNotary(log=logging.getLogger(__name__))  # silent: the server's own reports each new key
    for file in sorted((folder / "lessons").glob("*.ipynb")):
        try:
            notary.sign(read(file, NO_CONVERT))
        except Exception as error:  # a damaged notebook, which JupyterLab will report; a home that cannot be written
            print(f"The outputs of {file.name} are shown without their style ({error}).", file=sys.stderr)
    notary.store.close()


class ResetHandler(APIHandler):
    """POST {"name": "lessons/01_naive_conv.ipynb"}: the course's version in place of the student's."""

    @web.authenticated
    def post(self) -> None:
        """Answer {"message": what happened}, with status 400 if the file cannot be reset."""
        folder = Path(self.settings["server_root_dir"]).expanduser()
        try:
            if folder.name != MINE:
                raise working_copies.WorkingCopyError("There are no working copies here to reset.")
            body = self.get_json_body()
            name = str(body.get("name", "")) if isinstance(body, dict) else ""
            message = working_copies.reset(folder.parent, name)
            trust(folder)
        except working_copies.WorkingCopyError as error:
            self.set_status(400)
            message = str(error)
        self.finish(json.dumps({"message": message}))


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "grader.notebook.lab_server"}]


def _load_jupyter_server_extension(server) -> None:
    """Add the address that the page's command calls."""
    address = url_path_join(server.web_app.settings["base_url"], "course", "reset")
    server.web_app.add_handlers(".*$", [(address, ResetHandler)])
