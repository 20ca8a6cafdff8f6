// Everything on the page that came from an agent is put there by textContent; nothing here builds markup from strings.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dialog = document.getElementById("detail");
  const buttons = [...document.querySelectorAll("[data-testid=cell]")];
  const columns = data.invariants.length;
  const SYMBOL = { pass: "✓", fail: "✕", inconclusive: "?" };
  const RANK = { fail: 0, inconclusive: 1, pass: 2 };
  const PAGE = 50;

  const bySquare = new Map();
  const byRun = new Map();
  for (const [row, column, prompt, trial, verdict, reason, run, also] of data.cells) {
    const cell = { row, column, prompt, trial, verdict, reason, run, also };
    const at = row * columns + column;
    if (!bySquare.has(at)) bySquare.set(at, []);
    bySquare.get(at).push(cell);
    if (!byRun.has(run)) byRun.set(run, []);
    byRun.get(run).push(cell);
  }

  function firings(title, list) {
    const said = list.map(([site, mode, detail]) => site + " " + mode + (detail ? " (" + detail + ")" : ""));
    return [make("dt", { textContent: title }), make("dd", { textContent: said.join("; ") || "none" })];
  }

  function reply(title, said) {
    const facts = [said.status ? "status " + said.status : "no reply", said.stream ? "stream of " + said.chunks + " chunks" : "",
      said.finish ? "finish " + said.finish : "", said.tokens ? said.tokens[0] + " tokens in, " + said.tokens[1] + " out" : "",
      said.end && said.end !== "eof" && !said.error ? said.end : "", said.error];
    const parts = [said.text, ...said.tools.map((tool) => "→ " + tool)].filter(Boolean);
    return block(title + ": " + facts.filter(Boolean).join(", "), parts.join("\n") || "(empty)", "mono");
  }

  function exchange(entry, end) {
    const bar = make("i", { className: entry.faults.length ? "hit" : "" });
    bar.style.left = Math.min((100 * entry.t_ms) / end, 99.5) + "%";
    bar.style.width = Math.min((100 * entry.duration_ms) / end, 100 - (100 * entry.t_ms) / end) + "%";
    const status = entry.reply.status;
    const summary = make("summary", null,
      make("span", { className: "kind", textContent: entry.kind }),
      make("span", { className: "site", textContent: entry.site }),
      make("span", { className: status >= 400 || !status ? "bad" : "", textContent: status || "no reply" }),
      make("span", { className: "track", title: "starts at " + ms(entry.t_ms) }, bar),
      make("span", { className: "took", textContent: ms(entry.duration_ms) }));
    if (entry.faults.length) {
      summary.append(make("span", { className: "hits" }, ...entry.faults.map(([mode, detail]) => chip("fail", "⚡ " + mode + (detail ? ": " + detail : "")))));
    }
    const made = make("details", { className: "exchange" }, summary);
    made.addEventListener("toggle", () => {
      if (made.childElementCount > 1) return;
      made.append(make("div", { className: "inside" },
        block("Request: " + entry.request + (entry.lane ? " · lane " + entry.lane : "") + (entry.sent === 0 ? " · never went out" : entry.sent > 1 ? " · went out " + entry.sent + " times" : ""), entry.asked || "(no body)", "mono"),
        reply(entry.world ? "What the agent saw" : "Reply", entry.reply),
        entry.world ? reply("What the world said", entry.world) : "",
        entry.error ? block("Error", entry.error, "bad") : ""));
    });
    return made;
  }

  function timeline(run) {
    if (!data.timelines) return "";
    const { exchanges, left_out } = run.timeline || { exchanges: [], left_out: "" };
    const end = Math.max(1, ...exchanges.map((entry) => entry.t_ms + entry.duration_ms));
    return make("div", null, make("h3", { textContent: "Timeline, " + exchanges.length + (exchanges.length === 1 ? " exchange" : " exchanges") + (exchanges.length ? " in " + ms(end) : "") }),
      exchanges.length ? make("div", { className: "timeline" }, ...exchanges.map((entry) => exchange(entry, end))) : "",
      left_out ? make("p", { className: "quiet", textContent: left_out }) : "");
  }

  function others(cell) {
    const rest = (byRun.get(cell.run) || []).filter((other) => other.column !== cell.column);
    return rest.length === 0 ? "" : make("div", null, make("h3", { textContent: "Also judged on this run" }),
      make("div", { className: "others" }, ...rest.map((other) => make("button", { type: "button", className: "button", textContent: SYMBOL[other.verdict] + " " + data.invariants[other.column].shown, onclick: () => go(other.row * columns + other.column) }))));
  }

  function body(cell, run) {
    const verdict = make("p", { className: "why", textContent: (cell.reason || cell.verdict) });
    const also = cell.also ? make("p", { className: "also", textContent: cell.also & 2 ? "≡ The golden prompt also fails, so the mutation is not the cause." : "≡ The same prompt also fails without chaos, so chaos is not the cause." }) : "";
    if (!run) return make("div", { className: "body" }, verdict, also);
    const calls = Object.entries(run.calls).filter(([, count]) => count).map(([kind, count]) => count + " " + kind).join(", ");
    return make("div", { className: "body" }, make("div", null, verdict, also),
      block("Prompt", run.input),
      run.mutation ? block("Mutation", run.mutation) : "",
      ...run.turns.slice(0, -1).flatMap(([asked, said], at) => [block("Turn " + (at + 1), asked), block("Said", said || "(empty)")]),
      run.error === null ? block("Output", run.output || "(empty)") : block("Error", run.error, "bad"),
      make("dl", { className: "pairs" },
        make("dt", { textContent: "Faults planned" }), make("dd", { textContent: String(run.planned) }),
        ...firings("Fired", run.fired), ...[["Masked", run.masked], ["Impossible", run.impossible], ["Idle", run.idle]].flatMap(([name, found]) => (found.length ? firings(name, found) : [])),
        make("dt", { textContent: "Calls" }), make("dd", { textContent: calls || "none" }),
        ...(run.seen.length ? [make("dt", { textContent: "Tools seen" }), make("dd", { textContent: run.seen.join(", ") })] : []),
        ...(run.tape ? [make("dt", { textContent: "Tape" }), make("dd", null, make("code", { textContent: run.tape }))] : [])),
      timeline(run), others(cell),
      run.reproduce ? make("div", null, make("h3", { textContent: "Reproduce" }), command(run.reproduce)) : "");
  }

  function entry(cell, open) {
    const run = data.runs[cell.run];
    const summary = make("summary", null, chip(cell.verdict, SYMBOL[cell.verdict] + " " + cell.verdict),
      make("strong", { textContent: "Prompt " + cell.prompt + ", trial " + cell.trial }),
      make("span", { className: "quiet", textContent: run ? run.id + " · " + ms(run.latency_ms) : "" }),
      run && run.planned && !run.fired.length ? chip("quiet", "no fault fired") : "",
      cell.also ? chip("quiet", cell.also & 2 ? "≡ also fails unmutated" : "≡ also fails without chaos") : "");
    const made = make("details", { className: "run" }, summary);
    const fill = () => { if (made.childElementCount === 1) made.append(body(cell, run)); };
    made.addEventListener("toggle", fill);
    if (open) { fill(); made.open = true; }
    return made;
  }

  function show(at) {
    const scenario = data.scenarios[Math.floor(at / columns)];
    const invariant = data.invariants[at % columns];
    const cells = [...(bySquare.get(at) || [])].sort((a, b) => RANK[a.verdict] - RANK[b.verdict] || a.prompt - b.prompt || a.trial - b.trial);
    const list = make("div", { className: "runs" });
    let shown = 0;
    const more = make("button", { type: "button", className: "button", onclick: () => page() });
    const page = () => {
      more.remove();
      list.append(...cells.slice(shown, shown + PAGE).map((cell, n) => entry(cell, shown + n === 0)));
      shown = Math.min(shown + PAGE, cells.length);
      more.textContent = "Show more: " + (cells.length - shown) + " left";
      if (shown < cells.length) list.append(more);
    };
    page();
    if (!cells.length) list.append(make("p", { className: "quiet", textContent: "This invariant was not judged in this scenario." }));
    dialog.replaceChildren(
      make("header", null,
        make("div", null, make("h2", { id: "detail-title", textContent: scenario.shown + " × " + invariant.shown }),
          make("p", { className: "about", textContent: invariant.about.join(" · ") }),
          make("p", { className: "about", textContent: scenario.faults.length ? "Faults: " + scenario.faults.join("; ") : "No chaos in this scenario" })),
        make("button", { type: "button", className: "button", textContent: "Close", onclick: () => dialog.close() })),
      list);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  }

  // The address names the open cell, so that a cell can be linked to and the browser's back button closes it.
  const address = (at) => "#cell=" + encodeURIComponent(data.scenarios[Math.floor(at / columns)].name) + "/" + encodeURIComponent(data.invariants[at % columns].id);
  const go = (at) => { if (location.hash === address(at)) show(at); else location.hash = address(at); };
  function decoded(text) {
    try { return decodeURIComponent(text); } catch { return text; }
  }
  function addressed() {
    if (!location.hash.startsWith("#cell=")) return -1;
    const parts = location.hash.slice(6).split("/");
    for (let cut = 1; cut < parts.length; cut += 1) { // names may hold slashes of their own
      const row = data.scenarios.findIndex((s) => s.name === decoded(parts.slice(0, cut).join("/")));
      const column = data.invariants.findIndex((i) => i.id === decoded(parts.slice(cut).join("/")));
      if (row >= 0 && column >= 0) return row * columns + column;
    }
    return -1;
  }
  function follow() {
    const at = addressed();
    if (at >= 0) show(at);
    else if (dialog.open) {
      left = true;
      dialog.close();
    }
  }
  // The event comes later than the closing. Where the address closed the dialog, it may name another cell by then.
  let left = false;
  addEventListener("hashchange", follow);
  dialog.addEventListener("close", () => {
    if (left) {
      left = false;
      return;
    }
    const at = addressed();
    if (at >= 0) {
      history.replaceState(null, "", location.pathname + location.search);
      buttons[at].focus();
    }
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

  const table = document.querySelector("table");
  if (table) {
    table.addEventListener("click", (event) => {
      const button = event.target.closest("[data-testid=cell]");
      if (button) go(buttons.indexOf(button));
    });
    const STEP = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
    table.addEventListener("keydown", (event) => {
      const from = buttons.indexOf(event.target);
      if (from < 0 || !(event.key in STEP)) return;
      let to = from + STEP[event.key];
      while (buttons[to] && buttons[to].closest("tr").hidden) to += STEP[event.key];
      if (buttons[to]) { event.preventDefault(); buttons[to].focus(); }
    });
    const only = document.getElementById("only");
    only.parentElement.hidden = false;
    only.addEventListener("change", () => {
      for (const row of table.tBodies[0].rows) row.hidden = only.checked && !row.querySelector("button.fail, button.part, button.open");
    });
  }
  follow();
})();
