// Elements, numbers and words. Text goes in as text, never as HTML: nothing in a run's files is trusted.
(() => {
  const pdcl = (window.pdcl = window.pdcl || {});
  const SVG = ["svg", "path", "line", "circle", "rect"];

  // el("p", {class: "note", text: "…", on: {click: f}, css: {width: "3px"}}, child, …)
  pdcl.el = (tag, attributes = {}, ...children) => {
    const node = SVG.includes(tag)
      ? document.createElementNS("http://www.w3.org/2000/svg", tag)
      : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (name === "text") node.textContent = value;
      else if (name === "on") for (const [event, f] of Object.entries(value)) node.addEventListener(event, f);
      else if (name === "css") for (const [key, each] of Object.entries(value)) node.style.setProperty(key, each);
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return node;
  };

  // plotly reads a little HTML in its texts; this makes any string mean itself there.
  pdcl.plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

  const known = (value) => typeof value === "number" && Number.isFinite(value);
  const minus = (text) => text.replace("-", "−");
  pdcl.known = known;
  pdcl.percent = (share, digits = 1) => (known(share) ? minus((100 * share).toFixed(digits)) : "–");
  pdcl.number = (value, digits = 3) => (known(value) ? minus(String(Number(value.toPrecision(digits)))) : "–");
  pdcl.signed = (share) => (known(share) ? (share >= 0 ? "+" : "") + pdcl.percent(share, 1) : "–");
  pdcl.estimate = ([mean, half]) =>
    known(half) ? `${pdcl.percent(mean)} ± ${pdcl.percent(half)}` : pdcl.percent(mean);

  pdcl.duration = (seconds) => {
    if (!known(seconds)) return "–";
    if (seconds < 100) return `${pdcl.number(seconds, 2)} s`;
    const minutes = Math.round(seconds / 60);
    return minutes < 100 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  };

  pdcl.short = (text, length = 28) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

  // What a task is called: its number, and its classes where the run told them.
  pdcl.taskName = (run, k) => {
    const task = run.story.tasks[k];
    const said = task ? task.classes.join(", ") || task.name : "";
    return said ? `${k + 1}: ${pdcl.short(said, 22)}` : `task ${k + 1}`;
  };

  pdcl.runName = (run) =>
    [run.stream, run.label, run.memory ? `memory ${run.memory}` : "no memory", `seed ${run.seed ?? "?"}`].join(" · ");

  pdcl.table = (head, rows, caption, kind = "") =>
    pdcl.el(
      "table",
      { class: `data ${kind}` },
      pdcl.el("caption", { class: "unseen", text: caption }),
      pdcl.el("thead", {}, pdcl.el("tr", {}, head.map((text) => pdcl.el("th", { scope: "col", text })))),
      pdcl.el("tbody", {}, rows.map((row) =>
        pdcl.el("tr", {}, row.map((cell, place) =>
          pdcl.el(place ? "td" : "th", { scope: place ? null : "row", text: cell ?? "–" })))))
    );
})();
