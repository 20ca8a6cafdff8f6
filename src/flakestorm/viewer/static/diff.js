// Two runs side by side, exchange by exchange.
import { address, api, block, chip, count, link, make, panel, quiet, section, shut } from "./dom.js";
import { decoded } from "./exchange.js";
import { list } from "./list.js";
import { go } from "./main.js";

function side(row) {
  if (!row) return make("span", { className: "side quiet", textContent: "— not there" });
  return make("span", { className: "side" }, make("span", { className: "kind", textContent: row.kind }), " ", make("span", { className: "mono", textContent: row.site }), " ",
    make("span", { className: row.status >= 400 || !row.status ? "bad" : "quiet", textContent: row.status || "no reply" }), row.faults.length ? chip("fail", `⚡ ${row.faults.join("; ")}`) : "");
}

function word(row) {
  if (!row.left) return "only right";
  if (!row.right) return "only left";
  return row.same ? "same" : row.asked ? "reply differs" : row.said ? "request differs" : "both differ";
}

export const page = (of) => (of.startsWith("tape:") ? address("/tape", { path: of.slice(5) }) : address("/run", { report: of.split("/")[0], run: of.slice(of.indexOf("/") + 1) }));

export async function diff(query) {
  const [left, right] = [query.get("left") || "", query.get("right") || ""];
  const about = await api("diff", { left, right, limit: 0 });
  const open = (at) => go(address("/diff", { left, right, pair: at }));
  const rows = list({
    name: "Exchanges of both runs", height: 48, tall: 120, empty: "No exchange differs.",
    load: (offset, limit) => api("diff", { left, right, offset, limit, only: only.checked ? 1 : "" }),
    draw: (row) => make("button", { type: "button", className: `line pair-line ${row.same ? "" : "differs"}`, onclick: () => open(row.at) }, chip(row.same ? "quiet" : "part", word(row)), side(row.left), side(row.right)),
  });
  const only = make("input", { type: "checkbox", onchange: () => rows.fill() });
  const closed = () => { if (new URLSearchParams(location.search).has("pair")) go(address("/diff", { left, right })); };
  return {
    title: "Two runs side by side",
    trail: [make("span", { textContent: "Side by side" })],
    content: [
      make("h1", { className: "page-title", textContent: about.differ ? `${count(about.differ, "exchange")} of ${about.total} ${about.differ === 1 ? "differs" : "differ"}` : `The same was asked and said in all ${about.total} exchanges` }),
      make("section", { ariaLabel: "Outputs", className: "two" }, ...[left, right].map((of, n) => make("div", null, make("h2", null, n ? "Right: " : "Left: ", link(page(of), of)), block("Output", about.outputs[n] || "(empty)", "", 3)))),
      section("Exchanges", make("p", { className: "filter" }, make("label", null, only, " only those that differ"), " ",
        about.first === null ? "" : make("button", { type: "button", className: "button", textContent: "First difference", onclick: () => open(about.first) })), rows.box),
    ],
    ready: () => rows.fill(),
    follow: (query) => (query.has("pair") ? showPair(left, right, Number(query.get("pair")), about.total, open, closed) : shut()),
  };
}

async function showPair(left, right, at, total, move, closed) {
  const found = await api("pair", { left, right, at });
  const button = (text, to) => make("button", { type: "button", className: "button", textContent: text, disabled: to < 0 || to >= total, onclick: () => move(to) });
  const said = (title, lines) => (lines.length ? make("div", null, make("h3", { className: "lesser", textContent: title }), make("ul", { className: "plain differences" }, ...lines.map((line) => make("li", { className: "mono", textContent: line })))) : "");
  const { asked, said: reply } = found.differences;
  panel((found.left || found.right).site, [`pair ${at + 1} of ${total}`], [button("Previous", at - 1), button("Next", at + 1)],
    [said("Where the requests differ, left -> right", asked), said("Where the replies differ, left -> right", reply), found.both && !asked.length && !reply.length ? quiet("The same was asked and said.") : "",
      make("div", { className: "two" }, ...["left", "right"].map((name) => make("div", { className: "decoded" }, make("h3", { className: "side-name", textContent: name === "left" ? "Left" : "Right" }), found[name] ? decoded(found[name]) : quiet("There is no such exchange on this side."))))], closed);
  document.getElementById("detail").classList.add("wide");
}
