// What all pages share. Text from agents, models and tools is put on the page as text; nothing here makes markup of strings.

export const SYMBOL = { pass: "✓", part: "◐", fail: "✕", open: "?", inconclusive: "?", none: "–", "": "–" };

export function make(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== "" && child !== undefined));
  return made;
}

export function ms(value) {
  if (value === null || value === undefined) return "unknown";
  if (value >= 60000) return `${Math.floor(value / 60000)} min ${Math.round((value % 60000) / 1000)} s`;
  if (value >= 10000) return `${(value / 1000).toFixed(1)} s`;
  return `${value < 1 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : Math.round(value).toLocaleString("en")} ms`;
}

export const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
export const bytes = (n) => (n < 1024 ? `${n} B` : n < 1048576 ? `${(n / 1024).toFixed(1)} kB` : `${(n / 1048576).toFixed(1)} MB`);
export const when = (text) => text.replace("T", " ").replace(/\.\d+Z$|Z$/, "");
export const chip = (kind, text) => make("span", { className: `chip ${kind}`, textContent: text });
export const verdict = (word) => chip(word || "quiet", `${SYMBOL[word]} ${word || "not judged"}`);
export const quiet = (text) => make("p", { className: "quiet", textContent: text });
export const address = (page, values) => `${page}?${new URLSearchParams(Object.entries(values).filter(([, v]) => v !== null && v !== undefined && v !== ""))}`;
export const link = (href, text, properties) => make("a", { href, textContent: text, ...properties });

export function block(title, text, className, level = 4) {
  return make("div", null, make(`h${level}`, { className: "lesser", textContent: title }),
    make("pre", { className: `text ${className || ""}`, textContent: text, tabIndex: text.length > 600 ? 0 : -1 }));
}

export function section(title, ...children) {
  return make("section", { ariaLabel: title }, make("h2", { textContent: title }), ...children);
}

export function pairs(entries) {
  return make("dl", { className: "pairs" }, ...entries.filter(([, value]) => value !== "" && value !== null && value !== undefined).flatMap(([name, value]) =>
    [make("dt", { textContent: name }), make("dd", null, value instanceof Node ? value : String(value))]));
}

export function command(text) {
  const line = make("pre", { className: "command", textContent: text });
  const button = make("button", { type: "button", className: "button", textContent: "Copy", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(line); // no clipboard here: leave it selected, one key away
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1600);
  } });
  return make("div", { className: "copy" }, line, button);
}

export class Refused extends Error {}

export async function api(path, values) {
  let answer;
  try {
    answer = await fetch(address(`/api/${path}`, values || {}), { credentials: "same-origin" });
  } catch {
    throw new Refused("The viewer does not answer. It may have been stopped; start it again with `flakestorm view`.");
  }
  if (answer.status === 401 || answer.status === 403) throw new Refused("This address has no valid token. Open the one that `flakestorm view` printed.");
  const found = await answer.json().catch(() => ({ error: `The viewer answered ${answer.status}.` }));
  if (!answer.ok) throw new Refused(found.error);
  return found;
}

/** Have something started or ended. The token is shown in a header: a cookie alone would let others ask for it. */
export async function act(path, said) {
  const token = localStorage.getItem("token");
  if (!token) throw new Refused("This browser may look, and start nothing. Open the address that `flakestorm view` printed.");
  let answer;
  try {
    answer = await fetch(`/api/${path}`, { method: "POST", credentials: "same-origin", headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` }, body: JSON.stringify(said) });
  } catch {
    throw new Refused("The viewer does not answer. It may have been stopped; start it again with `flakestorm view`.");
  }
  if (answer.status === 401) throw new Refused("The viewer was started anew. Open the address that `flakestorm view` printed.");
  const found = await answer.json().catch(() => ({ error: `The viewer answered ${answer.status}.` }));
  if (!answer.ok) throw new Refused(found.error);
  return found;
}

export const say = (text) => { document.getElementById("status").textContent = text; };

// --- the panel at the side, which shows one cell or one exchange; its address is the page's ------------------------

const dialog = document.getElementById("detail");
let closed = () => {};

export function panel(title, about, buttons, content, onClose) {
  const returns = dialog.open ? null : document.activeElement;
  closed = () => { if (onClose) onClose(); if (returns && returns.isConnected) returns.focus(); };
  dialog.className = "";
  dialog.replaceChildren(
    make("header", null,
      make("div", null, make("h2", { id: "detail-title", textContent: title }), ...about.map((line) => make("p", { className: "about", textContent: line }))),
      ...buttons.filter(Boolean), make("button", { type: "button", className: "button", textContent: "Close", onclick: () => dialog.close() })),
    make("div", { className: "runs" }, content));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}

export function shut() {
  closed = () => {};
  if (dialog.open) dialog.close();
}

dialog.addEventListener("close", () => { const ended = closed; closed = () => {}; ended(); });
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
