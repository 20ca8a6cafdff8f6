// Curves as SVG: how scores went, and how often a run failed by how much of it was kept.
import { address, make, when } from "./dom.js";

const SPACE = "http://www.w3.org/2000/svg";
const WIDTH = 640, HEIGHT = 130, LEFT = 34, TOP = 8, BOTTOM = 18;
const DASHES = ["", "7 4", "2 4", "10 3 2 3", "1 3"];

function draw(tag, attributes, ...children) {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const across = (at, count) => LEFT + 6 + (at * (WIDTH - LEFT - 16)) / Math.max(count - 1, 1);
const down = (value) => TOP + (1 - Math.min(Math.max(value, 0), 1)) * (HEIGHT - TOP - BOTTOM);

function paper(label, ...children) {
  const lines = [0, 0.5, 1].flatMap((value) => [
    draw("line", { x1: LEFT, x2: WIDTH - 4, y1: down(value), y2: down(value), class: "rule" }),
    draw("text", { x: LEFT - 6, y: down(value) + 4, "text-anchor": "end" }, value.toFixed(1))]);
  return draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "curve", role: "group", "aria-label": label }, ...lines, ...children);
}

const path = (points) => points.map(([x, y], n) => `${n ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

export function trend(found) {
  const { points, lines } = found;
  const drawn = lines.flatMap((line, n) => {
    const places = line.values.map((value, at) => (value === null ? null : [across(at, points.length), down(value), value, at])).filter(Boolean);
    return [draw("path", { d: path(places), class: "way", "stroke-dasharray": DASHES[n % DASHES.length] }),
      ...(n ? [] : places.map(([x, y, , at]) => {
        const words = `${when(points[at].started_at)}: ${line.name} ${line.shown[at]}, ${points[at].verdict}`;
        return draw("a", { href: address("/report", { id: points[at].id }), "aria-label": words }, draw("title", {}, words),
          draw("circle", { cx: x, cy: y, r: 9, class: "reach" }), draw("circle", { cx: x, cy: y, r: 4, class: `point ${points[at].verdict}` }));
      }))];
  });
  const said = lines.map((line) => {
    const values = line.shown.filter((value) => value !== null);
    return `${line.name} ${values[0]} → ${values.at(-1)}`;
  }).join(" · ");
  return make("figure", { className: "trend" }, make("figcaption", null, make("strong", { textContent: found.command }), " ",
    make("span", { className: "quiet", textContent: `${found.config} · last ${points.length} · ${said}` })), paper(`${found.command}: ${said}`, ...drawn));
}

export function blameCurve(curve) {
  const last = Math.max(1, ...curve.map(([k]) => k));
  const x = (k) => LEFT + 6 + (k * (WIDTH - LEFT - 16)) / last;
  const band = curve.length ? path([...curve.map(([k, , , high]) => [x(k), down(high)]), ...[...curve].reverse().map(([k, , low]) => [x(k), down(low)])]) + "Z" : "";
  const dots = curve.map(([k, value, low, high]) => {
    const dot = draw("circle", { cx: x(k), cy: down(value), r: 4, class: "point" });
    dot.append(draw("title", {}, `first ${k} events kept: ${value.toFixed(3)} failed, 95% interval ${low.toFixed(3)} to ${high.toFixed(3)}`));
    return dot;
  });
  const words = curve.map(([k, value]) => `${k} events kept: ${value.toFixed(2)}`).join("; ");
  const svg = paper(`Share of continuations that failed, by events kept. ${words}`, draw("path", { d: band, class: "band" }), draw("path", { d: path(curve.map(([k, value]) => [x(k), down(value)])), class: "way" }), ...dots);
  svg.setAttribute("role", "img");
  return svg;
}
