/* Saves of a document wait for one another.
 *
 * JupyterLab asks the server for the file's hash before it saves and again afterwards, and shows "File Changed: has changed on
 * disk", with a button that throws the student's edits away, if the first is not the last one it knows. Autosave does not wait for
 * a save in progress: where one takes longer than the interval (five seconds here, overrides.json), the next finds what the
 * first has just written, and takes it for another program's. A busy machine or a slow line to a GPU server is enough.
 *
 * What another program has written is still noticed: the question is asked as before, only later.
 *
 * Written by hand in the form that JupyterLab's own builds have (a container of webpack's module federation), so that nothing
 * needs to be built.
 */
(() => {
    const LONGEST = 60_000; // ms; a save whose answer was lost with the line holds nobody up for longer

    /** Puts a `save` that waits in place of the document's own. */
    function wait(context) {
        const save = context.save.bind(context);
        const late = () => new Promise(resolve => setTimeout(resolve, LONGEST));
        let running = null, next = null;
        context.save = () => {
            if (running === null) {
                const mine = save().finally(() => { if (running === mine) running = null; });
                return running = mine;
            }
            // One is enough for all who ask meanwhile, as it begins after them. If the one before fails, it has said so: this fails, too.
            next ??= Promise.race([running, late()]).finally(() => { running = next = null; }).then(() => context.save());
            return next;
        };
    }

    const waiting = new WeakSet();
    const plugin = {
        id: "one-save-at-a-time:plugin",
        autoStart: true,
        activate: app => {
            const extension = {
                createNew: (widget, context) => {
                    if (!waiting.has(context)) { // two views of a file have one context
                        waiting.add(context);
                        wait(context);
                    }
                },
            };
            for (const factory of ["Notebook", "Editor"]) app.docRegistry.addWidgetExtension(factory, extension);
        },
    };

    window._JUPYTERLAB = window._JUPYTERLAB || {};
    window._JUPYTERLAB["one-save-at-a-time"] = {
        init: () => {},
        get: async () => () => ({ __esModule: true, default: plugin }),
    };
})();
