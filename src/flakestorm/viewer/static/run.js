// One run (or a loose tape): what went in and came out, how it was judged, and the timeline of all its exchanges.
import { address, api, block, chip, command, count, link, make, ms, pairs, quiet, section, shut, verdict } from "./dom.js";
import { showExchange } from "./exchange.js";
import { list } from "./list.js";
import { go } from "./main.js";
import { forkForm, shrinkForm } from "./start.js";

export function exchangeLine(row, end, open) {
  const bar = make("i", { className: row.faults.length ? "hit" : "" });
  bar.style.left = `${Math.min((100 * row.t_ms) / end, 99.5)}%`;
  bar.style.width = `${Math.min((100 * row.duration_ms) / end, 100 - (100 * row.t_ms) / end)}%`;
  return make("button", { type: "button", className: "line exchange-line", onclick: open },
    make("span", { className: "kind", textContent: row.kind }), make("span", { className: "site mono cut", textContent: row.site }),
    make("span", { className: row.status >= 400 || !row.status ? "bad" : "quiet", textContent: row.status || "no reply" }),
    make("span", { className: "track", title: `starts at ${ms(row.t_ms)}` }, bar),
    make("span", { className: "quiet took", textContent: `${ms(row.duration_ms)}${row.chunks ? ` · ${row.chunks} ch` : ""}` }),
    row.faults.length ? chip("fail", `⚡ ${row.faults.join("; ")}`) : make("span", { className: "quiet", textContent: row.sent > 1 ? `×${row.sent}` : row.lane ? `lane ${row.lane}` : "" }));
}

async function timeline(of, base) {
  const [about, { refused }] = await Promise.all([api("tape", { of }), api("startable", { of })]);
  const end = Math.max(1, about.end_ms);
  const open = (at) => go(address(base.page, { ...base.values, exchange: at }));
  const rows = list({
    name: "Exchanges", empty: "Nothing crossed the boundary in this run.",
    load: (offset, limit) => api("exchanges", { of, offset, limit }),
    draw: (row, at) => exchangeLine(row, end, () => open(at)),
  });
  const box = section("Timeline", quiet(`${count(about.exchanges, "exchange")} in ${ms(about.end_ms)}${about.complete || about.damage ? "" : "; the recording was interrupted"}`),
    about.damage ? make("p", { className: "text bad", textContent: `The tape is damaged: ${about.damage}` }) : "", rows.box);
  const closed = () => { if (new URLSearchParams(location.search).has("exchange")) go(address(base.page, base.values)); };
  const follow = (query) => {
    if (!query.has("exchange")) return shut();
    const at = Number(query.get("exchange"));
    rows.show(at);
    if (query.has("fork")) return forkForm(of, at, () => open(at), closed);
    return showExchange(of, at, about.exchanges, open, closed, refused ? null : () => go(address(base.page, { ...base.values, exchange: at, fork: 1 })));
  };
  const offer = refused ? quiet(`Nothing can be forked from here: ${refused}`) : about.exchanges ? quiet("To change one thing and see what follows, open an exchange and choose “Fork here”.") : "";
  return { about, box: (box.append(offer), box), refused, ready: () => rows.fill(), follow };
}

function compareWith(of) {
  const kept = sessionStorage.getItem("compare");
  if (kept && kept !== of) {
    return make("p", { className: "saves" }, link(address("/diff", { left: kept, right: of }), `Compare with ${kept}`), " ",
      make("button", { type: "button", className: "button", textContent: "Compare another with this one", onclick: (event) => keep(of, event) }));
  }
  return make("p", { className: "saves" }, make("button", { type: "button", className: "button", textContent: "Compare with another run", onclick: (event) => keep(of, event) }));
}

function keep(of, event) {
  sessionStorage.setItem("compare", of);
  event.target.replaceWith(quiet("Now open the other run, and choose Compare there."));
}

const firings = (list) => list.map((each) => `${each.site} ${each.mode}${each.detail ? ` (${each.detail})` : ""}`).join("; ");

