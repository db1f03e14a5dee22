// What moved while the run learned: losses, duals, slacks.
(() => {
  const pdcl = window.pdcl;
  const charts = pdcl.charts;

  // A band behind every second task, and the tasks' names above.
  const bands = (run) => {
    const { band, muted } = pdcl.theme.colours;
    const shapes = run.story.tasks.filter((_, k) => k % 2).map((task) => ({ type: "rect", xref: "x", yref: "paper",
      x0: task.start, x1: task.start + task.steps, y0: 0, y1: 1, fillcolor: band, line: { width: 0 }, layer: "below" }));
    const few = run.story.tasks.length <= 8;
    const annotations = run.story.tasks.map((task, k) => ({ x: task.start + task.steps / 2, xref: "x", y: 1, yref: "paper",
      yanchor: "bottom", showarrow: false, font: { size: 10, color: muted },
      text: few ? pdcl.plain(pdcl.short(task.classes.join(", ") || task.name, 10)) : String(k + 1) }));
    return { shapes, annotations };
  };

  const timed = (run, title, more = {}) => {
    const { shapes, annotations } = bands(run);
    const { yaxis, marks = [], ...rest } = more;
    const last = run.story.tasks.at(-1);
    const range = last ? [0, last.start + last.steps] : undefined;
    return pdcl.layout({ xaxis: pdcl.axis("step", { showgrid: false, range }), yaxis: pdcl.axis(title, yaxis),
      shapes: [...shapes, ...marks], annotations, margin: { l: 52, r: 12, t: 26, b: 40 }, ...rest });
  };

  const line = (run, k, x, y, more = {}) => ({ type: "scatter", mode: "lines", name: pdcl.plain(pdcl.taskName(run, k)), x, y,
    line: { ...pdcl.style(k).line, width: 1.8 }, hovertemplate: "%{y:.3g}", connectgaps: false, ...more });

  const noEvents = (run, words) => (run.story.events ? words : run.absent.events);

  charts.loss = {
    key: "loss",
    title: "Loss while learning",
    missing: (run) => (run.story.loss.x.length ? null : noEvents(run, "No step has been told of yet.")),
    note: () => "Mean loss on the current task's batches, on a logarithmic scale.",
    alt: (run) => `Loss over ${run.story.tasks.length} tasks; the last value is ${pdcl.number(run.story.loss.y.at(-1))}.`,
    figure: (run) => {
      const { x, y } = run.story.loss;
      const data = run.story.tasks.map((task, k) => {
        const inside = x.map((v, i) => [v, i]).filter(([v]) => v !== null && v > task.start && v <= task.start + task.steps);
        return line(run, k, inside.map(([v]) => v), inside.map(([, i]) => y[i]), { showlegend: false });
      });
      return { data, layout: timed(run, "loss", { yaxis: { type: "log", dtick: 1 } }) };
    },
    table: (run) => ({ head: ["step", "loss"], rows: pairs(run.story.loss.x, [run.story.loss.y]) }),
  };

  charts.duals = {
    key: "duals",
    title: "Duals λ: the price of each tolerance",
    missing: (run) => (run.story.duals.x.length ? null : noEvents(run, `${run.label} has no duals.`)),
    note: () => "One line per past task. High: keeping that task costs the current one much. The shadow dual of the current task is in the legend.",
    alt: (run) => `Duals over time. At the end: ${run.story.duals.past.map((y, k) => `task ${k + 1} ${pdcl.number(y.at(-1))}`).join(", ")}.`,
    figure: (run) => {
      const { x, past, current } = run.story.duals;
      const data = past.map((y, k) => line(run, k, x, y));
      data.push({ ...line(run, 0, x, current), name: "current (shadow)", visible: "legendonly",
        line: { color: pdcl.theme.colours.muted, dash: "dot", width: 1.5 } });
      return { data, layout: timed(run, "λ", { yaxis: { rangemode: "tozero" } }) };
    },
    table: (run) => ({ head: ["step", ...run.story.duals.past.map((_, k) => `task ${k + 1}`), "current (shadow)"],
      rows: pairs(run.story.duals.x, [...run.story.duals.past, run.story.duals.current]) }),
  };

  // Slacks are tiny near the tolerance and large when a task begins: linear around 0, logarithmic beyond.
  const bend = (unit) => (v) => (pdcl.known(v) ? Math.asinh(v / unit) : null);
  const knee = (slacks) => {
    const all = slacks.flat().filter(pdcl.known).map(Math.abs).sort((a, b) => a - b);
    return Math.max(all[Math.floor(all.length / 3)] || 0, 1e-6);
  };
  const ticks = (slacks, unit) => {
    const values = slacks.flat().filter(pdcl.known);
    const [low, high] = [Math.min(...values, 0), Math.max(...values, 0)];
    const steps = [0];
    for (let power = Math.ceil(Math.log10(unit)); power < 6; power += 1) {
      const step = 10 ** power;
      if (step <= high * 1.5) steps.push(step);
      if (-step >= low * 1.5) steps.push(-step);
    }
    return steps;
  };

  charts.slacks = {
    key: "slacks",
    title: "Slacks: over the tolerance, or room",
    missing: (run) => (run.story.slacks.x.length ? null : noEvents(run, `${run.label} has no tolerances.`)),
    note: (run) => `Measured ${run.story.slacks.unit} minus tolerance: above the line a past task is over by so much, below it there is room. The axis bends away from 0.`,
    alt: (run) => `Slacks over time with the tolerance at 0. At the end: ${run.story.slacks.past.map((y, k) =>
      `task ${k + 1} ${y.at(-1) > 0 ? "over by" : "room"} ${pdcl.number(Math.abs(y.at(-1)))}`).join(", ")}.`,
    figure: (run) => {
      const { x, past, tolerances } = run.story.slacks;
      const unit = knee(past);
      const data = past.map((y, k) => line(run, k, x, y.map(bend(unit)), { hoverinfo: "text", hovertemplate: undefined,
        hovertext: y.map((v, i) => (pdcl.known(v) ? `${v > 0 ? "over by" : "room"} ${pdcl.number(Math.abs(v))} (tolerance ${pdcl.number(tolerances[k]?.[i])})` : "")) }));
      const steps = ticks(past, unit);
      const mark = { type: "line", xref: "paper", x0: 0, x1: 1, y0: 0, y1: 0, line: { color: pdcl.theme.colours.ink, width: 1.5 } };
      const layout = timed(run, "slack", { yaxis: { tickvals: steps.map(bend(unit)), ticktext: steps.map((v) => (v ? pdcl.number(v) : "tolerance")) }, marks: [mark] });
      return { data, layout };
    },
    table: (run) => ({ head: ["step", ...run.story.slacks.past.flatMap((_, k) => [`task ${k + 1} slack`, `task ${k + 1} tolerance`])],
      rows: pairs(run.story.slacks.x, run.story.slacks.past.flatMap((y, k) => [y, run.story.slacks.tolerances[k] || []])) }),
  };

  const pairs = (x, ys) => x.map((v, i) => [v, ...ys.map((y) => y[i])]).filter(([v]) => v !== null)
    .map(([v, ...rest]) => [String(Math.round(v)), ...rest.map((each) => pdcl.number(each, 4))]);
})();
