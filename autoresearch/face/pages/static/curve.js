/* Training curves: of a run and its parent, of runs that are compared, of those in the table of Progress. The fragment of
the address has the axes and the smoothing. */
(() => {
"use strict";
const root = document.getElementById("curves");
if (!root || !window.uPlot) return;
const { metric, brief } = window.autoresearchNumbers, { usual, scaleOf, upAxis } = window.autoresearchScale;
const { axis, readColours } = window.autoresearchChart;
const holder = root.querySelector(".curve"), told = root.querySelector(".curve-told"), results = () => document.getElementById("results");
const dark = matchMedia("(prefers-color-scheme: dark)"), GRID = 256, WIDE = 20, FEW = 6, NEAR = 24, HASH = /^#curves=(\w*),(\w*),([\d.]*)$/;
const [, up, across, smooth] = HASH.exec(location.hash) || [], view = { up: up || "", across: across || "share", smooth: Math.min(.95, Number(smooth) || 0) };
let data = null, chart = null, scale = null, colours = readColours(), hot = -1;

const length = curve => view.across === "share" ? 1 : curve[view.across];
const unit = () => ({ share: "", budget: ` ${data.unit}`, seconds: " s" })[view.across];

function remember() {
  const isUsual = !root.matches("details") && !view.up && view.across === "share" && !view.smooth;
  const hash = isUsual || root.matches("details:not([open])") ? "" : `#curves=${view.up},${view.across},${view.smooth || ""}`;
  history.replaceState(history.state, "", location.pathname + location.search + hash);
}

/* Where the values are wide apart a logarithm shows both their beginning and their end. */
function usualUp(values) {
  const shown = usual(values);
  return !data.rewards && shown[0] > 0 && shown.at(-1) >= WIDE * shown[0] ? "log" : "linear";
}

/* A curve at so many places of the axis across, drawn no further away than the eye can see; smoothed where that is wanted. */
function along(curve, most) {
  const [low, high] = scale.range.map(scale.to), far = high - low, places = [];
  let mean = 0, weight = 0;
  for (const value of curve.values) {
    const place = Math.max(low - far, Math.min(high + far, value === null ? high + far : scale.to(scale.place(value))));
    mean = view.smooth * mean + (1 - view.smooth) * place;
    weight = view.smooth * weight + 1 - view.smooth;
    places.push(mean / weight);
  }
  return Array.from({ length: GRID + 1 }, (_, at) => {
    const point = pointAt(curve, most * at / GRID), before = Math.floor(point);
    if (point < 0 || point > places.length - 1) return null;
    const next = places[before + 1] ?? places[before];
    return scale.from(places[before] + (point - before) * (next - places[before]));
  });
}

/* The points stand at the ends of equal parts of the training. */
const pointAt = (curve, x) => length(curve) > 0 ? x / length(curve) * curve.values.length - 1 + 1e-9 : -1;

function rebuild() {
  chart?.destroy();
  chart = null;
  if (!data?.curves.length || !holder.clientWidth) return;
  colours = readColours();
  const values = data.curves.flatMap(curve => curve.values), kind = view.up || usualUp(values), most = Math.max(...data.curves.map(length)) || 1;
  for (const [name, value] of [["up", kind], ["across", view.across]]) for (const input of root.querySelectorAll(`[name=curve-${name}]`)) input.checked = input.value === value;
  root.querySelector("[name=curve-smooth]").value = view.smooth;
  scale = scaleOf(kind, values);
  const many = data.curves.length > FEW, xs = Array.from({ length: GRID + 1 }, (_, at) => most * at / GRID);
  chart = new uPlot({
    width: holder.clientWidth, height: holder.clientHeight, legend: { show: false }, padding: [6, 18, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { show: !many } }, focus: { alpha: .25 },
    scales: { x: { time: false, range: [0, most] }, y: scale.options },
    axes: [
      axis(() => colours, { size: 26, space: 64, values: (_, at) => at.map(x => view.across === "share" ? `${Math.round(100 * x)} %` : `${brief(x, 3)}${unit()}`) }),
      upAxis(scale, axis(() => colours, { size: 52 })),
    ],
    series: [{}, ...data.curves.map(({ look }, i) => ({ stroke: () => colours[look], width: !many && i === data.curves.length - 1 ? 2 : 1.25, points: { show: false } }))],
    hooks: { draw: [edges], setCursor: [tell] },
  }, [xs, ...data.curves.map(curve => along(curve, most))], holder);
  chart.over.addEventListener("click", () => { if (hot >= 0 && data.curves[hot].id && many) location.href = `/run/${data.curves[hot].id}${root.dataset.suffix || ""}`; });
  tell(chart);
}

/* What lies outside is a triangle at the edge. */
function edges(u) {
  const g = u.ctx, k = devicePixelRatio, { left, top, width, height } = u.bbox, [low, high] = scale.range, most = u.scales.x.max;
  for (const curve of data.curves) {
    g.fillStyle = colours[curve.look];
    curve.values.forEach((value, at) => {
      const side = value === null || value > high ? -1 : value < low ? 1 : 0, x = left + width * (at + 1) / curve.values.length * length(curve) / most;
      if (!side) return;
      const y = side < 0 ? top : top + height;
      g.beginPath(); g.moveTo(x - 4 * k, y - 6 * side * k); g.lineTo(x + 4 * k, y - 6 * side * k); g.lineTo(x, y); g.fill();
    });
  }
}

const valueAt = (curve, x) => { const point = Math.round(pointAt(curve, x)); return point >= 0 && point < curve.values.length ? curve.values[point] : undefined; };
const write = value => value === null ? "no number" : metric(value);

function tell(u) {
  const { idx, left, top } = u.cursor, isOver = left >= 0 && idx !== null && idx !== undefined, many = data.curves.length > FEW;
  const x = isOver ? u.data[0][idx] : 0, place = view.across === "share" ? `${Math.round(100 * x)} %` : `${brief(x, 3)}${unit()}`;
  if (many) {
    const far = data.curves.map((_, i) => { const value = u.data[i + 1][idx]; return value === null || value === undefined ? Infinity : Math.abs(Math.max(0, Math.min(u.over.clientHeight, u.valToPos(value, "y"))) - top); });
    const nearest = isOver ? far.indexOf(Math.min(...far)) : -1, next = far[nearest] < NEAR ? nearest : -1;
    if (next !== hot) u.setSeries(next < 0 ? null : next + 1, { focus: next >= 0 });
    hot = next;
    told.textContent = hot >= 0 ? `${data.curves[hot].label}: ${write(valueAt(data.curves[hot], x))} at ${place}` : `${data.curves.length} curves, of the runs of this table that have one. The pointer names the nearest; a click opens its run.`;
    return;
  }
  const parts = data.curves.map(curve => [curve.id || curve.label, isOver ? valueAt(curve, x) : curve.values.at(-1)]).filter(([, value]) => value !== undefined);
  told.textContent = `${isOver ? `At ${place}` : "At the end"}: ${parts.map(([label, value]) => `${label} ${write(value)}`).join(", ")}`;
}

async function load() {
  const answer = await fetch(`/curves.json?${results().dataset.search}`).catch(() => null);
  data = answer?.ok ? await answer.json() : null;
  if (!data?.curves.length) { chart?.destroy(); chart = null; told.textContent = data ? "No run of this table has a training curve: their programs printed no loss." : "The daemon does not answer: autoresearch status"; return; }
  offer();
  rebuild();
}

/* An axis across is offered where the runs state it. */
function offer() {
  for (const name of ["budget", "seconds"]) root.querySelector(`[value=${name}]`).parentElement.hidden = !data.curves.some(curve => curve[name] > 0);
  root.querySelector("[value=budget] + span").textContent = data.unit;
}

root.addEventListener("input", event => {
  const name = event.target.name?.replace("curve-", "");
  if (!(name in view)) return;
  event.stopPropagation();
  view[name] = name === "smooth" ? Number(event.target.value) : event.target.value;
  remember();
  rebuild();
});
root.addEventListener("change", event => event.stopPropagation());
if (root.matches("details")) {
  root.addEventListener("toggle", () => { remember(); if (root.open) load(); });
  document.addEventListener("htmx:after:swap", event => { if (root.open && event.detail?.ctx?.target?.id === "results") { remember(); load(); } });
  root.open = HASH.test(location.hash);
} else {
  data = JSON.parse(document.getElementById("curve-data").textContent);
  offer();
  rebuild();
}
new ResizeObserver(() => { if (chart ? chart.width !== holder.clientWidth : data) rebuild(); }).observe(holder);
dark.addEventListener("change", rebuild);
})();
