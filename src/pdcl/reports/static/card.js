// A chart on a card: title, what it shows in words, the chart, and the table behind it.
(() => {
  const pdcl = window.pdcl;
  const el = pdcl.el;
  const CONFIG = { responsive: true, displaylogo: false, displayModeBar: false };
  const MOST_ROWS = 400;
  const drawn = new Map();
  let count = 0;

  const draw = (node, make) => {
    drawn.set(node, make);
    const figure = make();
    return Plotly.react(node, figure.data, figure.layout, CONFIG);
  };
  pdcl.theme.changed.push(() => {
    for (const [node, make] of drawn) {
      if (node.isConnected) draw(node, make);
      else drawn.delete(node);
    }
  });

  const behind = (chart, run) => {
    const details = el("details", { class: "behind" }, el("summary", { text: "Table" }));
    details.addEventListener("toggle", () => {
      if (!details.open || details.querySelector("table")) return;
      const { head, rows } = chart.table(run());
      details.append(el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${chart.title}, table` },
        pdcl.table(head, rows.slice(0, MOST_ROWS), chart.title)));
      if (rows.length > MOST_ROWS) details.append(el("p", { class: "note", text: `The first ${MOST_ROWS} of ${rows.length} rows.` }));
    });
    return details;
  };

  // chart: {key, title, wide, note(run), alt(run), missing(run), figure(run, state) or body(run), table(run), choices}
  pdcl.card = (chart, run) => {
    const id = `card-${++count}`;
    const state = { choice: chart.choices ? chart.choices[0][0] : null };
    let current = run;
    const note = el("p", { class: "note" });
    const plot = el("div", { class: chart.body ? "body" : "plot", role: chart.body ? null : "img" });
    const empty = el("p", { class: "absent" });
    const table = chart.table ? behind(chart, () => current) : null;
    const heading = el("h4", { id, text: chart.title });
    const node = el("section", { class: `card${chart.wide ? " wide" : ""}`, "data-chart": chart.key, "aria-labelledby": id },
      el("header", {}, heading, chart.choices ? choices(chart, state, () => card.update(current)) : null),
      note, empty, plot, table);

    const card = {
      node,
      update(fresh) {
        current = fresh;
        const missing = chart.missing ? chart.missing(fresh) : null;
        empty.textContent = missing || "";
        empty.hidden = !missing;
        plot.hidden = Boolean(missing);
        node.classList.toggle("empty", Boolean(missing));
        if (table) { table.hidden = Boolean(missing); if (!table.open) table.querySelector(".scroll")?.remove(); }
        note.textContent = missing || !chart.note ? "" : chart.note(fresh, state);
        note.hidden = !note.textContent;
        if (missing) { drawn.delete(plot); return; }
        if (chart.alt) plot.setAttribute("aria-label", chart.alt(fresh));
        if (chart.body) plot.replaceChildren(...[chart.body(fresh)].flat());
        else if (node.isConnected) draw(plot, () => chart.figure(current, state));
      },
    };
    return card;
  };

  const choices = (chart, state, update) =>
    el("div", { class: "choices", role: "group", "aria-label": `${chart.title}: what to show` },
      chart.choices.map(([value, text], place) => {
        const button = el("button", { type: "button", text, "aria-pressed": String(place === 0) });
        button.addEventListener("click", () => {
          state.choice = value;
          for (const other of button.parentNode.children) other.setAttribute("aria-pressed", String(other === button));
          update();
        });
        return button;
      }));
})();
