// The report: finding, filters, table, overview, runs.
(() => {
  const pdcl = window.pdcl;
  const el = pdcl.el;
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = data.summary.groups;
  const labels = [...new Set(all.map((group) => group.label))].sort();
  const view = { all, groups: all, differences: data.summary.differences, baseline: data.summary.baselines[0] ?? null, order: (group) => labels.indexOf(group.label) };
  const filter = { stream: new Set(), label: new Set(), memory: new Set() };

  const passes = (each) => Object.entries(filter).every(([name, chosen]) => !chosen.size || chosen.has(String(each[name] ?? 0)));
  const ofRun = new Map(all.flatMap((group) => group.runs.map((id) => [id, group])));
  const matches = (run) => passes(ofRun.get(run.id) ?? run);

  const chips = (name, title) => {
    const values = [...new Set(all.map((group) => String(group[name] ?? 0)))].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
    if (values.length < 2) return null;
    return el("fieldset", { class: "chips" }, el("legend", { text: title }), values.map((value) => {
      const box = el("input", { type: "checkbox", name, value, on: { change: () => { box.checked ? filter[name].add(value) : filter[name].delete(value); update(); } } });
      return el("label", {}, box, el("span", { text: name === "memory" && value === "0" ? "none" : value }));
    }));
  };

  const baseline = () => {
    if (!view.baseline) return null;
    const select = el("select", { id: "baseline", on: { change: () => { view.baseline = select.value; update(); } } }, data.summary.baselines.map((text) => el("option", { value: text, text })));
    return el("label", { class: "field" }, el("span", { text: "Compare with" }), select);
  };

  const picker = pdcl.picker(data.runs, matches);
  const open = (id) => { picker.open(id); document.getElementById("runs-title").scrollIntoView({ block: "start" }); };
  const table = pdcl.resultsTable(view, open);
  const streams = el("div", { class: "streams" });
  const status = el("p", { class: "note", role: "status" });

  // One pair of charts per stream and preset: numbers of different streams share no axis.
  const overview = () => {
    const settings = [...new Set(view.groups.map((group) => JSON.stringify([group.stream, group.preset])))].map((text) => JSON.parse(text));
    streams.replaceChildren();
    for (const [stream, preset] of settings) {
      const here = { ...view, groups: view.groups.filter((group) => group.stream === stream && group.preset === preset) };
      const cards = pdcl.charts.overview(here.groups).map((chart) => pdcl.card(chart, here));
      streams.append(el("div", {}, settings.length > 1 ? el("h3", { text: stream + (preset && preset !== "auto" ? `, preset ${preset}` : "") }) : null,
        el("div", { class: "grid" }, cards.map((card) => card.node))));
      for (const card of cards) card.update(here);
    }
  };
  const update = () => {
    view.groups = all.filter(passes);
    status.textContent = `${view.groups.length} of ${all.length} rows`;
    table.fill();
    overview();
    picker.show();
  };

  const findings = data.summary.findings;
  const kind = findings.length === 1 ? findings[0].kind : "";
  const header = el("header", { class: "top" },
    el("div", { class: "brand" }, el("span", { class: "logo", text: "pdcl" }), el("h1", { text: data.title })),
    el("div", { class: "meta" }, el("span", { text: `${data.runs.length} runs · ${data.made}` }), pdcl.theme.control()));
  const finding = el("section", { class: `finding ${kind}`, "aria-label": "Finding" }, el("p", { class: "lead", text: data.summary.headline }),
    el("details", { class: "behind" }, el("summary", { text: findings.length > 1 ? "Setting by setting" : "How this was found" }),
      findings.length > 1 ? el("ul", {}, findings.map((each) => el("li", { class: each.kind, text: each.text }))) : null,
      el("p", { class: "note", text: "Differences are paired over the seeds that both methods have; a method counts as clearly above the others if every one of its differences is significant at 5 %, Holm-corrected. Joint training sees all data at once and is left out of the race." })));
  const leftOut = data.left_out.length ? el("details", { class: "behind" }, el("summary", { text: `Left out: ${data.left_out.length}` }), el("ul", {}, data.left_out.map((text) => el("li", { text })))) : null;

  document.getElementById("app").append(header, el("main", { id: "main" }, finding,
    el("section", { "aria-labelledby": "results-title" }, el("h2", { id: "results-title", text: "Results" }),
      el("div", { class: "filters" }, chips("stream", "Stream"), chips("label", "Method"), chips("memory", "Memory"), baseline()), status, table.node, leftOut, streams), picker.node),
    el("footer", { text: "Made by pdcl. Everything here is in this one file; nothing is loaded from elsewhere." }));
  update();
  // A run with duals shows the most; else the best one.
  const priced = all.find((group) => data.runs.find((run) => run.id === group.runs[0])?.story.duals.x.length);
  picker.open((priced ?? all[0]).runs[0]);
  document.documentElement.dataset.ready = "yes";
})();
