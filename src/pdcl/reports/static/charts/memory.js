// How memory was divided, and where its samples lie in what the network sees.
(() => {
  const pdcl = window.pdcl;
  const charts = pdcl.charts;

  charts.partition = {
    key: "partition",
    title: "Memory partition",
    missing: (run) => (run.partitions.counts.some((row) => row.length) ? null
      : run.story.events || !run.absent.result ? `${run.label} keeps no memory, or hasn't divided it yet.` : run.absent.result),
    note: () => "Samples each task holds after every task, and below how far that is from equal shares (0: uniform).",
    alt: (run) => `Memory partition. At the end: ${run.partitions.counts.at(-1).map((n, k) => `task ${k + 1} ${n}`).join(", ")}; ` +
      `distance from uniform ${pdcl.number(run.partitions.distance.at(-1))}.`,
    figure: (run) => {
      const { counts, distance } = run.partitions;
      const x = counts.map((_, j) => j + 1);
      const width = Math.max(...counts.map((row) => row.length));
      const bars = Array.from({ length: width }, (_, k) => ({ type: "bar", name: pdcl.plain(pdcl.taskName(run, k)), x, y: counts.map((row) => row[k] ?? null),
        marker: { color: pdcl.colour(k), line: { color: pdcl.theme.colours.surface, width: 1.5 } },
        text: counts.map((row) => (row[k] ? String(row[k]) : "")), textposition: "inside", insidetextanchor: "middle",
        textangle: 0, hovertemplate: `%{y} samples` }));
      const far = { type: "scatter", mode: "lines+markers", x, y: distance, yaxis: "y2", showlegend: false, cliponaxis: false,
        line: { color: pdcl.theme.colours.muted, width: 1.5 }, marker: { color: pdcl.theme.colours.ink, size: 6 }, hovertemplate: "%{y:.3f} from uniform" };
      const last = Math.max(run.story.planned ?? 0, counts.length) + 0.6;
      const top = Math.max(0.1, ...distance.filter(pdcl.known)) * 1.15;
      return { data: [...bars, far], layout: pdcl.layout({ barmode: "stack", bargap: 0.3, height: 360, legend: { ...pdcl.layout().legend, traceorder: "normal", y: -0.18 },
        xaxis: pdcl.axis("after task", { dtick: 1, range: [0.4, last], showgrid: false, anchor: "y2" }),
        yaxis: pdcl.axis("samples", { domain: [0.36, 1] }), yaxis2: pdcl.axis("distance", { domain: [0, 0.24], range: [0, top], nticks: 3 }) }) };
    },
    table: (run) => ({ head: ["after task", ...run.partitions.counts.at(-1).map((_, k) => pdcl.taskName(run, k)), "distance from uniform"],
      rows: run.partitions.counts.map((row, j) => [String(j + 1), ...run.partitions.counts.at(-1).map((_, k) => (k < row.length ? String(row[k]) : "")),
        pdcl.number(run.partitions.distance[j])]) }),
  };

  const sizes = (duals) => {
    const most = Math.max(...duals.filter(pdcl.known), 0);
    return duals.map((v) => (most > 0 ? 5 + 13 * Math.sqrt(Math.max(0, v || 0) / most) : 7));
  };
  const label = (run, y) => (y === null ? "" : `class ${run.labels[y] ?? y}, `);

  charts.map = {
    key: "map",
    title: "Map of stored samples",
    missing: (run) => (run.map ? null : run.absent.map),
    note: (run) => `${run.map.method} of what the last layer sees${run.map.x.length < run.map.of ? `, ${run.map.x.length} of ${run.map.of} samples` : ""}. ` +
      (run.map.dual.some((v) => v > 0) ? `Larger marker: larger dual${run.priced_by === "task" ? " of its task" : ""}.` : "No sample carries a dual."),
    alt: (run) => `${run.map.method} map of ${run.map.x.length} stored samples, coloured by task, sized by dual.`,
    figure: (run) => {
      const size = sizes(run.map.dual);
      const tasks = [...new Set(run.map.task)].sort((a, b) => a - b);
      const data = tasks.map((k) => {
        const here = run.map.task.map((t, i) => [t, i]).filter(([t]) => t === k).map(([, i]) => i);
        return { type: "scatter", mode: "markers", name: pdcl.plain(pdcl.taskName(run, k)), x: here.map((i) => run.map.x[i]), y: here.map((i) => run.map.y[i]),
          marker: { color: pdcl.colour(k), symbol: pdcl.marker(k), size: here.map((i) => size[i]), opacity: 0.78, line: { color: pdcl.theme.colours.surface, width: 0.8 } },
          hoverinfo: "text", hovertext: here.map((i) => pdcl.plain(`${label(run, run.map.label[i])}λ ${pdcl.number(run.map.dual[i])}`)) };
      });
      const bare = { showticklabels: false, showgrid: false, zeroline: false };
      return { data, layout: pdcl.layout({ height: 330, margin: { l: 8, r: 8, t: 8, b: 8 }, legend: { ...pdcl.layout().legend, y: -0.02 }, xaxis: bare, yaxis: bare }) };
    },
    table: (run) => ({ head: ["sample", "task", "class", "dual", "x", "y"], rows: run.map.x.map((x, i) => [String(i + 1), String(run.map.task[i] + 1),
      String(run.labels[run.map.label[i]] ?? run.map.label[i] ?? "–"), pdcl.number(run.map.dual[i]), pdcl.number(x), pdcl.number(run.map.y[i])]) }),
  };
})();
