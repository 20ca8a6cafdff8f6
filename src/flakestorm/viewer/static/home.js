// The first page: saved reports and how their scores went; and the list of loose tapes.
import { address, api, bytes, chip, count, link, make, quiet, section, verdict, when } from "./dom.js";
import { trend } from "./chart.js";
import { list } from "./list.js";

const SCORES = ["overall", "contract", "robustness", "chaos", "replay"];

export function shownScore(scores) {
  const name = SCORES.find((each) => scores[each] !== null && scores[each] !== undefined);
  return name === undefined ? "" : `${name} ${scores[name]}`;
}

export async function home() {
  const { trends } = await api("trends");
  let folder = "";
  const reports = list({
    name: "Saved reports", empty: "Nothing was saved yet. Run a judging command, e.g. `flakestorm contract run`, and come back.",
    load: async (offset, limit) => { const found = await api("reports", { offset, limit }); folder = found.folder; return found; },
    draw: (each) => make("a", { href: address("/report", { id: each.id }), className: "line report-line" },
      each.done ? verdict(each.verdict) : chip("quiet", "… not finished"),
      make("strong", { textContent: each.command }),
      make("span", { className: "score-shown", textContent: shownScore(each.scores) }),
      make("span", { className: "quiet cut", textContent: `${count(each.runs, "run")} · ${each.config}` }),
      make("span", { className: "quiet", textContent: when(each.started_at) })),
  });
  const total = make("p", { className: "quiet" });
  return {
    title: "Reports",
    content: [
      make("h1", { className: "page-title", textContent: "Reports" }),
      ...(trends.length ? [section("Trends", ...trends.slice(0, 6).map(trend))] : []),
      section("Saved reports", total, reports.box),
    ],
    ready: async () => { const found = await reports.fill(); total.textContent = `${count(found.total, "report")} in ${folder}`; },
  };
}

export async function tapes() {
  const found = list({
    name: "Tapes", empty: "No tapes but those of reports. `flakestorm record -- COMMAND` makes one.",
    load: (offset, limit) => api("tapes", { offset, limit }),
    draw: (each) => make("a", { href: address("/tape", { path: each.path }), className: "line" },
      make("span", { className: "mono cut", textContent: each.path }), make("span", { className: "quiet", textContent: bytes(each.bytes) })),
  });
  return {
    title: "Tapes",
    content: [make("h1", { className: "page-title", textContent: "Tapes" }),
      section("Tapes that belong to no report", quiet("What `record` and `gateway` wrote, the newest first. Tapes of reports are with their runs."), found.box)],
    ready: () => found.fill(),
    trail: [link("/tapes", "Tapes")],
  };
}
