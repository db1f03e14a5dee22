// One run: its numbers, then every chart. Charts know their file; one whose file is absent says so.
(() => {
  const pdcl = window.pdcl;
  const el = pdcl.el;
  const ORDER = ["promises", "accuracy", "partition", "duals", "slacks", "loss", "confusion", "map", "notes", "samples", "gate", "config"];

  const fact = (name, value) => el("div", {}, el("dt", { text: name }), el("dd", { text: value }));
  const facts = (run) => [
    fact("accuracy", run.mean_accuracy === null ? "–" : `${pdcl.percent(run.mean_accuracy)} %`),
    fact("forgetting", run.mean_forgetting === null ? "–" : `${pdcl.percent(run.mean_forgetting)} %`),
    fact("tasks", String(run.story.tasks.length || run.accuracy.class_il.length || "–")),
    fact("memory", String(run.memory || "none")),
    fact("seed", String(run.seed ?? "–")),
    fact("preset", run.preset || "–"),
    fact("time", pdcl.duration(run.seconds)),
  ];

  pdcl.runPanel = (run, order = ORDER) => {
    const title = el("h3", { id: `run-${run.id}` });
    const list = el("dl", { class: "facts" });
    const cards = order.map((key) => pdcl.card(pdcl.charts[key], run));
    const node = el("article", { class: "run", "aria-labelledby": `run-${run.id}` },
      el("header", { class: "run-head" }, title, list), el("div", { class: "grid" }, cards.map((card) => card.node)));
    return {
      node,
      id: run.id,
      // Drawn once it stands in the page: a chart needs its width.
      update(fresh) {
        title.textContent = pdcl.runName(fresh);
        list.replaceChildren(...facts(fresh));
        for (const card of cards) card.update(fresh);
      },
    };
  };
})();
