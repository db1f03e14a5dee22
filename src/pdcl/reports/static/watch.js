// The live page: news come as server-sent events; a chosen run is fetched when it has news, at most once a second.
(() => {
  const pdcl = window.pdcl;
  const el = pdcl.el;
  const MOST = 6;
  const chosen = new Set();
  const details = new Map();
  const stamps = new Map();
  const maps = new Map();
  let focus = null;
  let panel = null;
  let timer = null;

  const banner = el("p", { class: "banner", role: "status", text: "Connecting …" });
  const tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Chosen runs" });
  const comparison = pdcl.card(pdcl.charts.comparison, []);
  const place = el("div", { id: "run" }, el("p", { class: "absent", text: "No run here yet. Start one, and it appears." }));

  const open = (id) => { if (!chosen.has(id)) chosen.clear(); chosen.add(id); focus = id; changed(); };
  const toggle = (id, on) => {
    if (on && chosen.size >= MOST) chosen.delete(chosen.values().next().value);
    on ? chosen.add(id) : chosen.delete(id);
    if (on || !chosen.has(focus)) focus = on ? id : [...chosen][0] ?? null;
    changed();
  };
  const list = pdcl.runList(open, toggle);
  const changed = () => { list.mark(chosen, focus); draw(); soon(0); };

  // The list needs no charts: their library, a few megabytes to parse, is asked for once the list stands.
  const loadCharts = () => {
    if (document.getElementById("plotly")) return;
    const script = el("script", { id: "plotly", src: "static/plotly.min.js" });
    script.onload = () => draw();
    document.head.append(script);
  };

  const draw = () => {
    if (!window.Plotly) return;
    const picked = [...chosen].map((id) => details.get(id)).filter(Boolean);
    tabs.replaceChildren(...picked.map((run) => el("button", { type: "button", role: "tab", "aria-selected": String(run.id === focus), "aria-controls": "run",
      text: pdcl.runName(run), on: { click: () => { focus = run.id; changed(); } } })));
    tabs.hidden = comparison.node.hidden = picked.length < 2;
    if (picked.length > 1) comparison.update(picked);
    const run = details.get(focus);
    if (!run) return;
    if (panel?.id !== run.id) {
      panel = pdcl.runPanel(run);
      place.replaceChildren(panel.node);
    }
    panel.update(run);
  };

  // The map takes longest, so it comes by itself and nothing waits for it.
  const withMap = async (run) => {
    if (run.status !== "finished" || !run.absent.map || (!run.samples && run.absent.samples)) return;
    if (!maps.has(run.id)) maps.set(run.id, fetch(`api/map/${encodeURIComponent(run.id)}`).then((answer) => answer.json()));
    try { run.map = await maps.get(run.id); } catch { maps.delete(run.id); return; }
    if (!run.map) run.absent.map = "The snapshot holds no features, or too few samples, to place on a map.";
    if (details.get(run.id) === run) draw();
  };

  // Only what has news is fetched; a hidden page waits.
  const fetchNews = async () => {
    timer = null;
    if (document.hidden) return;
    let more = false;
    for (const id of chosen) {
      const entry = list.rows.get(id);
      const stamp = entry && JSON.stringify([entry.row.stamp, entry.row.status]);
      if (!entry || stamps.get(id) === stamp) continue;
      try {
        const answer = await fetch(`api/run/${encodeURIComponent(id)}`);
        if (!answer.ok) continue;
        const run = await answer.json();
        details.set(id, run);
        withMap(run);
        run.partial ? (more = true) : stamps.set(id, stamp);
      } catch { return; }
    }
    for (const id of details.keys()) if (!chosen.has(id)) { details.delete(id); stamps.delete(id); }
    draw();
    if (more) soon(300);
  };
  const soon = (wait = 1000) => { timer ??= setTimeout(fetchNews, wait); };

  const say = (text, kind) => { banner.textContent = text; banner.className = `banner ${kind}`; };
  const connect = () => {
    const source = new EventSource("events");
    source.onmessage = (message) => {
      const { rows, ids } = JSON.parse(message.data);
      list.update(rows, ids);
      for (const id of [...chosen]) if (!list.rows.has(id)) { chosen.delete(id); details.delete(id); stamps.delete(id); }
      if (!chosen.size && list.first()) open(list.first());
      soon();
      document.documentElement.dataset.ready = "yes";
      requestAnimationFrame(() => setTimeout(loadCharts));
    };
    source.onopen = () => { stamps.clear(); say("Live", "live"); };
    source.onerror = () => {
      say("Connection lost; trying again", "lost");
      // A browser gives up on some errors by itself.
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, 1500);
    };
  };

  document.addEventListener("visibilitychange", () => document.hidden || soon(0));
  document.getElementById("app").append(
    el("header", { class: "top" }, el("div", { class: "brand" }, el("span", { class: "logo", text: "pdcl" }), el("h1", { text: document.body.dataset.directory })),
      el("div", { class: "meta" }, banner, pdcl.theme.control())),
    el("main", { id: "main" }, el("h2", { class: "unseen", text: "Runs" }), el("div", { class: "split" }, list.node, el("div", { class: "main" }, tabs, comparison.node, place))));
  tabs.hidden = comparison.node.hidden = true;
  connect();
})();
