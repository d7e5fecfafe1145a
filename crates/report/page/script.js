// Draws the plots in the reader's theme, and lets texts be copied. `data-drawn` on the root element
// counts the plots that are there; it is set when all are.
"use strict";
(() => {
  const root = document.documentElement;
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const plots = read("plots");
  const themes = read("themes");
  const toggle = document.getElementById("theme");

  const draw = ({ id, spec }) =>
    vegaEmbed(`[id="${id}"] .plot`, spec, {
      mode: "vega-lite",
      renderer: "svg",
      config: themes[root.dataset.theme],
      downloadFileName: id,
      actions: { export: { svg: true, png: true }, source: false, compiled: false, editor: false },
    });

  const show = async (theme) => {
    root.dataset.theme = theme;
    delete root.dataset.drawn;
    toggle.textContent = theme === "dark" ? "Light" : "Dark";
    const drawn = await Promise.all(plots.map(draw));
    root.dataset.drawn = drawn.length;
  };

  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", (event) => show(event.matches ? "dark" : "light"));
  toggle.addEventListener("click", () => show(root.dataset.theme === "dark" ? "light" : "dark"));

  for (const box of document.querySelectorAll(".copy")) {
    const button = box.querySelector("button");
    button.addEventListener("click", async () => {
      const text = box.querySelector("code");
      try {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = "Copied";
      } catch {
        // Without leave to write, the reader copies what is selected.
        getSelection().selectAllChildren(text);
        button.textContent = "Selected";
      }
    });
  }

  show(dark.matches ? "dark" : "light");
})();
