// What all pages share. Text from agents, models and tools is put on the page as text; nothing here makes markup of strings.
import { block as titled, chip, command, make, ms } from "./shared.js";

export { chip, command, make, ms };

export const SYMBOL = { pass: "✓", part: "◐", fail: "✕", open: "?", inconclusive: "?", none: "–", "": "–" };

export const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
export const bytes = (n) => (n < 1024 ? `${n} B` : n < 1048576 ? `${(n / 1024).toFixed(1)} kB` : `${(n / 1048576).toFixed(1)} MB`);
export const when = (text) => text.replace("T", " ").replace(/\.\d+Z$|Z$/, "");
export const verdict = (word) => chip(word || "quiet", `${SYMBOL[word]} ${word || "not judged"}`);
export const quiet = (text) => make("p", { className: "quiet", textContent: text });
export const address = (page, values) => `${page}?${new URLSearchParams(Object.entries(values).filter(([, v]) => v !== null && v !== undefined && v !== ""))}`;
export const link = (href, text, properties) => make("a", { href, textContent: text, ...properties });

export const block = (title, text, className, level = 4) => titled(title, text, className, level);

export function section(title, ...children) {
  return make("section", { ariaLabel: title }, make("h2", { textContent: title }), ...children);
}

export function pairs(entries) {
  return make("dl", { className: "pairs" }, ...entries.filter(([, value]) => value !== "" && value !== null && value !== undefined).flatMap(([name, value]) =>
    [make("dt", { textContent: name }), make("dd", null, value instanceof Node ? value : String(value))]));
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
