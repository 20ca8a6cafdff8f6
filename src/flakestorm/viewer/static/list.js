// A list of any length, of which only what can be seen is on the page. Its lines are fetched in slices.
import { make } from "./dom.js";

const SLICE = 100;
const BEYOND = 8;

/** `load(offset, limit)` gives {total, items}; `draw(item, at)` one line's element (a link or a button). */
export function list({ name, load, draw, height = 44, tall = 84, empty = "Nothing here." }) {
  const space = make("div", { className: "space", role: "list", ariaLabel: name });
  const box = make("div", { className: "rows", role: "group", ariaLabel: name, tabIndex: 0 }, space);
  const slices = new Map();
  const drawn = new Map();
  let total = 0;
  let focused = -1;
  const narrow = matchMedia("(max-width: 700px)");
  const step = () => (narrow.matches ? tall : height);

  function item(at) {
    const slice = Math.floor(at / SLICE);
    if (!slices.has(slice)) {
      slices.set(slice, null);
      load(slice * SLICE, SLICE).then((found) => { slices.set(slice, found.items); resize(found.total); render(); }, () => slices.delete(slice));
    }
    const items = slices.get(slice);
    return items ? items[at % SLICE] : null;
  }

  function render() {
    const first = Math.max(0, Math.floor(box.scrollTop / step()) - BEYOND);
    const last = Math.min(total - 1, Math.ceil((box.scrollTop + box.clientHeight) / step()) + BEYOND);
    for (const [at, row] of drawn) {
      if ((at < first || at > last) && at !== focused) { row.remove(); drawn.delete(at); }
    }
    let before = null;
    for (let at = first; at <= last; at += 1) {
      const found = item(at);
      let row = drawn.get(at);
      if (!row || (row.waiting && found)) {
        const made = make("div", { className: "row", role: "listitem", ariaSetSize: total, ariaPosInSet: at + 1 }, found ? draw(found, at) : make("span", { className: "quiet", textContent: "…" }));
        made.waiting = !found;
        made.style.top = `${at * step()}px`;
        made.style.height = `${step()}px`;
        if (row) row.replaceWith(made);
        else if (before) before.after(made);
        else space.prepend(made);
        drawn.set(at, made);
        row = made;
      }
      before = row;
    }
  }

  function resize(count) {
    total = count;
    space.style.height = `${Math.max(total, 1) * step()}px`;
    box.style.height = `min(${Math.max(total, 1) * step() + 2}px, 72vh)`;
  }

  async function fill() {
    slices.clear();
    for (const row of drawn.values()) row.remove();
    drawn.clear();
    const found = await load(0, SLICE);
    slices.set(0, found.items);
    resize(found.total);
    space.replaceChildren(...(total ? [] : [make("p", { className: "quiet none-here", textContent: empty })]));
    render();
    return found;
  }

  function focus(at) {
    if (at < 0 || at >= total) return;
    focused = at;
    const top = at * step();
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + step() > box.scrollTop + box.clientHeight) box.scrollTop = top + step() - box.clientHeight;
    render();
    drawn.get(at)?.querySelector("a, button")?.focus({ preventScroll: true });
  }

  box.addEventListener("scroll", render, { passive: true });
  box.addEventListener("focusin", (event) => { focused = Number(event.target.closest("[role=listitem]")?.ariaPosInSet ?? 0) - 1; });
  box.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(box.clientHeight / step()) - 1);
    const to = { ArrowDown: focused + 1, ArrowUp: focused - 1, PageDown: Math.min(focused + page, total - 1), PageUp: Math.max(focused - page, 0), Home: 0, End: total - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    focus(to);
  });
  narrow.addEventListener("change", () => { for (const row of drawn.values()) row.remove(); drawn.clear(); resize(total); render(); });
  new ResizeObserver(render).observe(box);
  return { box, fill, focus, show: (at) => { box.scrollTop = Math.max(0, at * step() - 80); render(); } };
}
