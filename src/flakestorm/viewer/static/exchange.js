// One exchange, decoded: what was asked, what the agent saw, what the world said.
import { api, block, bytes, chip, count, make, ms, pairs, panel, quiet } from "./dom.js";

const FORKED = ["llm", "tool", "mcp", "http"];

const call = (each) => make("div", { className: "call" }, make("span", { className: "kind", textContent: "tool call" }), " ", make("strong", { className: "mono", textContent: each.name }), make("pre", { className: "text mono", textContent: each.arguments }));

function turn(each) {
  return make("li", { className: `turn ${["user", "assistant", "system", "tool"].includes(each.role) ? each.role : ""}` }, make("span", { className: "role", textContent: each.role }),
    each.text ? make("pre", { className: "said", textContent: each.text }) : "",
    ...each.calls.map(call),
    ...each.results.map((result) => make("div", { className: "call" }, make("span", { className: "kind", textContent: "tool result" }), " ", make("strong", { className: "mono", textContent: result.name }), make("pre", { className: "text mono", textContent: result.text }))));
}

function headers(list) {
  return list.length ? make("details", { className: "more" }, make("summary", { textContent: count(list.length, "header") }), pairs(list)) : "";
}

function raw(title, text) {
  return text ? make("details", { className: "more" }, make("summary", { textContent: title }), make("pre", { className: "text mono", textContent: text, tabIndex: 0 })) : "";
}

function chunks(reply, found) {
  if (!reply.chunks.length) return "";
  const begin = found.t_ms, length = Math.max(found.duration_ms, 0.001);
  const strip = make("div", { className: "strip", role: "img", ariaLabel: `${count(reply.chunks_total, "chunk")}, the first after ${ms(reply.chunks[0].at_ms - begin)}, the last shown after ${ms(reply.chunks.at(-1).at_ms - begin)}` });
  for (const chunk of reply.chunks) {
    const tick = make("i");
    tick.style.left = `${Math.min(Math.max((100 * (chunk.at_ms - begin)) / length, 0), 99.6)}%`;
    strip.append(tick);
  }
  const rows = reply.chunks.map((chunk, n) => make("li", null, make("span", { className: "at", textContent: `${n + 1} · +${ms(Math.max(0, chunk.at_ms - begin))} · ${bytes(chunk.bytes)}` }), make("code", { textContent: chunk.text })));
  const beyond = reply.chunks_total - reply.chunks.length;
  return make("div", null, make("h4", { className: "lesser", textContent: `Stream, ${count(reply.chunks_total, "chunk")} over ${ms(found.duration_ms)}` }), strip,
    make("details", { className: "more" }, make("summary", { textContent: "Chunks" }), make("ol", { className: "chunks" }, ...rows), beyond > 0 ? quiet(`and ${beyond} more on the tape`) : ""));
}

function reply(title, found, each) {
  const { usage } = each;
  const facts = [each.status ? `status ${each.status}${each.reason ? ` ${each.reason}` : ""}` : "no reply", each.finish ? `finish ${each.finish}` : "", each.model,
    usage.input !== null || usage.output !== null ? `${usage.input ?? "?"} tokens in, ${usage.output ?? "?"} out` : "", each.end !== "eof" ? each.end : "", each.complete ? "" : "incomplete"];
  return make("div", { className: "piece" }, make("h3", { textContent: title }), make("p", { className: "quiet", textContent: facts.filter(Boolean).join(" · ") }),
    each.error ? block("Error", each.error, "bad") : "", each.said_error ? block("The provider's error", each.said_error, "bad") : "",
    each.text ? make("ol", { className: "turns" }, turn({ role: "assistant", text: each.text, calls: each.calls, results: [] })) : make("div", null, ...each.calls.map(call)),
    chunks(each, found), headers(each.headers), each.understood && (each.text || each.calls.length) ? raw("Body as it came", each.body) : each.body ? block("Body", each.body, "mono") : each.status ? quiet("(empty body)") : "");
}

export function decoded(found, again) {
  const { request } = found;
  const missing = request.turns_total - request.turns.length;
  const sent = found.sent === 0 ? "never went out" : found.sent > 1 ? `went out ${found.sent} times` : "";
  return make("div", { className: "decoded" },
    found.faults.length ? make("ul", { className: "plain hits" }, ...found.faults.map((fault) => make("li", null, chip("fail", `⚡ ${fault.mode}`), fault.site === found.site ? "" : make("span", { className: "mono", textContent: ` ${fault.site}` }), fault.detail ? ` ${fault.detail}` : ""))) : "",
    found.note ? quiet(found.note) : "",
    make("div", { className: "piece" }, make("h3", { textContent: "Request" }), make("p", { className: "quiet wrap", textContent: [`${request.method} ${request.url}`, request.model, found.lane ? `lane ${found.lane}` : "", sent, found.wire].filter(Boolean).join(" · ") }),
      missing > 0 ? (again ? make("button", { type: "button", className: "button", textContent: `Show ${missing} earlier messages`, onclick: () => again(request.turns_total) }) : quiet(`${missing} earlier messages are not shown`)) : "",
      request.turns.length ? make("ol", { className: "turns" }, ...request.turns.map(turn)) : "",
      request.tools.length ? quiet(`Tools offered: ${request.tools.join(", ")}`) : "", headers(request.headers),
      request.turns.length ? raw("Body as it came", request.body) : request.body ? block("Body", request.body, "mono") : quiet("(no body)"),
      found.world_request === null ? "" : block("What the world was asked instead", found.world_request, "mono")),
    reply(found.world || found.faults.length ? "What the agent saw" : "Reply", found, found.reply),
    found.world ? reply("What the world said", found, found.world) : "");
}

export async function showExchange(of, at, total, move, closed, fork, turns) {
  const found = await api("exchange", { of, at, turns });
  const button = (text, to) => make("button", { type: "button", className: "button", textContent: text, disabled: to < 0 || to >= total, onclick: () => move(to) });
  panel(found.site, [`exchange ${at + 1} of ${total} · at ${ms(found.t_ms)} · took ${ms(found.duration_ms)}`], [button("Previous", at - 1), button("Next", at + 1), fork && FORKED.includes(found.kind) ? make("button", { type: "button", className: "button", textContent: "Fork here", onclick: fork }) : ""],
    decoded(found, (more) => showExchange(of, at, total, move, closed, fork, more)), closed);
}
