// Scenarios x invariants. Every cell is a button: reachable by Tab, and by the arrow keys from its neighbour.
import { SYMBOL, make } from "./dom.js";

const LEGEND = [["pass", "all passed"], ["part", "some failed"], ["fail", "all failed"], ["open", "inconclusive"], ["none", "does not apply"]];

export function heatmap(grid, open) {
  const columns = grid.invariants.length;
  const buttons = [];
  const square = (row, column) => {
    const found = row.squares[column];
    const button = make("button", { type: "button", className: found.mark + (found.low ? " low" : ""), ariaLabel: `${found.label} · ${SYMBOL[found.mark]} ${found.rate}${found.also ? " ≡" : ""}${found.unsteady ? " ~" : ""}`, "data-testid": "cell", "data-scenario": row.name, "data-invariant": grid.invariants[column].id },
      make("span", { textContent: SYMBOL[found.mark] }), ` ${found.rate}`,
      found.also ? make("i", { title: "also fails without chaos", textContent: "≡" }) : "",
      found.unsteady ? make("i", { title: "unsteady: equal runs of a prompt here differ", textContent: "~" }) : "");
    buttons.push(button);
    return make("td", null, button);
  };
  const rows = grid.rows.map((row) => make("tr", null,
    make("th", { scope: "row" }, make("span", { className: "name", textContent: row.shown }),
      ...(row.faults.length ? row.faults.map((fault, n) => make("span", { className: "fault", textContent: fault + (row.fired[n] ? ` ${row.fired[n]}` : "") })) : [make("span", { className: "fault calm", textContent: "no chaos" })])),
    ...row.squares.map((_, column) => square(row, column))));
  const table = make("table", null,
    make("caption", { textContent: "Passed runs of conclusive runs; +n? counts inconclusive ones. Open a cell to see its runs." }),
    make("thead", null, make("tr", null, make("th", { scope: "col", textContent: "Scenario" }), ...grid.invariants.map((i) =>
      make("th", { scope: "col", title: i.about }, make("span", { className: "name", textContent: i.shown }), " ", make("span", { className: `severity ${i.severity}`, textContent: i.severity }))))),
    make("tbody", null, ...rows));
  table.addEventListener("click", (event) => {
    const button = event.target.closest("[data-testid=cell]");
    if (button) open(button.dataset.scenario, button.dataset.invariant);
  });
  table.addEventListener("keydown", (event) => {
    const from = buttons.indexOf(event.target);
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (from < 0 || !step) return;
    let to = from + step;
    while (buttons[to] && buttons[to].closest("tr").hidden) to += step;
    if (buttons[to]) { event.preventDefault(); buttons[to].focus(); }
  });
  const only = make("input", { type: "checkbox", onchange: () => {
    for (const row of rows) row.hidden = only.checked && !row.querySelector("button.fail, button.part, button.open");
  } });
  return make("section", { className: "map", ariaLabel: "Heat map" },
    make("div", { className: "head" }, make("h2", { textContent: "Scenarios × invariants" }),
      make("ul", { className: "legend", ariaLabel: "Legend" }, ...LEGEND.map(([mark, words]) => make("li", null, make("span", { className: `key ${mark}`, ariaHidden: "true", textContent: SYMBOL[mark] }), words))),
      make("label", { className: "only" }, only, " only scenarios with something to see")),
    make("div", { className: "scroll", role: "group", ariaLabel: "Heat map, scrolls", tabIndex: 0 }, table));
}

/** What a search tried: calls by kinds of fault. A square opens a run in which that fault fired. */
export function coverageMap(tried, open) {
  const square = (row, found, mode) => {
    if (!found) return make("td", { className: "untried" });
    const mark = found.broke ? "fail" : "pass";
    return make("td", null, make("button", { type: "button", className: mark, "data-invariant": mode, onclick: () => open(found.run),
      ariaLabel: `${row.site} ${mode}: ${found.broke} of ${found.runs} runs broke a rule · ${SYMBOL[mark]} ${found.broke}/${found.runs}` },
    make("span", { textContent: SYMBOL[mark] }), ` ${found.broke}/${found.runs}`));
  };
  return make("div", { className: "scroll tried", role: "group", ariaLabel: "What was tried, scrolls", tabIndex: 0 }, make("table", null,
    make("caption", { textContent: `Runs that broke a rule, of the runs in which this fault fired at this call, alone or among others. Empty: not tried.${tried.beyond ? ` ${tried.beyond} later runs are not counted.` : ""}` }),
    make("thead", null, make("tr", null, make("th", { scope: "col", textContent: "Call" }), ...tried.modes.map((mode) => make("th", { scope: "col" }, make("span", { className: "name", textContent: mode }))))),
    make("tbody", null, ...tried.rows.map((row) => make("tr", null, make("th", { scope: "row" }, make("span", { className: "mono", textContent: row.site })), ...row.squares.map((found, n) => square(row, found, tried.modes[n])))))));
}
