"""Start JupyterLab for `make lab`: the whole course in the file browser, no network access, Ctrl-C ends it."""

from pathlib import Path

HERE = Path(__file__).resolve().parent
COURSE = HERE.parent.parent

c = get_config()  # noqa: F821  (JupyterLab defines it)

# Without this the root is the opened notebook's folder, and kernels_student/ could not be reached.
c.ServerApp.root_dir = str(COURSE)
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

# The course's own defaults, in overrides.json; what a student sets in the Settings menu still wins.
c.LabApp.app_settings_dir = str(HERE)

# Without this a slow save and the autosave after it show "File Changed"; why is said in its plugin.js.
c.LabApp.extra_labextensions_path = [str(HERE / "labextensions")]
