// A model's limits over its updates: all verdicts at a glance, then each task by itself.
(() => {
  const pdcl = window.pdcl;
  const KINDS = ["open", "good", "bad"];
  const WORDS = { open: "undecided", good: "kept or learned", bad: "BROKEN or not learned" };
  const SYMBOLS = { open: "circle-open", good: "circle", bad: "x" };
  const colours = () => (pdcl.theme.dark ? { open: "#56606b", good: "#3ecf9f", bad: "#ff9a57" } : { open: "#c3c9d0", good: "#009E73", bad: "#D55E00" });

  const called = (update) => [update.name, ["learned", "adopted"].includes(update.how) ? "" : update.how].filter(Boolean).join(" ");
  const updateName = (life, k) => `${k + 1}: ${called(life.updates[k])}`;
  const ticks = (life) => {
    const every = Math.max(1, Math.ceil(life.updates.length / 12));
    const shown = life.updates.map((_, k) => k).filter((k) => k % every === 0);
    return { tickvals: shown, ticktext: shown.map((k) => pdcl.plain(pdcl.short(called(life.updates[k]), 18))), range: [-0.5, life.updates.length - 0.5] };
  };

  pdcl.charts.verdicts = {
    key: "verdicts",
    title: "Every limit after every update",
    wide: true,
    note: () => "One row per task, one column per update. Green: kept or learned. Orange: broken or not learned. Grey: undecided. Empty: nothing was measured, since the task was not there yet, had no limit, or the update was refused or rolled back.",
    alt: (life) => `Verdicts of ${life.tasks.length} tasks over ${life.updates.length} updates; the table has them in words.`,
    figure: (life) => {
      const shade = colours();
      const found = life.tasks.map((task) => life.updates.map((_, k) => task.points.find((point) => point.update === k) ?? null));
      const steps = KINDS.flatMap((kind, k) => [[k / 3, shade[kind]], [(k + 1) / 3, shade[kind]]]);
      const data = [{ type: "heatmap", z: found.map((row) => row.map((point) => (point ? KINDS.indexOf(pdcl.verdictKind(point.verdict)) : null))),
        x: life.updates.map((_, k) => k), y: life.tasks.map((_, k) => k), zmin: -0.5, zmax: 2.5, colorscale: steps, xgap: 2, ygap: 2,
        text: found.map((row, i) => row.map((point, k) => (point ? pdcl.plain(`${life.tasks[i].name} after ${updateName(life, k)}: ${point.sentence}`) : ""))),
        hovertemplate: "%{text}<extra></extra>", colorbar: { tickvals: [0, 1, 2], ticktext: KINDS.map((kind) => WORDS[kind]), thickness: 12, outlinewidth: 0 }, showscale: window.innerWidth > 700 }];
      const names = life.tasks.map((task) => pdcl.plain(pdcl.short(task.name, 18)));
      return { data, layout: pdcl.layout({ xaxis: pdcl.axis("update", { ...ticks(life), showgrid: false }),
        yaxis: pdcl.axis("", { tickvals: names.map((_, k) => k), ticktext: names, autorange: "reversed", showgrid: false }),
        height: Math.min(900, 110 + 26 * life.tasks.length) }) };
    },
    table: (life) => ({ head: ["task", "update", "limit", "then", "now", "verdict"],
      rows: life.tasks.flatMap((task) => task.points.map((point) => [task.name, updateName(life, point.update), point.written, number(point, point.then), number(point, point.now), point.sentence])) }),
  };

  const number = (point, value) => (pdcl.known(value) ? (point.unit === "error" ? `${value.toFixed(1)} %` : pdcl.number(value)) : "–");

  // One card per task: what was measured, with its interval, and the limit as a line.
  pdcl.taskLife = (task, place) => ({
    key: `life-${place}`,
    title: task.name,
    missing: () => (task.points.some((point) => pdcl.known(point.now)) ? null : "It has no witnesses, so nothing was measured."),
    alt: () => `${task.name}: ${task.points.map((point) => `${number(point, point.now)} (${point.verdict})`).join(", ")}.`,
    figure: (life) => {
      const shade = colours();
      // A limit may have another unit than what the task was asked to reach when it was new.
      const points = task.points.filter((point) => point.unit === task.unit);
      const x = points.map((point) => point.update);
      const ink = pdcl.theme.colours.ink;
      const bar = (name, sign) => points.map((point) => (pdcl.known(point[name]) && pdcl.known(point.now) ? Math.max(0, sign * (point[name] - point.now)) : 0));
      const limit = { type: "scatter", mode: "lines+markers", name: "limit", x, y: points.map((point) => (point.new ? null : point.limit)),
        marker: { symbol: "line-ew-open", size: 18, color: ink, line: { width: 1.5 } },
        line: { color: ink, dash: "dash", width: 1.5, shape: "hv" }, hovertemplate: "limit %{y:.3g}<extra></extra>" };
      const now = { type: "scatter", mode: "lines+markers", name: "measured", x, y: points.map((point) => point.now), line: { color: pdcl.colour(0), width: 1.5 },
        marker: { size: 9, symbol: points.map((point) => SYMBOLS[pdcl.verdictKind(point.verdict)]), color: points.map((point) => (pdcl.verdictKind(point.verdict) === "open" ? pdcl.theme.colours.muted : shade[pdcl.verdictKind(point.verdict)])), line: { color: ink, width: 1 } },
        error_y: { type: "data", symmetric: false, array: bar("high", 1), arrayminus: bar("low", -1), color: pdcl.theme.colours.muted, thickness: 1, width: 3 },
        text: points.map((point) => pdcl.plain(`${updateName(life, point.update)}: ${number(point, point.now)}, ${point.sentence}`)), hovertemplate: "%{text}<extra></extra>" };
      return { data: [limit, now], layout: pdcl.layout({ height: 240, showlegend: false, xaxis: pdcl.axis("", { ...ticks(life), showgrid: false }),
        yaxis: pdcl.axis(task.unit === "error" ? "error, %" : "loss", { rangemode: "tozero" }) }) };
    },
    table: (life) => ({ head: ["update", "limit", "at most", "then", "now", "verdict"],
      rows: task.points.map((point) => [updateName(life, point.update), point.written, number(point, point.limit), number(point, point.then), number(point, point.now), point.sentence]) }),
  });
})();
