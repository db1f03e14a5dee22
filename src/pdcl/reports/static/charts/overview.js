// Many runs at once: accuracy and forgetting against memory, and chosen runs side by side.
(() => {
  const pdcl = window.pdcl;
  const charts = pdcl.charts;

  const metric = { accuracy: "mean_accuracy", forgetting: "mean_forgetting" };
  const sized = (group) => typeof group.memory === "number" && group.memory > 0;
  const bars = (values, more) => ({ type: "data", array: values.map((v) => (pdcl.known(v) ? 100 * v : 0)), thickness: 1.5, width: 4, ...more });

  // One memory size: a dot with its interval per method, the best on top.
  const dots = (groups, key, order) => {
    const ranked = [...groups].sort((a, b) => a[key][0] - b[key][0]);
    if (key === metric.forgetting) ranked.reverse();
    const data = ranked.map((group, place) => ({ type: "scatter", mode: "markers", x: [100 * group[key][0]], y: [place], showlegend: false,
      marker: { ...pdcl.style(order(group)).marker, size: 11 }, error_x: bars([group[key][1]], { color: pdcl.colour(order(group)) }),
      hoverinfo: "text", hovertext: [pdcl.plain(`${group.label}: ${pdcl.estimate(group[key])} %`)] }));
    const names = ranked.map((group) => pdcl.plain(pdcl.short(group.label, 26)));
    return { data, yaxis: pdcl.axis("", { tickvals: names.map((_, i) => i), ticktext: names, range: [-0.6, names.length - 0.4], tickfont: { size: 12, color: pdcl.theme.colours.ink } }),
      xaxis: pdcl.axis(`${key === metric.accuracy ? "mean accuracy" : "mean forgetting"}, %`), height: 110 + 38 * names.length };
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
    return { data, xaxis: pdcl.axis("memory, samples", { type: "log", tickvals: sizes, ticktext: sizes.map(String) }),
      yaxis: pdcl.axis(`${key === metric.accuracy ? "mean accuracy" : "mean forgetting"}, %`), height: 340 };
  };

  const versus = (name, title) => ({
    key: `${name}-memory`,
    title,
    missing: (view) => (view.groups.length ? null : "No finished run is left after filtering."),
    note: () => "Mean over seeds with its 95 % interval; without a bar, one seed.",
    alt: (view) => `${title}: ${view.groups.slice(0, 12).map((g) => `${g.label}, memory ${g.memory || "none"}: ${pdcl.estimate(g[metric[name]])} %`).join("; ")}.`,
    figure: (view) => {
      const sizes = new Set(view.groups.filter(sized).map((group) => group.memory));
      const { data, ...layout } = (sizes.size > 1 ? lines : dots)(view.groups, metric[name], view.order);
      return { data, layout: pdcl.layout(layout) };
    },
    table: (view) => ({ head: ["method", "memory", "mean %", "± 95 %", "seeds"], rows: view.groups.map((g) => [g.label, String(g.memory || "–"),
      pdcl.percent(g[metric[name]][0], 2), pdcl.percent(g[metric[name]][1], 2), String(g.seeds.length)]) }),
  });
  charts.accuracyVersus = versus("accuracy", "Accuracy against memory");
  charts.forgettingVersus = versus("forgetting", "Forgetting against memory");

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
