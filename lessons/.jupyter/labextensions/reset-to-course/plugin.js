/* "Reset to the course's version", in the File menu and (overrides.json) above a notebook: the open lesson or exercise is the
 * course's again. The server (grader/notebook/lab_server.py) keeps what the student has changed, so nothing is asked first.
 *
 * Written by hand in the form that JupyterLab's own builds have, as ../one-save-at-a-time.
 */
(() => {
    const COMMAND = "course:reset";
    const OF_COURSE = /^(lessons\/[^/]+\.ipynb|kernels_student\/[^/]+\.py)$/;

    const plugin = {
        id: "reset-to-course:plugin",
        autoStart: true,
        activate: app => {
            const settings = app.serviceManager.serverSettings;
            const path = () => {
                const open = app.shell.currentWidget?.context?.path;
                return OF_COURSE.test(open ?? "") ? open : null;
            };
            const say = (message, type) => app.commands.execute("apputils:notify", { message, type, options: { autoClose: 10_000 } });
            app.commands.addCommand(COMMAND, {
                label: "Reset to the Course's Version",
                caption: "Take this file anew from the course. Your own version moves to the folder kept.",
                isEnabled: () => path() !== null,
                execute: async () => {
                    const name = path(), { context } = app.shell.currentWidget;
                    if (name === null) return;
                    try {
                        await context.save(); // what is kept is what is seen
                        const answer = await fetch(`${settings.baseUrl}course/reset`, {
                            ...settings.init,
                            method: "POST",
                            headers: { Authorization: `token ${settings.token}`, "Content-Type": "application/json" },
                            body: JSON.stringify({ name }),
                        });
                        const { message } = await answer.json();
                        if (answer.ok) await context.revert();
                        await say(message, answer.ok ? "success" : "error");
                    } catch (error) {
                        await say(`${name} could not be reset: ${error.message}`, "error");
                    }
                },
            });
            app.shell.currentChanged?.connect(() => app.commands.notifyCommandChanged(COMMAND));
        },
    };

    window._JUPYTERLAB = window._JUPYTERLAB || {};
    window._JUPYTERLAB["reset-to-course"] = {
        init: () => {},
        get: async () => () => ({ __esModule: true, default: plugin }),
    };
})();
