// Runs inside a report that is open in a browser: `run.sh` appends it to a copy of the page. Looks at
// what a reader would see, in both themes, and tells its findings to the page that frames it.
"use strict";
(async () => {
  const root = document.documentElement;
  const failures = [];
  let checks = 0;
  const check = (holds, what) => {
    checks += 1;
    if (!holds) failures.push(what);
  };
  addEventListener("error", (event) => check(false, `error: ${event.message}`));
  addEventListener("unhandledrejection", (event) => check(false, `rejection: ${event.reason}`));
  const until = async (holds, what) => {
    for (let tries = 0; tries < 600; tries += 1) {
      if (holds()) return;
      await new Promise((wake) => setTimeout(wake, 50));
    }
    check(false, `never came: ${what}`);
  };
  const drawn = () => until(() => root.dataset.drawn !== undefined, "plots");

  // Two boxes overlap if they share more than a pixel in both directions.
  const overlap = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  const visible = (text) => {
    for (let node = text; node.tagName !== "svg"; node = node.parentNode) {
      if (["opacity", "fill-opacity"].some((name) => node.getAttribute(name) === "0")) return false;
    }
    return text.textContent.trim() !== "";
  };
  const luminance = (colour) => {
    const linear = colour.match(/[\d.]+/g).slice(0, 3).map((part) => {
      const value = part / 255;
      return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };

  const MARKS = ".mark-line path, .mark-area path, .mark-rect path, .mark-symbol path";
  const TEXT_MIN = 11;
  const seen = (mark) => {
    const box = mark.getBBox();
    return mark.closest(".mark-line") === null ? box.width > 0 && box.height > 0 : box.width > 0;
  };
  const look = (figure, theme) => {
    const name = `${theme} ${figure.id}`;
    const svg = figure.querySelector(".plot svg.marks");
    check(svg !== null, `${name}: no SVG`);
    if (svg === null) return;
    const marks = [...svg.querySelectorAll(MARKS)].filter((mark) => mark.closest(".role-mark"));
    check(marks.some(seen), `${name}: no marks`);
    const texts = [...svg.querySelectorAll("text")].filter(visible);
    const boxes = texts.map((text) => [text.textContent, text.getBoundingClientRect()]);
    const all = svg.getBoundingClientRect();
    const paper = svg.closest("figure").getBoundingClientRect();
    check(all.right <= paper.right + 1, `${name}: wider than its card`);
    boxes.forEach(([text, box], at) => {
      const inside = box.left >= all.left - 1 && box.right <= all.right + 1 &&
        box.top >= all.top - 1 && box.bottom <= all.bottom + 1;
      check(inside, `${name}: "${text}" is cut off`);
      boxes.slice(at + 1).forEach(([other, otherBox]) =>
        check(!overlap(box, otherBox), `${name}: "${text}" overlaps "${other}"`));
    });
    const axes = svg.querySelectorAll(".role-axis-title text");
    check(axes.length > 0 && [...axes].every((axis) => axis.textContent.includes("(")),
      `${name}: an axis without a unit`);
    const background = getComputedStyle(svg.closest("figure")).backgroundColor;
    const faint = texts.filter((text) => contrast(getComputedStyle(text).fill, background) < 4.5);
    check(faint.length === 0, `${name}: faint text "${faint[0]?.textContent}"`);
    const small = texts.filter((text) => parseFloat(getComputedStyle(text).fontSize) < TEXT_MIN);
    check(small.length === 0, `${name}: small text "${small[0]?.textContent}"`);
  };

  // What is behind an element: the first of its ancestors that is painted.
  const paper = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    const painted = !colour.endsWith(", 0)") || element === root;
    return painted ? colour : paper(element.parentElement);
  };
  const says = (element) => [...element.childNodes].some((node) =>
    node.nodeType === Node.TEXT_NODE && node.textContent.trim() !== "");
  const readableWords = (theme) => {
    const elements = [...document.body.querySelectorAll("*:not(svg *, script, style)")];
    const shown = elements.filter((element) => says(element) && element.checkVisibility() && element.closest("summary svg") === null);
    check(shown.length > 0, `${theme}: no words`);
    for (const element of shown) {
      const style = getComputedStyle(element);
      const name = `${theme} ${element.tagName} "${element.textContent.trim().slice(0, 40)}"`;
      check(parseFloat(style.fontSize) >= TEXT_MIN, `${name}: ${style.fontSize}`);
      check(contrast(style.color, paper(element)) >= 4.5, `${name}: ${style.color} on ${paper(element)}`);
      const box = element.getBoundingClientRect();
      const fits = element.closest(".scroll") !== null || (box.left >= -1 && box.right <= innerWidth + 1);
      check(fits, `${name}: cut off at ${Math.round(box.right)} of ${innerWidth}`);
    }
  };
  const links = () => {
    for (const link of document.querySelectorAll("a[href^='#']")) {
      const id = link.getAttribute("href").slice(1);
      if (id !== "") check(document.getElementById(id) !== null, `no place "${id}"`);
    }
  };

  // Tables of numbers may go beyond their card, which scrolls; what is to be read in lines may not.
  const readable = () => {
    const tables = [...document.querySelectorAll(".scroll")].filter((table) => table.querySelector("td.words"));
    for (const table of tables) {
      const name = table.querySelector("thead").textContent;
      check(table.scrollWidth <= table.clientWidth + 1, `${name}: ${table.scrollWidth} wide in ${table.clientWidth}`);
    }
  };

  // Where stacks are compared, each line says on which device it is; a page with warnings shows the first of them.
  const cautions = () => {
    const subtitle = document.querySelector("header p").textContent;
    if (subtitle.startsWith("Comparison")) {
      const heads = [...document.querySelectorAll("#summary thead th")].map((head) => head.textContent);
      check(heads.includes("device"), `no device in ${heads}`);
    }
    for (const list of document.querySelectorAll("aside.warnings")) {
      check(list.querySelector("li")?.checkVisibility() === true, "hidden warnings");
    }
  };

  // The menu makes its link when the mouse goes down. What is saved is caught on its way into a blob,
  // for reading one takes real time, and the browser's clock is virtual.
  const saved = async (figure, format) => {
    const link = [...figure.querySelectorAll(".vega-actions a")].find((a) => a.textContent.includes(format));
    check(link !== undefined, `${figure.id}: the menu has no ${format}`);
    if (link === undefined) return "";
    const RealBlob = Blob;
    let text = "";
    globalThis.Blob = class extends RealBlob {
      constructor(parts, options) {
        super(parts, options);
        text = parts.join("");
      }
    };
    link.dispatchEvent(new MouseEvent("mousedown", { cancelable: true }));
    await until(() => link.href !== "" && !link.href.endsWith("#"), `${figure.id} as ${format}`);
    globalThis.Blob = RealBlob;
    return text || link.href;
  };

  const run = async () => {
    await drawn();
    const figures = [...document.querySelectorAll("figure")];
    check(figures.length > 0 && Number(root.dataset.drawn) === figures.length, "a plot is not drawn");
    const toggle = document.getElementById("theme");
    for (const theme of ["dark", "light"]) {
      if (root.dataset.theme !== theme) {
        toggle.click();
        await drawn();
      }
      check(root.dataset.theme === theme, `no ${theme} theme`);
      figures.forEach((figure) => look(figure, theme));
      readableWords(theme);
    }
    links();
    cautions();
    if (innerWidth >= 800) readable();
    for (const figure of figures) {
      const svg = await saved(figure, "SVG");
      check(svg.includes("<svg") && svg.includes("<text"), `${figure.id}: the saved SVG is empty`);
    }
    check((await saved(figures[0], "PNG")).startsWith("data:image/png;base64,"), "the saved PNG is empty");
    check(root.scrollWidth <= innerWidth, `the page is ${root.scrollWidth} wide in a window of ${innerWidth}`);
  };
  await run().catch((error) => check(false, `the check itself failed: ${error.stack}`));
  const found = failures.length === 0 ? "" : `\n${failures.join("\n")}`;
  parent.postMessage(`${checks - failures.length} passed, ${failures.length} failed${found}`, "*");
})();
