// Which page is shown: the address says it. Links within the viewer change the address and the page, not the document.
import { Refused, make, say, shut } from "./dom.js";
import { diff } from "./diff.js";
import { home, tapes } from "./home.js";
import { report } from "./report.js";
import { run, tape } from "./run.js";
import { work } from "./work.js";

const PAGES = { "/": home, "/report": report, "/run": run, "/tapes": tapes, "/tape": tape, "/diff": diff, "/work": work };
const page = document.getElementById("page");
let shown = null;

async function show() {
  const query = new URLSearchParams(location.search);
  const here = location.pathname + "?" + [...query].filter(([name]) => !["scenario", "invariant", "exchange", "pair", "fork", "shrink"].includes(name)).join("&");
  if (shown && shown.here === here && shown.follow) return shown.follow(query); // only the panel changes
  if (shown && shown.leave) shown.leave();
  shut();
  const mine = { here };
  shown = mine;
  page.setAttribute("aria-busy", "true");
  try {
    const made = await PAGES[location.pathname](query);
    if (shown !== mine) return made.leave && made.leave();
    Object.assign(mine, made);
    document.title = `${made.title} · flakestorm`;
    document.getElementById("trail").replaceChildren(...(made.trail || []));
    page.replaceChildren(...made.content);
    say(made.title);
    if (made.ready) await made.ready();
    if (made.follow) await made.follow(query);
  } catch (error) {
    if (shown !== mine) return;
    document.title = "Not shown · flakestorm";
    page.replaceChildren(make("section", { className: "banner inconclusive", role: "alert" },
      make("h1", { textContent: error instanceof Refused ? "Not shown" : "This page has a defect" }), make("p", { textContent: error.message })));
    if (!(error instanceof Refused)) console.error(error);
  }
  page.removeAttribute("aria-busy");
}

export function go(href) {
  if (href === location.pathname + location.search) return;
  history.pushState(null, "", href);
  show();
}

addEventListener("popstate", show);
document.addEventListener("click", (event) => {
  const anchor = event.target.closest("a[href]");
  if (!anchor || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const to = new URL(anchor.href, location.href);
  if (to.origin !== location.origin || !(to.pathname in PAGES) || anchor.getAttribute("href").startsWith("#") || anchor.download || anchor.target) return;
  event.preventDefault();
  const elsewhere = to.pathname !== location.pathname;
  go(to.pathname + to.search);
  if (elsewhere) { scrollTo(0, 0); page.focus({ preventScroll: true }); }
});

const query = new URLSearchParams(location.search);
if (query.has("token")) { // a cookie stands for it now, and it need not stay where a screen shows it
  localStorage.setItem("token", query.get("token")); // which only pages of this host and port can read
  query.delete("token");
  history.replaceState(null, "", location.pathname + (query.size ? `?${query}` : ""));
}
addEventListener("viewer:again", () => { // a command under way has got on
  if (document.querySelector("dialog[open]") || page.contains(document.activeElement) && document.activeElement !== page) return;
  const top = scrollY;
  if (shown && shown.leave) shown.leave();
  shown = null;
  show().then(() => scrollTo(0, top));
});
show();
