// The theme is the system's until the switch is used; then it is kept for the pages of this folder, where that can be.
"use strict";
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const read = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const keep = (theme) => { try { localStorage.setItem("theme", theme); } catch { /* not kept then */ } };
  const chosen = read();
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const show = () => button.setAttribute("aria-pressed", String(isDark()));
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      keep(root.dataset.theme);
      show();
    });
    dark.addEventListener("change", show);
    show();
  });
})();
