// What became of every stated limit, as a table.
(() => {
  const pdcl = window.pdcl;
  const el = pdcl.el;
  const charts = (pdcl.charts = pdcl.charts || {});
  const GOOD = ["kept", "learned"];
  const BAD = ["BROKEN", "NOT LEARNED"];

  pdcl.verdictKind = (verdict) => (GOOD.includes(verdict) ? "good" : BAD.includes(verdict) ? "bad" : "open");

  // told: {headings, rows: [{cells, verdict}], notes}, as Python wrote it.
  pdcl.promisesTable = (told) => [
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Limits, table" },
      el("table", { class: "data promises" },
        el("caption", { class: "unseen", text: "Limits" }),
        el("thead", {}, el("tr", {}, told.headings.map((text) => el("th", { scope: "col", text })))),
        el("tbody", {}, told.rows.map((row) => el("tr", { class: pdcl.verdictKind(row.verdict) }, row.cells.map((text, place) =>
          el(place ? "td" : "th", { scope: place ? null : "row", text }))))))),
    ...told.notes.map((text) => el("p", { class: "note", text })),
  ];

  charts.promises = {
    key: "promises",
    title: "Limits: kept, broken or undecided",
    wide: true,
    missing: (run) => (run.story.promises ? null : run.story.events ? "No limit was judged: none is stated, or there are no witnesses." : run.absent.events),
    note: () => "After the newest task, on samples that were never trained on.",
    body: (run) => pdcl.promisesTable(run.story.promises),
  };
})();
