// Okabe and Ito's colours, which the colour-blind tell apart, with a dash and a marker besides: never colour alone.
(() => {
  const pdcl = window.pdcl;
  const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", null, "#B5A900"];
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const MARKERS = ["circle", "square", "diamond", "triangle-up", "x", "triangle-down", "cross", "star"];

  pdcl.colour = (k) => COLOURS[k % COLOURS.length] || pdcl.theme.colours.eighth;
  pdcl.dash = (k) => DASHES[(k + Math.floor(k / COLOURS.length)) % DASHES.length];
  pdcl.marker = (k) => MARKERS[k % MARKERS.length];
  pdcl.style = (k) => ({
    line: { color: pdcl.colour(k), dash: pdcl.dash(k), width: 2 },
    marker: { color: pdcl.colour(k), symbol: pdcl.marker(k), size: 8 },
  });

  pdcl.scale = () => [[0, pdcl.theme.colours.low], [1, pdcl.theme.colours.high]];

  pdcl.axis = (title, more = {}) => {
    const { line, muted } = pdcl.theme.colours;
    return { title: { text: title, font: { color: muted, size: 12 }, standoff: 8 }, gridcolor: line, zeroline: false,
      linecolor: line, tickfont: { color: muted, size: 11 }, automargin: true, ...more };
  };

  pdcl.layout = (more = {}) => ({
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", size: 12, color: pdcl.theme.colours.ink },
    margin: { l: 48, r: 12, t: 20, b: 40 },
    legend: { orientation: "h", y: -0.22, x: 0, font: { size: 11, color: pdcl.theme.colours.muted } },
    hoverlabel: { bgcolor: pdcl.theme.colours.surface, bordercolor: pdcl.theme.colours.line,
      font: { color: pdcl.theme.colours.ink, size: 12 } },
    height: 300,
    ...more,
  });
})();
