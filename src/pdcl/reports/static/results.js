// The table that a report opens with: filter it, sort it, choose what to compare with.
(() => {
  const pdcl = window.pdcl;
  const el = pdcl.el;
  const best = (groups, key, sign) => Math.max(...groups.map((group) => sign * (group[key][0] ?? -Infinity)));

  // A dot with its interval on a common scale: seen before it is read.
  const whisker = ([mean, half], low, high, k) => {
    const x = (v) => `${(100 * (Math.min(Math.max(v, low), high) - low)) / (high - low || 1)}%`;
    const svg = el("svg", { class: "whisker", "aria-hidden": "true", height: "14", width: "100%" },
      el("line", { x1: "0", x2: "100%", y1: "7", y2: "7", class: "rail" }));
    if (pdcl.known(half)) svg.append(el("line", { x1: x(mean - half), x2: x(mean + half), y1: "7", y2: "7", stroke: pdcl.colour(k), "stroke-width": "3", "stroke-linecap": "round" }));
    if (pdcl.known(mean)) svg.append(el("circle", { cx: x(mean), cy: "7", r: "4.5", fill: pdcl.colour(k) }));
    return svg;
  };

  const difference = (found) => {
    if (!found) return el("td", { class: "number", text: "–" });
    const { mean, low, high, clear, n } = found.accuracy;
    const range = pdcl.known(low) ? `${pdcl.signed(low)} to ${pdcl.signed(high)}` : "one shared seed";
    return el("td", { class: `number${clear ? " clear" : ""}`, title: `${range}, ${n} shared seeds, against ${found.against}` },
      el("b", { text: pdcl.signed(mean) }), el("small", { text: range }));
  };

  const row = (group, view, scale, open) => {
    const k = view.order(group);
    const found = view.differences.find((each) => view.all[each.group] === group && each.baseline === view.baseline);
    const name = el("button", { type: "button", class: "link", text: group.label, title: "Show its first run",
      on: { click: () => open(group.runs[0]) } });
    return el("tr", { class: scale.best === group.mean_accuracy[0] ? "leading" : null },
      el("th", { scope: "row" }, el("span", { class: "swatch", css: { background: pdcl.colour(k) } }), name),
      el("td", { text: group.stream + (group.preset && group.preset !== "auto" ? `, ${group.preset}` : "") }),
      el("td", { class: "number", text: String(group.memory || "–") }),
      el("td", { class: "number wide" }, el("b", { text: pdcl.estimate(group.mean_accuracy) }), whisker(group.mean_accuracy, scale.low, scale.high, k)),
      el("td", { class: "number", text: pdcl.estimate(group.mean_forgetting) }),
      el("td", { class: "number", text: pdcl.percent(group.task_il[0]) }),
      view.baseline ? difference(found) : null,
      el("td", { class: "number", text: String(group.seeds.length) }),
      el("td", { class: "number" }, el("span", { text: pdcl.duration(group.seconds[0]) }), el("small", { text: `${pdcl.number(group.peak_memory_mb[0], 3)} MB` })));
  };

  const HEAD = [["method", "label"], ["stream", "stream"], ["memory", "memory"], ["accuracy %", "mean_accuracy"], ["forgetting %", "mean_forgetting"],
    ["task-IL %", "task_il"], null, ["seeds", "seeds"], ["cost / run", "seconds"]];
  const value = (group, key) => {
    const found = group[key];
    if (key === "seeds") return found.length;
    return Array.isArray(found) ? found[0] ?? -1 : found ?? 0;
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));

  pdcl.resultsTable = (view, open) => {
    const sort = { key: null, up: false };
    const body = el("tbody");
    const head = el("tr");
    const fill = () => {
      const groups = sort.key ? [...view.groups].sort((a, b) => (sort.up ? 1 : -1) * compare(value(a, sort.key), value(b, sort.key))) : view.groups;
      const far = pdcl.farBehind(groups, "mean_accuracy");
      const low = Math.min(...groups.filter((group) => !far.includes(group)).map(({ mean_accuracy: [mean, half] }) => (mean ?? 1) - (half ?? 0)));
      const high = Math.max(...groups.map(({ mean_accuracy: [mean, half] }) => (mean ?? 0) + (half ?? 0)));
      const scale = { low: Math.max(0, low - 0.02), high: Math.min(1, high + 0.02), best: best(groups, "mean_accuracy", 1) };
      body.replaceChildren(...groups.map((group) => row(group, view, scale, open)));
      head.replaceChildren(...HEAD.filter((each) => each || view.baseline).map((each) => column(each)));
    };
    const column = (each) => {
      if (!each) return el("th", { scope: "col", class: "number", text: `Δ to ${view.baseline}` });
      const [text, key] = each;
      const mark = sort.key === key ? (sort.up ? " ↑" : " ↓") : "";
      return el("th", { scope: "col", class: ["label", "stream"].includes(key) ? null : "number", "aria-sort": mark ? (sort.up ? "ascending" : "descending") : null },
        el("button", { type: "button", class: "sort", text: text + mark, on: { click: () => { sort.up = sort.key === key ? !sort.up : ["label", "stream", "memory"].includes(key); sort.key = key; fill(); } } }));
    };
    const node = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Results" },
      el("table", { class: "results" }, el("caption", { class: "unseen", text: "Mean accuracy, forgetting, difference and cost by method, memory and stream" }), el("thead", {}, head), body));
    pdcl.theme.changed.push(fill);
    fill();
    return { node, fill };
  };
})();
