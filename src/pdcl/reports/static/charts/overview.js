// Many runs at once: accuracy and forgetting against memory, and chosen runs side by side.
(() => {
  const pdcl = window.pdcl;
  const charts = pdcl.charts;

  const metric = { accuracy: "mean_accuracy", forgetting: "mean_forgetting" };
  const sized = (group) => typeof group.memory === "number" && group.memory > 0;
  const bars = (values, more) => ({ type: "data", array: values.map((v) => (pdcl.known(v) ? 100 * v : 0)), thickness: 1.5, width: 4, ...more });

  // The part of an axis where methods differ. One that is far behind all others (finetune, as a rule) would squeeze them
  // into a corner: it is left outside, with its value told at the edge.
  const FAR = 3;
  const frame = (groups, key) => {
    const sign = key === metric.accuracy ? 1 : -1;
    const ends = groups.filter((group) => pdcl.known(group[key][0])).map((group) => [sign * group[key][0], group]).sort((a, b) => a[0] - b[0]);
    const behind = [];
    while (ends.length > 2 && ends[1][0] - ends[0][0] > FAR * Math.max(ends.at(-1)[0] - ends[1][0], 0.02)) behind.push(ends.shift()[1]);
    if (!behind.length) return { behind, range: undefined };
    const inside = ends.flatMap(([, group]) => [group[key][0] - (group[key][1] ?? 0), group[key][0] + (group[key][1] ?? 0)]).map((v) => 100 * v);
    const pad = 0.08 * (Math.max(...inside) - Math.min(...inside)) || 1;
    return { behind, range: [Math.min(...inside) - (sign > 0 ? 3 : 1) * pad, Math.max(...inside) + (sign > 0 ? 1 : 3) * pad] };
  };
  pdcl.farBehind = (groups, key) => frame(groups, key).behind;
  const outside = (group, key, at) => ({ ...at, text: pdcl.plain(`${at.named ? `${group.label} ` : ""}${pdcl.percent(group[key][0])} %`), showarrow: false,
    font: { size: 11, color: pdcl.theme.colours.ink } });

  // One memory size: a dot with its interval per method, the best on top.
  const dots = (groups, key, order) => {
    const ranked = [...groups].sort((a, b) => a[key][0] - b[key][0]);
    if (key === metric.forgetting) ranked.reverse();
    const { behind, range } = frame(groups, key);
    const edge = key === metric.accuracy ? { x: 0, xanchor: "left" } : { x: 1, xanchor: "right" };
    const annotations = behind.map((group) => outside(group, key, { ...edge, xref: "paper", y: ranked.indexOf(group) }));
    for (const note of annotations) note.text = key === metric.accuracy ? `◂ ${note.text}` : `${note.text} ▸`;
    const data = ranked.map((group, place) => ({ type: "scatter", mode: "markers", x: [100 * group[key][0]], y: [place], showlegend: false,
      marker: { ...pdcl.style(order(group)).marker, size: 11 }, error_x: bars([group[key][1]], { color: pdcl.colour(order(group)) }),
      hoverinfo: "text", hovertext: [pdcl.plain(`${group.label}: ${pdcl.estimate(group[key])} %`)] }));
    const names = ranked.map((group) => pdcl.plain(pdcl.short(group.label, 26)));
    return { data, yaxis: pdcl.axis("", { tickvals: names.map((_, i) => i), ticktext: names, range: [-0.6, names.length - 0.4], tickfont: { size: 12, color: pdcl.theme.colours.ink } }),
      xaxis: pdcl.axis(`${key === metric.accuracy ? "mean accuracy" : "mean forgetting"}, %`, range ? { range } : {}), annotations, height: 110 + 38 * names.length };
  };

  const lines = (groups, key, order) => {
    const sizes = [...new Set(groups.filter(sized).map((group) => group.memory))].sort((a, b) => a - b);
    const labels = [...new Set(groups.map((group) => group.label))];
    const data = labels.map((label) => {
      const own = groups.filter((group) => group.label === label).sort((a, b) => a.memory - b.memory);
      const bare = !sized(own[0]);
      const x = bare ? [sizes[0], sizes.at(-1)] : own.map((group) => group.memory);
      const points = bare ? [own[0], own[0]] : own;
      const look = pdcl.style(order(own[0]));
      return { type: "scatter", mode: bare ? "lines" : "lines+markers", name: pdcl.plain(label), x, y: points.map((group) => 100 * group[key][0]),
        ...look, error_y: bare ? undefined : bars(points.map((group) => group[key][1]), { color: look.line.color }),
        hovertemplate: "%{y:.1f} % at %{x}" };
    });
    const { behind, range } = frame(groups, key);
    const edge = key === metric.accuracy ? { y: 0, yanchor: "bottom" } : { y: 1, yanchor: "top" };
    const annotations = behind.map((group, place) => outside(group, key, { ...edge, named: true, x: 1, xanchor: "right", xref: "paper", yref: "paper", yshift: (key === metric.accuracy ? 14 : -14) * place }));
    for (const note of annotations) note.text = `${key === metric.accuracy ? "▾" : "▴"} ${note.text}`;
    return { data, xaxis: pdcl.axis("memory, samples", { type: "log", tickvals: sizes, ticktext: sizes.map(String) }),
      yaxis: pdcl.axis(`${key === metric.accuracy ? "mean accuracy" : "mean forgetting"}, %`, range ? { range } : {}), annotations, height: 340 };
  };

  const varies = (groups) => new Set(groups.filter(sized).map((group) => group.memory)).size > 1;
  const versus = (name, title) => ({
    key: `${name}-memory`,
    title,
    missing: (view) => (view.groups.length ? null : "No finished run is left after filtering."),
    note: () => "Mean over seeds with its 95 % interval; without a bar, one seed.",
    alt: (view) => `${title}: ${view.groups.slice(0, 12).map((g) => `${g.label}, memory ${g.memory || "none"}: ${pdcl.estimate(g[metric[name]])} %`).join("; ")}.`,
    figure: (view) => {
      const { data, ...layout } = (varies(view.groups) ? lines : dots)(view.groups, metric[name], view.order);
      return { data, layout: pdcl.layout(layout) };
    },
    table: (view) => ({ head: ["method", "memory", "mean %", "± 95 %", "seeds"], rows: view.groups.map((g) => [g.label, String(g.memory || "–"),
      pdcl.percent(g[metric[name]][0], 2), pdcl.percent(g[metric[name]][1], 2), String(g.seeds.length)]) }),
  });
  // Only where memory varies is there anything to hold against it.
  charts.overview = (groups) => ["accuracy", "forgetting"].map((name) => {
    const named = name[0].toUpperCase() + name.slice(1);
    return versus(name, varies(groups) ? `${named} against memory` : `${named} by method`);
  });

  const means = (run) => run.accuracy.class_il.map((row, j) => {
    const seen = row.slice(0, j + 1).filter(pdcl.known);
    return seen.length ? seen.reduce((a, b) => a + b, 0) / seen.length : null;
  });
  charts.comparison = {
    key: "comparison",
    title: "Chosen runs, task by task",
    wide: true,
    missing: (runs) => (runs.some((run) => run.accuracy.class_il.length) ? null : "No chosen run has finished a task yet."),
    note: () => "Mean accuracy over the tasks learned so far, choosing among all classes.",
    alt: (runs) => `Mean accuracy task by task: ${runs.map((run) => `${pdcl.runName(run)} ends at ${pdcl.percent(means(run).at(-1))} %`).join("; ")}.`,
    figure: (runs) => ({
      data: runs.map((run, place) => ({ type: "scatter", mode: "lines+markers", name: pdcl.plain(pdcl.runName(run)), x: means(run).map((_, j) => j + 1),
        y: means(run).map((v) => (v === null ? null : 100 * v)), ...pdcl.style(place), hovertemplate: "%{y:.1f} %" })),
      layout: pdcl.layout({ height: 320, xaxis: pdcl.axis("after task", { dtick: 1, showgrid: false }), yaxis: pdcl.axis("mean accuracy, %") }),
    }),
    table: (runs) => ({ head: ["after task", ...runs.map(pdcl.runName)], rows: Array.from({ length: Math.max(...runs.map((run) => means(run).length)) },
      (_, j) => [String(j + 1), ...runs.map((run) => pdcl.percent(means(run)[j]))]) }),
  };
})();
