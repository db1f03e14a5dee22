// What memory holds: real samples by task, those with the highest dual first.
(() => {
  const pdcl = window.pdcl;
  const el = pdcl.el;
  const SIZE = 36;

  const said = (run, row, i) => {
    const name = row.y[i] === null ? "" : `class ${run.labels[row.y[i]] ?? row.y[i]}`;
    return run.samples.priced ? `${name}${name ? ", " : ""}λ ${pdcl.number(row.dual[i])}` : name;
  };

  const image = (row, i, title) => {
    const { url, width, height, count } = row.strip;
    return el("span", { class: "thumb", title, css: { "background-image": `url(${url})`, width: `${SIZE}px`, height: `${(SIZE * height) / width}px`,
      "background-size": `${SIZE * count}px ${(SIZE * height) / width}px`, "background-position": `${-SIZE * i}px 0` } });
  };

  const signal = (row, i, title, k) => {
    const [low, high] = row.outlines[i];
    const x = (place) => (64 * place) / Math.max(1, low.length - 1);
    const y = (value) => 16 - (14 * value) / 100;
    const there = high.map((v, place) => `${place ? "L" : "M"}${x(place).toFixed(1)} ${y(v).toFixed(1)}`);
    const back = low.map((v, place) => `L${x(place).toFixed(1)} ${y(v).toFixed(1)}`).reverse();
    const path = el("path", { d: `${there.join("")}${back.join("")}Z`, fill: pdcl.colour(k), stroke: pdcl.colour(k), "stroke-width": "0.7" });
    return el("span", { class: "thumb wave", title }, el("svg", { viewBox: "0 0 64 32", "aria-hidden": "true" }, path));
  };

  const line = (run, row) => {
    const many = row.count > row.y.length ? `${row.y.length} of ${row.count}` : `${row.count}`;
    const items = row.y.map((_, i) => (row.strip ? image(row, i, said(run, row, i)) : signal(row, i, said(run, row, i), row.task)));
    const range = run.samples.priced ? `, λ from ${pdcl.number(row.dual[0])} down to ${pdcl.number(row.dual.at(-1))}` : "";
    return el("div", { class: "held" },
      el("div", { class: "name" }, el("span", { class: "swatch", css: { background: pdcl.colour(row.task) } }),
        el("b", { text: pdcl.taskName(run, row.task) }), el("small", { text: many })),
      el("div", { class: "thumbs", role: "img", "aria-label": `${many} samples of task ${pdcl.taskName(run, row.task)}${range}` }, items));
  };

  pdcl.charts.samples = {
    key: "samples",
    title: "What memory holds",
    wide: true,
    missing: (run) => (run.samples ? null : run.absent.samples),
    note: (run) => (run.samples.priced ? "Stored samples by task, the highest dual first." : "Stored samples by task; none carries a dual of its own."),
    body: (run) => run.samples.tasks.map((row) => line(run, row)),
    table: (run) => ({ head: ["task", "sample", "class", "dual"], rows: run.samples.tasks.flatMap((row) => row.y.map((y, i) =>
      [pdcl.taskName(run, row.task), String(i + 1), String(run.labels[y] ?? y ?? "–"), pdcl.number(row.dual[i])])) }),
  };
})();
