// The runs of a directory as they stand: how far, how long still, how it went. Only rows that changed are redrawn.
(() => {
  const pdcl = window.pdcl;
  const el = pdcl.el;
  const RANK = { running: 0, failed: 1, unreadable: 2, stopped: 3, finished: 4 };
  const WORDS = { running: "running", failed: "failed", unreadable: "unreadable", stopped: "stopped", finished: "finished" };

  pdcl.runList = (choose, toggle) => {
    const rows = new Map();
    const search = el("input", { type: "search", id: "run-search", placeholder: "Filter runs by any word", "aria-label": "Filter runs" });
    const status = el("select", { id: "status", "aria-label": "Status" }, ["all", ...Object.keys(WORDS)].map((text) => el("option", { value: text, text })));
    const count = el("p", { class: "note", role: "status" });
    const list = el("ul", { class: "runs live" });
    let chosen = new Set();
    let focus = null;

    const said = (row) => {
      if (row.status === "finished") return `${pdcl.percent(row.mean_accuracy)} %`;
      if (row.status === "running") return row.left === null ? "starting" : `${pdcl.duration(row.left)} left`;
      return row.status === "failed" || row.status === "unreadable" ? row.status : `${Math.round(100 * row.progress)} %`;
    };
    const where = (row) => {
      if (row.status === "failed") return row.cause;
      if (row.problems.length) return row.problems[0];
      return [row.place, row.task && row.status !== "finished" ? `task ${row.task}${row.tasks ? ` of ${row.tasks}` : ""}` : "", row.name].filter(Boolean).join(" · ");
    };
    const make = () => {
      const box = el("input", { type: "checkbox" });
      const [dot, title, right, under] = ["dot", "title", "right", "under"].map((name) => el("span", { class: name }));
      const bar = el("progress", { max: "1" });
      const pick = el("button", { type: "button", class: "pick" }, el("span", { class: "line" }, dot, title, right), bar, under);
      return { node: el("li", {}, box, pick), box, pick, dot, title, right, under, bar };
    };
    const fill = (entry) => {
      const { row, parts } = entry;
      parts.dot.className = `dot ${row.status}`;
      parts.dot.title = WORDS[row.status] || row.status;
      parts.title.textContent = pdcl.runName(row);
      parts.right.textContent = said(row);
      parts.under.textContent = where(row);
      parts.bar.value = row.progress;
      parts.bar.setAttribute("aria-label", `${Math.round(100 * row.progress)} % done`);
      parts.bar.hidden = row.status === "finished" || row.status === "unreadable";
      parts.box.setAttribute("aria-label", `Choose ${pdcl.runName(row)}`);
    };
    const mark = () => {
      for (const [id, { parts }] of rows) {
        parts.box.checked = chosen.has(id);
        parts.node.classList.toggle("focus", id === focus);
        parts.pick.setAttribute("aria-current", String(id === focus));
      }
    };
    const sift = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const { row, parts } of rows.values()) {
        const text = `${pdcl.runName(row)} ${row.name} ${row.place} ${row.status}`.toLowerCase();
        parts.node.hidden = !(words.every((word) => text.includes(word)) && (status.value === "all" || row.status === status.value));
        shown += !parts.node.hidden;
      }
      const kinds = Object.keys(WORDS).map((kind) => [kind, [...rows.values()].filter(({ row }) => row.status === kind).length]).filter(([, n]) => n);
      count.textContent = `${shown} of ${rows.size} runs: ${kinds.map(([kind, n]) => `${n} ${kind}`).join(", ") || "none yet"}`;
    };
    const order = () => {
      const sorted = [...rows.values()].sort((a, b) => RANK[a.row.status] - RANK[b.row.status] || pdcl.runName(a.row).localeCompare(pdcl.runName(b.row), undefined, { numeric: true }));
      sorted.forEach(({ parts }, place) => { if (list.children[place] !== parts.node) list.insertBefore(parts.node, list.children[place] ?? null); });
    };

    search.addEventListener("input", sift);
    status.addEventListener("change", sift);
    return {
      node: el("div", { class: "side" }, el("div", { class: "sift" }, search, status), count, list),
      rows,
      update(fresh, ids) {
        for (const row of fresh) {
          const entry = rows.get(row.id) ?? { parts: make() };
          if (!rows.has(row.id)) {
            entry.parts.box.addEventListener("change", () => toggle(row.id, entry.parts.box.checked));
            entry.parts.pick.addEventListener("click", () => choose(row.id));
          }
          entry.row = row;
          rows.set(row.id, entry);
          fill(entry);
        }
        const there = new Set(ids);
        for (const [id, { parts }] of rows) if (!there.has(id)) { parts.node.remove(); rows.delete(id); }
        order();
        sift();
        mark();
      },
      mark(set, id) { chosen = set; focus = id; mark(); },
      first: () => [...rows.values()].sort((a, b) => RANK[a.row.status] - RANK[b.row.status] || b.row.stamp - a.row.stamp)[0]?.row.id ?? null,
    };
  };
})();
