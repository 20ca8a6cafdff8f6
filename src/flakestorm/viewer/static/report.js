// One report: verdict, scores, heat map, all runs; a cell's runs in the panel.
import { SYMBOL, address, api, chip, command, count, link, make, ms, pairs, panel, quiet, say, section, shut, verdict, when } from "./dom.js";
import { blameCurve } from "./chart.js";
import { coverageMap, heatmap } from "./heatmap.js";
import { list } from "./list.js";
import { go } from "./main.js";

const TITLE = { pass: "Passed", fail: "Failed", inconclusive: "Inconclusive" };
const AGAIN_MS = 2000;

export function runLine(id, run, extra) {
  return make("a", { href: address("/run", { report: id, run: run.id }), className: "line run-line" },
    verdict(extra?.verdict ?? run.verdict), make("strong", { className: "cut", textContent: run.scenario }),
    make("span", { textContent: `prompt ${run.prompt}, trial ${run.trial}` }),
    make("span", { className: "quiet cut", textContent: run.error ? `✕ ${run.error}` : run.failed.length ? `failed ${run.failed.join(", ")}` : run.input }),
    run.planned && !run.fired ? chip("quiet", "no fault fired") : make("span", { className: "quiet", textContent: run.fired ? `⚡ ${run.fired}` : "" }),
    make("span", { className: "quiet", textContent: `${run.shown} · ${ms(run.latency_ms)}` }));
}

function score(each) {
  return make("article", { className: "score", "data-testid": "score", "data-score": each.name }, make("h2", { textContent: each.name }),
    make("p", { className: "value" }, each.value, !each.data ? "" : make("small", { textContent: ` of ${each.full}` })),
    each.range === null ? "" : make("p", { className: "range", textContent: `95% interval ${each.range.join(" to ")}` }),
    make("p", { className: "counts" }, `${each.passed} of ${each.conclusive} passed${each.inconclusive ? ` · ${each.inconclusive} inconclusive` : ""}`,
      each.critical_failed ? make("strong", { textContent: " · a critical invariant failed" }) : ""));
}

function extras(found) {
  const made = [];
  if (found.phases.length) {
    made.push(section("Phases", make("ul", { className: "plain" }, ...found.phases.map((phase) => make("li", null, verdict(phase.verdict), " ", make("strong", { textContent: phase.name }), ` ${phase.status} · `, make("span", { className: "quiet", textContent: phase.headline }))))));
  }
  if (found.blame) {
    const { conclusion, site, kind, continuations, curve } = found.blame;
    made.push(section("Blame", pairs([["Conclusion", conclusion], ["Site", site], ["Kind", kind], ["Continuations", continuations]]), curve.length ? blameCurve(curve) : "",
      curve.length ? quiet("Share of continuations that failed (with its 95% interval), by how many events of the failed run were kept.") : ""));
  }
  if (found.findings.length || found.coverage) {
    made.push(section("Exploration", found.coverage ? pairs(Object.entries(found.coverage)) : "",
      found.tried && found.tried.rows.length ? coverageMap(found.tried, (run) => go(address("/run", { report: found.id, run }))) : "",
      make("ul", { className: "plain" }, ...found.findings.map((each) => make("li", null, chip("fail", each.invariant), " ", make("span", { className: "mono", textContent: each.schedule.join(" + ") }), " ",
        each.run ? link(address("/run", { report: found.id, run: each.run }), each.run) : "", each.reproduce ? command(each.reproduce) : "")))));
  }
  return made;
}

function broken(found) {
  if (!found.broken.length) return [];
  return [make("section", { className: "broken", ariaLabel: "What did not pass" }, make("h2", { textContent: "What did not pass" }),
    make("ol", null, ...found.broken.map((each) => make("li", null, make("h3", null, verdict(each.verdict), " ",
      link(address("/report", { id: found.id, scenario: each.scenario, invariant: each.invariant }), each.shown), " ", make("span", { className: `severity ${each.severity}`, textContent: each.severity })),
    make("p", { className: "reason", textContent: each.reason }), each.next ? make("p", { className: "next" }, make("strong", { textContent: "Next" }), ` ${each.next}`) : "", each.also ? make("p", { className: "also", textContent: "≡ The same prompt also fails without chaos, so chaos is not the cause." }) : ""))))];
}

