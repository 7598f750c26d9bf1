// Sorts and filters the table of students.
"use strict";
(() => {
  const table = document.getElementById("grades");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const form = document.getElementById("filter");
  const field = (name) => document.getElementById(name);
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  const names = new Map(rows.map((row) => [row, plain(row.cells[0].textContent)]));

  // Grades that are not known come last in either order.
  const order = (at, down) => (a, b) => {
    if (heads[at].dataset.kind === "text") return (down ? -1 : 1) * compare(names.get(a), names.get(b));
    const [x, y] = [a.cells[at].dataset.v, b.cells[at].dataset.v];
    if (x === "" || y === "") return (x === "") - (y === "");
    return (down ? -1 : 1) * (x - y);
  };

  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.ariaSort ? head.ariaSort === "ascending" : head.dataset.kind !== "text";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows.sort(order(at, down)));
    });
  });

  const fits = (cell, state, reason) =>
    (!state || (state === "late" ? "late" in cell.dataset : cell.dataset.w === state))
    && (!reason || cell.dataset.r === reason);

  const filter = () => {
    const [text, problem, state, reason] = ["find", "problem", "state", "reason"].map((name) => field(name).value);
    const words = plain(text).split(/\s+/).filter(Boolean);
    const at = problem && heads.findIndex((head) => head.textContent === problem);
    let count = 0;
    for (const row of rows) {
      const cells = at ? [row.cells[at]] : [...row.cells].slice(1, -1);
      const shown = words.every((word) => names.get(row).includes(word))
        && (!(state || reason) || cells.some((cell) => fits(cell, state, reason)));
      row.hidden = !shown;
      count += shown;
    }
    field("count").textContent = `${count} of ${rows.length} students`;
  };

  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  for (const button of document.querySelectorAll("button.show")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      form.reset();
      field("problem").value = button.dataset.problem;
      field("state").value = "failed";
      field("reason").value = button.dataset.reason;
      setTimeout(() => { filter(); field("students").scrollIntoView(); field("find").focus({ preventScroll: true }); });
    });
  }
})();