export async function run(query) {
  const [report, id] = [query.get("report") || "", query.get("run") || ""];
  const found = await api("run", { id: report, run: id });
  const of = `${report}/${id}`;
  const line = found.taped ? await timeline(of, { page: "/run", values: { report, run: id } }) : null;
  const beside = (to, text) => (to === null ? "" : link(address("/run", { report, run: to }), text));
  const calls = Object.entries(found.calls).filter(([, n]) => n).map(([kind, n]) => `${n} ${kind}`).join(", ");
  return {
    title: `Run ${found.shown}`,
    trail: [link(address("/report", { id: report }), report), " › ", make("span", { textContent: found.shown })],
    content: [
      make("div", { className: "run-head" }, make("h1", { className: "page-title", textContent: `${found.scenario}, prompt ${found.prompt}, trial ${found.trial}` }), verdict(found.verdict),
        make("p", { className: "saves" }, beside(found.before, "← previous run"), " ", beside(found.after, "next run →"))),
      found.cells.length ? section("Judged", make("ul", { className: "plain judged" }, ...found.cells.map((cell) => make("li", null, verdict(cell.verdict), " ",
        link(address("/report", { id: report, scenario: cell.scenario, invariant: cell.invariant }), cell.shown), " ", make("span", { className: `severity ${cell.severity}`, textContent: cell.severity }),
        cell.reason ? make("p", { className: "reason", textContent: cell.reason }) : "", cell.also ? make("p", { className: "also", textContent: "≡ also fails without chaos" }) : "")))) : "",
      make("section", { ariaLabel: "Input and output", className: "in-out" }, block("Input", found.input || "(none)", "", 2), found.error === null ? block("Output", found.output || "(empty)", "", 2) : block("Error", found.error, "bad", 2),
        Object.keys(found.mutation).length ? pairs(Object.entries(found.mutation).map(([name, value]) => [`mutation ${name}`, value])) : "",
        pairs([["Latency", ms(found.latency_ms)], ["Faults planned", found.planned], ["Fired", firings(found.faults.fired) || "none"], ["Masked", firings(found.faults.masked)], ["Impossible", firings(found.faults.impossible)], ["Idle", firings(found.faults.idle)],
          ["Calls", calls || "none"], ["Tools seen", found.seen.join(", ")], ["Tokens", found.tokens], ["Cost", found.cost === null ? "" : `$${found.cost.toFixed(4)}`], ["Remarks", found.remarks.join("; ")]]),
        found.reproduce ? make("div", null, make("h2", { className: "lesser", textContent: "Reproduce" }), command(found.reproduce)) : "", line ? compareWith(of) : "",
        found.verdict === "fail" && !found.refused ? make("p", { className: "saves" }, make("button", { type: "button", className: "button", textContent: "Shrink this failure", onclick: () => go(address("/run", { report, run: id, shrink: 1 })) })) : "",
        line && found.other ? make("p", { className: "saves" }, link(address("/diff", { left: `${report}/${[id, found.other].sort()[0]}`, right: `${report}/${[id, found.other].sort()[1]}` }), "Side by side with the other version")) : ""),
      line ? line.box : section("Timeline", quiet("No tape of this run was kept.")),
    ].filter(Boolean),
    ready: line ? line.ready : null,
    follow: (query) => {
      if (query.has("shrink")) return shrinkForm(of, () => { if (new URLSearchParams(location.search).has("shrink")) go(address("/run", { report, run: id })); });
      return line ? line.follow(query) : shut();
    },
  };
}

export async function tape(query) {
  const path = query.get("path") || "";
  const of = `tape:${path}`;
  const line = await timeline(of, { page: "/tape", values: { path } });
  const { about } = line;
  return {
    title: `Tape ${path}`,
    trail: [link("/tapes", "Tapes"), " › ", make("span", { textContent: path })],
    content: [make("h1", { className: "page-title", textContent: path }),
      make("section", { ariaLabel: "Input and output", className: "in-out" }, about.input === null ? quiet("This run had no input.") : block("Input", about.input, "", 2),
        about.error ? block("Error", about.error, "bad", 2) : block("Output", about.output || "(empty)", "", 2), compareWith(of)),
      line.box],
    ready: line.ready,
    follow: line.follow,
  };
}