function head(found) {
  return make("section", { className: `banner ${found.done ? found.verdict : "inconclusive"}`, "data-testid": "verdict" },
    make("h1", null, make("span", { ariaHidden: "true", textContent: found.done ? SYMBOL[found.verdict] : "…" }), ` ${found.done ? TITLE[found.verdict] : "Not finished"}`,
      found.interrupted && found.done ? make("small", { textContent: " interrupted: only what had finished is shown" }) : ""),
    make("p", { textContent: found.headline }));
}

export async function report(query) {
  const id = query.get("id") || "";
  const found = await api("report", { id });
  const runs = list({
    name: "Runs", empty: "No runs of this kind.",
    load: (offset, limit) => api("runs", { id, offset, limit, verdict: filter.value }),
    draw: (run) => runLine(id, run),
  });
  const filter = make("select", { ariaLabel: "Runs to list", onchange: () => runs.fill().then(({ total }) => say(count(total, "run"))) },
    ...[["", "all runs"], ["fail", "failed"], ["inconclusive", "inconclusive"], ["pass", "passed"]].map(([value, textContent]) => make("option", { value, textContent })));
  const back = (values) => go(address("/report", { id, ...values }));
  const map = found.grid && found.grid.rows.length && found.grid.invariants.length ? heatmap(found.grid, (scenario, invariant) => back({ scenario, invariant })) : "";
  const timer = found.done ? 0 : setInterval(async () => {
    const now = await api("report", { id }).catch(() => found);
    if (now.done || now.runs !== found.runs) dispatchEvent(new CustomEvent("viewer:again"));
  }, AGAIN_MS);
  return {
    title: `${found.done ? TITLE[found.verdict] : "Not finished"}: ${found.command}`,
    trail: [link(address("/report", { id }), id)],
    leave: () => clearInterval(timer),
    content: [
      head(found),
      found.scores.length ? make("section", { className: "scores", ariaLabel: "Scores" }, ...found.scores.map(score)) : "",
      make("section", { ariaLabel: "About this report" }, pairs([["Command", found.command], ["Agent", found.agent], ["Config", found.config], ["Started", when(found.started_at)], ["Took", ms(found.duration_ms)], ["Seed", found.seed],
        ["Runs", found.planned ? `${found.runs} of ${found.planned}` : found.runs]]),
      make("p", { className: "saves" }, link(address("/report.html", { id }), found.comparison ? "Open as a page" : "Open as a self-contained page", { target: "_blank", rel: "noopener" }), " ", link(address("/report.json", { id }), "Save as JSON", { download: `${id}.json` }))),
      found.notes.length ? section("Notes", make("ul", { className: "noted" }, ...found.notes.map((textContent) => make("li", { textContent })))) : "",
      map, ...extras(found), ...broken(found),
      section("Runs", make("p", { className: "filter" }, filter), runs.box),
    ].filter(Boolean),
    ready: () => runs.fill(),
    follow: (query) => (query.has("invariant") ? showCell(id, query, () => { if (new URLSearchParams(location.search).has("invariant")) back({}); }) : shut()),
  };
}

async function showCell(id, query, closed) {
  const where = { id, scenario: query.get("scenario"), invariant: query.get("invariant") };
  const first = await api("cell", { ...where, limit: 50 });
  const { square } = first;
  const lines = make("ul", { className: "plain cell-runs" });
  const more = make("button", { type: "button", className: "button", onclick: () => api("cell", { ...where, limit: 50, offset: lines.childElementCount }).then(put) });
  const put = (found) => {
    lines.append(...found.items.map((item) => make("li", null, item.run ? runLine(id, item.run, item) : verdict(item.verdict),
      item.reason ? make("p", { className: "reason", textContent: item.reason }) : "",
      item.verdict === "fail" && item.run && !found.refused ? make("p", { className: "saves" }, link(address("/run", { report: id, run: item.run.id, shrink: 1 }), "Shrink this failure")) : "",
      item.also ? make("p", { className: "also", textContent: "≡ The same prompt also fails without chaos, so chaos is not the cause." }) : "")));
    more.hidden = lines.childElementCount >= found.total;
    more.textContent = `Show more: ${found.total - lines.childElementCount} left`;
  };
  put(first);
  panel(`${square.scenario} × ${square.invariant}`, [square.about.join(" · "), square.faults.length ? `Faults: ${square.faults.join("; ")}` : "No chaos in this scenario"], [],
    [first.total ? lines : quiet("This invariant was not judged in this scenario."), more], closed);
}
