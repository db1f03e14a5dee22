// Move one limit, see the error of every task: from solves that were made when the page was written.
(() => {
  const pdcl = window.pdcl;
  const el = pdcl.el;
  const percent = (value) => (value === null ? "–" : `${(100 * value).toFixed(1)} %`);

  pdcl.sliders = (sliders) => {
    const written = (each, place) => (each.unit === "error" ? percent(each.limits[place]) : each.limits[place].toPrecision(3));
    const now = (each) => each.limits.indexOf(each.limit);
    const rows = (each, place) => each.errors[place].map((error, task) =>
      [each.tasks[task], percent(each.errors[now(each)][task]), percent(error)]);
    const one = (each) => {
      const told = el("output", { text: written(each, now(each)) });
      const box = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Errors if ${each.name} had another limit` });
      const draw = (place) => {
        told.textContent = written(each, place);
        box.replaceChildren(pdcl.table(["task", "error now", "error then"], rows(each, place), "Errors on guards"));
      };
      const range = el("input", { type: "range", min: 0, max: each.limits.length - 1, step: 1, value: now(each),
        "aria-label": `Limit of ${each.name}`, on: { input: (event) => draw(Number(event.target.value)) } });
      draw(now(each));
      return el("div", { class: "card", "data-slider": each.name }, el("h3", { text: each.name }),
        el("label", {}, "limit ", told, " ", range), box);
    };
    return el("section", { "aria-labelledby": "sliders" }, el("h2", { id: "sliders", text: "What if a limit were another?" }),
      el("p", { class: "note", text: "Each place is a solve with all other limits as they are. Errors are those of guards, which steer: a little better than new data." }),
      el("div", { class: "grid" }, sliders.map(one)));
  };
})();
