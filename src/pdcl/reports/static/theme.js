// Light, dark, or as the system has it; and the colours that charts take from it.
(() => {
  const pdcl = window.pdcl;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const LIGHT = { ink: "#1b1f24", muted: "#5b6470", line: "#e4e6e9", band: "rgba(27,31,36,0.035)", surface: "#ffffff",
    low: "#f3f6f9", high: "#0072B2", eighth: "#1b1f24" };
  const DARK = { ink: "#e8eaed", muted: "#a3adb8", line: "#2b323b", band: "rgba(255,255,255,0.035)", surface: "#171b21",
    low: "#1d242c", high: "#2489c5", eighth: "#e8eaed" };
  let printing = false;

  const stored = () => {
    try { return localStorage.getItem("pdcl-theme") || "auto"; } catch { return "auto"; }
  };
  const apply = (choice) => {
    if (choice === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
  };

  const theme = (pdcl.theme = {
    choice: stored(),
    get dark() { return !printing && (theme.choice === "auto" ? system.matches : theme.choice === "dark"); },
    get colours() { return theme.dark ? DARK : LIGHT; },
    changed: [],
    choose(choice) {
      theme.choice = choice;
      try { localStorage.setItem("pdcl-theme", choice); } catch { /* a file may have no storage */ }
      apply(choice);
      for (const f of theme.changed) f();
    },
  });

  theme.control = () => {
    const names = { auto: "System", light: "Light", dark: "Dark" };
    const select = pdcl.el("select", { id: "theme", "aria-label": "Colours",
      on: { change: () => theme.choose(select.value) } },
      Object.entries(names).map(([value, text]) => pdcl.el("option", { value, text })));
    select.value = theme.choice;
    return select;
  };

  const print = (state) => { printing = state; for (const f of theme.changed) f(); };
  window.addEventListener("beforeprint", () => print(true));
  window.addEventListener("afterprint", () => print(false));
  system.addEventListener("change", () => theme.choice === "auto" && theme.changed.forEach((f) => f()));
  apply(theme.choice);
})();
