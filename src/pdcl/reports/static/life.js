// The page of one model: the newest table, every limit over time, and every update.
(() => {
  const pdcl = window.pdcl;
  const el = pdcl.el;
  const life = JSON.parse(document.getElementById("data").textContent);
  const MOST = 60;

  const fact = (name, value) => el("div", {}, el("dt", { text: name }), el("dd", { text: String(value) }));
  const learned = life.updates.filter((update) => ["learned", "adopted"].includes(update.how)).length;
  const count = (kind) => life.newest.rows.filter((row) => pdcl.verdictKind(row.verdict) === kind).length;
  const lead = () => {
    if (!life.newest) return "No limit is stated.";
    const broken = count("bad");
    const rest = `${count("good")} kept or learned, ${count("open")} undecided`;
    return broken ? `${broken} of ${life.newest.rows.length} limits broken or new tasks not learned; ${rest}.` : `No limit is known to be broken: ${rest}.`;
  };

  // For who decides: what follows from the verdicts. The numbers stand in the rows.
  const advice = () => {
    if (!life.newest) return "To have something judged, state a limit: tolerance=\"+2pt\".";
    if (count("bad")) return "What to do: go back (pdcl rollback), give the task more memory, or loosen its limit; its row says how far.";
    return count("open") ? "What to do: nothing yet. Where a row is undecided, it says how many witnesses would decide; an audit set decides more." : "What to do: nothing.";
  };

  const header = el("header", { class: "top" },
    el("div", { class: "brand" }, el("span", { class: "logo", text: "pdcl" }), el("h1", { text: life.title })),
    el("div", { class: "meta" }, el("span", { text: life.made }), pdcl.theme.control()));
  const finding = el("section", { class: "finding", "aria-label": "Limits now" }, el("p", { class: "lead", text: lead() }), el("p", { class: "note", text: advice() }),
    el("dl", { class: "facts" }, fact("method", life.method), fact("tasks", learned), fact("updates", life.updates.length), fact("classes", life.classes)));
  const now = life.newest ? el("section", { "aria-labelledby": "now" }, el("h2", { id: "now", text: "Limits now" }),
    el("div", { class: "card wide", "data-chart": "promises" }, pdcl.promisesTable(life.newest))) : null;

  const tasks = life.tasks.slice(-MOST);
  const cards = tasks.length ? [pdcl.charts.verdicts, ...tasks.map(pdcl.taskLife)].map((chart) => pdcl.card(chart, life)) : [];
  const hidden = life.tasks.length - tasks.length;
  const over = cards.length ? el("section", { "aria-labelledby": "time" }, el("h2", { id: "time", text: "Over time" }),
    el("p", { class: "note", text: "Points are what witnesses show, with their interval; the dashed line is the limit. A cross is broken, a full circle kept, an open one undecided." + (hidden ? ` The newest ${MOST} tasks; ${hidden} older ones are in the table of verdicts.` : "") }),
    el("div", { class: "grid" }, cards.map((card) => card.node))) : null;
  const updates = el("section", { "aria-labelledby": "updates" }, el("h2", { id: "updates", text: "Updates" }),
    el("div", { class: "card wide" }, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Updates, table" },
      pdcl.table(["update", "task", "how", "when (UTC)", "samples", "test score", "limits"], life.updates.map((update, k) =>
        [String(k + 1), update.name, update.how, update.when.slice(0, 16).replace("T", " "), update.samples ? String(update.samples) : "–", pdcl.number(update.score), update.note || "–"]), "Updates", "sentences"))));

  const gates = life.gates.length ? el("section", { "aria-labelledby": "gates" }, el("h2", { id: "gates", text: "What the gate said" }),
    el("div", { class: "card wide", "data-chart": "gates" }, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Gate, table" },
      pdcl.table(["update", "task", "group", "limit", "before", "now", "drop", "verdict"], life.gates, "What the gate said", "whole")))) : null;

  document.getElementById("app").append(header, el("main", { id: "main" }, finding, now, life.sliders.length ? pdcl.sliders(life.sliders) : null, over, updates, gates),
    el("footer", { text: "Made by pdcl. Everything here is in this one file; nothing is loaded from elsewhere." }));
  for (const card of cards) card.update(life);
  document.documentElement.dataset.ready = "yes";
})();
