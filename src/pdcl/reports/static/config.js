// How a run was asked for, and how to ask for it again; what it said on the way; what the gate said.
(() => {
  const pdcl = window.pdcl;
  const el = pdcl.el;
  const charts = pdcl.charts;
  const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value) ?? "–");

  const copied = (text) => {
    const button = el("button", { type: "button", class: "copy", text: "Copy", "aria-live": "polite" });
    button.addEventListener("click", async () => {
      try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
      catch { getSelection().selectAllChildren(button.previousSibling); button.textContent = "Selected"; }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    return button;
  };

  charts.config = {
    key: "config",
    title: "Repeat this run",
    wide: true,
    missing: (run) => (run.command ? null : "config.json is not whole, so the run can't be repeated from it."),
    body: (run) => {
      const chosen = run.config.options.filter(([, , source]) => source === "user" || source === "study");
      const rest = Object.entries(run.config.rest).map(([name, value]) => [name, shown(value), ""]);
      const options = run.config.options.map(([name, value, source]) => [name, shown(value), shown(source)]);
      return [
        el("div", { class: "command" }, el("code", { text: run.command }), copied(run.command)),
        el("p", { class: "note", text: `Chosen by the user or a study: ${chosen.map(([name]) => name).join(", ") || "nothing"}. All else comes from the method and its preset.` }),
        el("details", { class: "behind" }, el("summary", { text: "Full configuration" }), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Full configuration" },
          pdcl.table(["option", "value", "from"], [...options, ...rest], "Full configuration"))),
      ];
    },
  };

  charts.notes = {
    key: "notes",
    title: "What the run said",
    missing: (run) => (run.story.notes.length || run.problems.length || run.story.bad ? null : "No warnings."),
    body: (run) => {
      const names = { infeasible: "not met", warning: "warning", failed: "failed" };
      const told = run.story.notes.map((note) => [names[note.kind] || note.kind, `task ${note.task + 1}: ${note.text}`]);
      const damaged = run.story.bad ? [["damaged", `${run.story.bad} lines of events.jsonl can't be read and were left out`]] : [];
      const all = [...told, ...run.problems.map((text) => ["problem", text]), ...damaged];
      return el("ul", { class: "notes" }, all.map(([kind, text]) => el("li", {}, el("span", { class: `tag ${kind.replace(" ", "-")}`, text: kind }), el("span", { text }))));
    },
  };

  const COLUMNS = ["criterion", "group", "limit", "estimate", "lower", "upper", "samples", "verdict"];
  const SKIPPED = ["verdict", "schema", "exit_code"];
  const cell = (value) => (typeof value === "number" ? pdcl.number(value, 4) : shown(value));
  charts.gate = {
    key: "gate",
    title: "Gate verdict",
    missing: (run) => (run.gate ? null : "This run has not been put to the gate: there is no verdict.json."),
    body: (run) => {
      const verdict = String(run.gate.verdict ?? "unknown").toUpperCase();
      const groups = Array.isArray(run.gate.rows) ? run.gate.rows.filter((each) => each && typeof each === "object") : [];
      const columns = COLUMNS.filter((name) => groups.some((each) => name in each));
      const plain = Object.entries(run.gate).filter(([name, value]) => !SKIPPED.includes(name) && typeof value !== "object");
      const look = run.gate.look && typeof run.gate.look === "object" ? [["look", `${cell(run.gate.look.number)} of ${cell(run.gate.look.of)}`]] : [];
      const facts = [...look, ...plain];
      return [
        el("p", { class: `verdict ${verdict.toLowerCase().replace(/[^a-z]/g, "")}`, text: verdict }),
        groups.length ? el("div", { class: "scroll" }, pdcl.table(columns, groups.map((each) => columns.map((name) => cell(each[name]))), "Gate verdict by group")) : null,
        el("dl", { class: "facts" }, facts.map(([name, value]) => el("div", {}, el("dt", { text: name.replaceAll("_", " ") }), el("dd", { text: cell(value) })))),
      ].filter(Boolean);
    },
  };
})();
