// Accuracy of every task after every task, and which class was taken for which.
(() => {
  const pdcl = window.pdcl;
  const charts = (pdcl.charts = pdcl.charts || {});
  const MOST_NUMBERS = 14;

  const heat = (z, text, x, y, hover, more) => {
    const small = Math.max(x.length, y.length) > MOST_NUMBERS;
    return {
      data: [{ type: "heatmap", z, x: x.map((_, i) => i), y: y.map((_, i) => i), text, texttemplate: small ? "" : "%{text}",
        hovertext: hover, hoverinfo: "text", zmin: 0, zmax: 1, colorscale: pdcl.scale(), showscale: false, xgap: 2, ygap: 2,
        textfont: { size: x.length > 8 ? 10 : 12 } }],
      layout: pdcl.layout({
        height: 330,
        margin: { l: 40, r: 8, t: 8, b: 40 },
        xaxis: pdcl.axis(more.x, { tickvals: x.map((_, i) => i), ticktext: x.map(pdcl.plain), showgrid: false, constrain: "domain" }),
        yaxis: pdcl.axis(more.y, { tickvals: y.map((_, i) => i), ticktext: y.map(pdcl.plain), showgrid: false, autorange: "reversed" }),
      }),
    };
  };

  const matrix = (run, state) => run.accuracy[state?.choice || "class_il"];
  const names = (run, count) => Array.from({ length: count }, (_, k) => pdcl.taskName(run, k));
  const learned = (rows) => rows.map((row, j) => row.map((value, i) => (i <= j ? value : null)));

  charts.accuracy = {
    key: "accuracy",
    title: "Accuracy matrix",
    choices: [["class_il", "Class-IL"], ["task_il", "Task-IL"]],
    missing: (run) => (matrix(run).length ? null : run.absent.result || "No task has ended yet."),
    note: (_, state) => state.choice === "task_il"
      ? "Accuracy in %, choosing among the task's own classes."
      : "Accuracy in %, choosing among all classes. Each row: after learning one more task.",
    alt: (run) => {
      const last = matrix(run).at(-1).slice(0, matrix(run).length);
      return `Accuracy matrix. After the last task: ${last.map((v, k) => `task ${k + 1} ${pdcl.percent(v)} %`).join(", ")}.`;
    },
    figure: (run, state) => {
      const rows = learned(matrix(run, state));
      const width = Math.max(...rows.map((row) => row.length));
      while (rows.length < width) rows.push(Array(width).fill(null));
      const text = rows.map((row) => row.map((v) => (pdcl.known(v) ? (100 * v).toFixed(0) : "")));
      const hover = rows.map((row, j) => row.map((v, i) => pdcl.known(v)
        ? pdcl.plain(`task ${pdcl.taskName(run, i)} after task ${j + 1}: ${pdcl.percent(v)} %`) : ""));
      return heat(rows, text, names(run, width), rows.map((_, j) => `after ${j + 1}`), hover, { x: "task", y: "" });
    },
    table: (run) => ({
      head: ["after task", ...names(run, matrix(run)[0].length).map((name) => `${name}, class-IL / task-IL %`)],
      rows: matrix(run).map((row, j) => [String(j + 1),
        ...row.map((v, i) => (i <= j ? `${pdcl.percent(v)} / ${pdcl.percent(run.accuracy.task_il[j]?.[i])}` : ""))]),
    }),
  };

  const labels = (run) => run.confusion.map((_, k) => String(run.labels[k] ?? k));
  charts.confusion = {
    key: "confusion",
    title: "Confusion",
    missing: (run) => (run.confusion.length ? null : run.absent.result || "The run has no confusion matrix: it doesn't tell classes apart."),
    note: () => "Share of each true class (rows) that was said to be each class (columns), at the end.",
    alt: (run) => `Confusion matrix of ${run.confusion.length} classes. Most often mistaken: ${worst(run)}.`,
    figure: (run) => {
      const shares = run.confusion.map((row) => { const all = row.reduce((a, b) => a + b, 0) || 1; return row.map((v) => v / all); });
      const names = labels(run);
      const text = run.confusion.map((row) => row.map((v) => (v ? String(v) : "")));
      const hover = run.confusion.map((row, i) => row.map((v, j) => pdcl.plain(`${v} of class ${names[i]} said to be ${names[j]}`)));
      return heat(shares, text, names, names, hover, { x: "said", y: "true" });
    },
    table: (run) => ({ head: ["true \\ said", ...labels(run)], rows: run.confusion.map((row, i) => [labels(run)[i], ...row.map(String)]) }),
  };

  const worst = (run) => {
    const pairs = run.confusion.flatMap((row, i) => row.map((v, j) => [i === j ? 0 : v, i, j]));
    const found = pairs.sort((a, b) => b[0] - a[0]).slice(0, 3).filter((pair) => pair[0]);
    return found.map(([v, i, j]) => `${labels(run)[i]} for ${labels(run)[j]} (${v})`).join(", ") || "none";
  };
})();
