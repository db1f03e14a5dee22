// Which runs are looked at: a list to filter and tick, the comparison of those ticked, and one of them in full.
(() => {
  const pdcl = window.pdcl;
  const el = pdcl.el;
  const MOST = 8;

  pdcl.picker = (runs, matches) => {
    const chosen = new Set();
    let focus = null;
    const search = el("input", { type: "search", id: "run-search", placeholder: "Filter runs by any word", "aria-label": "Filter runs" });
    const list = el("div", { class: "runs" });
    const closed = new Set();
    const count = el("p", { class: "note", role: "status" });
    const tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Chosen runs" });
    const comparison = pdcl.card(pdcl.charts.comparison, []);
    const place = el("div", { id: "run", role: "tabpanel", "aria-live": "off" });
    const visible = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      return runs.filter((run) => matches(run) && words.every((word) => `${pdcl.runName(run)} ${run.name} ${run.preset}`.toLowerCase().includes(word)));
    };

    const item = (run) => {
      const box = el("input", { type: "checkbox", "aria-label": `Choose ${pdcl.runName(run)}`, on: { change: () => toggle(run, box.checked) } });
      box.checked = chosen.has(run.id);
      return el("li", { class: focus === run.id ? "focus" : null }, box,
        el("button", { type: "button", class: "pick", "aria-current": focus === run.id ? "true" : null, on: { click: () => open(run.id) } },
          el("span", { text: pdcl.runName(run) }), el("b", { text: pdcl.percent(run.mean_accuracy) })));
    };
    // By method, so that a hundred runs are a dozen lines.
    const group = (label, own) => {
      const details = el("details", { open: closed.has(label) ? null : "" }, el("summary", {}, el("b", { text: label }), el("span", { class: "note", text: ` ${own.length} run${own.length === 1 ? "" : "s"}` })),
        el("ul", {}, own.map(item)));
      details.addEventListener("toggle", () => (details.open ? closed.delete(label) : closed.add(label)));
      return details;
    };
    const show = () => {
      const found = visible();
      const labels = [...new Set(found.map((run) => run.label))].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
      list.replaceChildren(...labels.map((label) => group(label, found.filter((run) => run.label === label))));
      count.textContent = `${found.length} of ${runs.length} runs; ${chosen.size} chosen to compare (at most ${MOST})`;
    };
    const toggle = (run, on) => {
      if (on && chosen.size >= MOST) chosen.delete(chosen.values().next().value);
      on ? chosen.add(run.id) : chosen.delete(run.id);
      if (on || !chosen.has(focus)) focus = on ? run.id : [...chosen][0] ?? focus;
      draw();
    };
    const open = (id) => { if (!chosen.has(id)) chosen.clear(); chosen.add(id); focus = id; draw(); };

    const draw = () => {
      show();
      const picked = runs.filter((run) => chosen.has(run.id));
      tabs.replaceChildren(...picked.map((run) => el("button", { type: "button", role: "tab", "aria-selected": String(run.id === focus), "aria-controls": "run",
        text: pdcl.runName(run), on: { click: () => { focus = run.id; draw(); } } })));
      tabs.hidden = comparison.node.hidden = picked.length < 2;
      if (picked.length > 1) comparison.update(picked);
      const run = runs.find((each) => each.id === focus);
      if (!run || place.firstChild?.dataset?.run === run.id) return;
      const panel = pdcl.runPanel(run);
      panel.node.dataset.run = run.id;
      place.replaceChildren(panel.node);
      panel.update(run);
    };
    search.addEventListener("input", show);
    const node = el("section", { class: "picker", "aria-labelledby": "runs-title" }, el("h2", { id: "runs-title", text: "Runs" }),
      el("div", { class: "split" }, el("div", { class: "side" }, search, count, list), el("div", { class: "main" }, tabs, comparison.node, place)));
    return { node, open, show, draw };
  };
})();
