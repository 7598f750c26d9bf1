"""Start JupyterLab for `make lab`: the student's copies in the file browser, no network access, Ctrl-C ends it."""

from pathlib import Path

from grader.notebook.lab_server import open_course

HERE = Path(__file__).resolve().parent
COURSE = HERE.parent.parent

c = get_config()  # noqa: F821  (JupyterLab defines it)

# mine/, with copies of lessons and exercises: what a student opens and edits are no files of the course.
c.ServerApp.root_dir = str(open_course(COURSE))
c.ServerApp.jpserver_extensions = {
    "grader.notebook.lab_server": True,  # takes a file anew from the course
    # nbgrader is installed for `grader class export`: its menu and panels are for instructors, and page_config.json
    # disables them. What a user's own configuration enables stays so in other labs.
    "nbgrader.server_extensions.formgrader": False,
    "nbgrader.server_extensions.validate_assignment": False,
    "nbgrader.server_extensions.assignment_list": False,
    "nbgrader.server_extensions.course_list": False,
}
c.LabApp.default_url = "/lab/tree/lessons/01_naive_conv.ipynb"
c.ServerApp.answer_yes = True  # Ctrl-C ends the server and its kernels without asking
c.ServerApp.allow_root = True  # the usual user of a container on a GPU server; only this computer is listened to
# The default manager's threads never end if Ctrl-C comes while one of them answers the page: the server would hang.
c.ServerApp.contents_manager_class = "jupyter_server.services.contents.largefilemanager.LargeFileManager"
c.KernelManager.transport_encryption = "auto"  # others on a shared machine cannot listen to a kernel
c.Application.log_level = "ERROR"  # says the address to open, and what goes wrong

# No request leaves the computer.
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.handlers.announcements.NeverCheckForUpdate"
c.LabApp.extension_manager = "readonly"
c.LanguageServerManager.autodetect = False  # looking for language servers starts npm

# The course's own defaults, in overrides.json, and the extensions that page_config.json disables; what a student sets
# in the Settings menu still wins.
c.LabApp.app_settings_dir = str(HERE)

# Each says in its plugin.js what it is for.
c.LabApp.extra_labextensions_path = [str(HERE / "labextensions")]
