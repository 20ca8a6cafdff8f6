// What pages have started: how far it is, what it says, and what came of it.
import { Refused, act, address, api, block, chip, command, link, make, pairs, quiet, say, section } from "./dom.js";
import { page } from "./diff.js";

const AGAIN_MS = 400;
const STATE = { running: ["quiet", "… under way"], done: ["pass", "✓ done"], failed: ["fail", "✕ failed"], cancelled: ["open", "– cancelled"] };

async function all() {
  const { items } = await api("jobs");
  return {
    title: "Work",
    content: [make("h1", { className: "page-title", textContent: "Work" }),
      section("What was started from these pages", items.length ? make("ul", { className: "plain" }, ...items.map((each) => make("li", null, chip(...STATE[each.state]), " ", link(address("/work", { id: each.id }), each.id), ` ${each.title}`)))
        : quiet("Nothing yet. A run that failed can be shrunk; any exchange on a tape can be forked."))],
  };
}

function counted(found) {
  const { done, planned } = found.progress;
  const number = found.kind === "fork" ? `${done.toLocaleString("en")} exchange${done === 1 ? "" : "s"}` : `${done} of at most ${planned} runs`;
  return [number, `${found.seconds.toFixed(0)} s`].filter(Boolean).join(" · ");
}

function outcome(found) {
  const { result } = found;
  const right = result.tape && `tape:${result.tape}`;
  return [make("h2", { textContent: "What came of it" }), pairs(Object.entries(result.said)),
    right ? make("p", { className: "saves" }, link(page(right), found.kind === "fork" ? "Open the new run" : "Open the smallest run"), " ", link(address("/diff", { left: found.of, right }), "Side by side with the run it was made from")) : "",
    result.reproduce ? make("div", null, make("h3", { className: "lesser", textContent: "Reproduce" }), command(result.reproduce)) : "",
    result.output === null ? "" : block(result.failed ? "Error" : "Output", result.output || "(empty)", result.failed ? "bad" : "", 3)].filter(Boolean);
}

export async function work(query) {
  const id = query.get("id");
  if (!id) return all();
  let found = await api("job", { id });
  let timer = 0, left = false;
  const state = make("span", { "data-testid": "state" });
  const words = make("p", { className: "quiet" });
  const bar = make("progress", { ariaLabel: "Progress" });
  const log = make("pre", { className: "text mono", tabIndex: 0, ariaLabel: "What it said, scrolls", role: "group" });
  const made = make("section", { ariaLabel: "What came of it", className: "in-out", hidden: true });
  const cancel = make("button", { type: "button", className: "button", textContent: "Cancel", onclick: async () => {
    cancel.disabled = true;
    cancel.textContent = "Cancelling…";
    try { await act("cancel", { id }); } catch (error) { if (!(error instanceof Refused)) throw error; words.textContent = error.message; }
  } });
  const report = make("p", { className: "saves" });
  const put = () => {
    if (found.report && !report.childElementCount) report.append(link(address("/report", { id: found.report }), "Its report"));
    const running = found.state === "running";
    state.replaceChildren(chip(...STATE[found.state]));
    words.textContent = counted(found);
    bar.hidden = cancel.hidden = !running;
    if (found.progress.planned) { bar.max = found.progress.planned; bar.value = found.progress.done; }
    log.textContent = found.log || "(nothing)";
    if (running) return;
    if (found.code && !found.result) words.textContent += ` · exit code ${found.code}`;
    made.hidden = !found.result;
    if (found.result) made.replaceChildren(...outcome(found));
  };
  const again = async () => {
    found = await api("job", { id }).catch(() => found);
    if (left) return;
    put();
    if (found.state === "running") timer = setTimeout(again, AGAIN_MS);
    else say(`${id}: ${STATE[found.state][1]}`);
  };
  put();
  return {
    title: id,
    trail: [link("/work", "Work"), " › ", make("span", { textContent: id })],
    leave: () => { left = true; clearTimeout(timer); },
    content: [
      make("section", { className: "job", ariaLabel: "Progress" }, make("h1", { className: "page-title", textContent: found.title }), make("p", { className: "saves" }, state, words, cancel), bar, report),
      made,
      section("What is executed", command(found.line), make("ul", { className: "noted" }, ...found.says.map((textContent) => make("li", { textContent }))),
        make("p", { className: "saves" }, link(page(found.of), "The run it is made from"))),
      section("What it said", log),
    ],
    ready: () => { if (found.state === "running") timer = setTimeout(again, AGAIN_MS); },
  };
}
