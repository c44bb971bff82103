/* The progress chart: axes, pointer, keyboard, zoom, filters. Its data is asked for at /chart.json: all runs, what a
filter finds, a part of an axis where runs are counted in cells. An exported page has it. The address says the whole
state, so that Back and a copied link show the same. */
(async () => {
"use strict";
const find = (selector, from = document) => from.querySelector(selector);
const box = find("#chart"), data = find("#chart-data"), { draw, readColours, valueOf, upScale, columnAt } = window.autoresearchChart, { metric, brief, grouped } = window.autoresearchNumbers, { upAxis, outside } = window.autoresearchScale;
if (!box) return;
const card = find("#card"), say = find("#say"), plot = find("#plot"), dark = matchMedia("(prefers-color-scheme: dark)");
const isExported = "exported" in box.dataset, exported = new Set((box.dataset.exported || "").split(" "));
const COLUMNS = { number: "number", time: "time_ms", cost: "cost_ms" };
const USUAL = { x: "number", y: "value", chart: "", since: 0, to: 0 };
const FILTERS = ["state", "by", "has", "q", "hardware", "where"];
const REACH = 22, CELL = 16, NARROW = 560, CARD_DELAY_MS = 50, DOUBLE_CLICK_MS = 300;
const UNITS = [["s", 1e3], ["min", 6e4], ["h", 3.6e6], ["d", 8.64e7]];

const inAddress = new URLSearchParams(location.search);
const given = ["task", "x", "since", "to"].filter(name => inAddress.get(name)).map(name => [name, inAddress.get(name)]);
let whole = data ? JSON.parse(data.textContent) : await ask(`/chart.json?${new URLSearchParams(given)}`).catch(() => null);
if (!whole) return;
USUAL.y = whole.usual;
const view = { ...USUAL };
for (const name of ["x", "y", "chart"]) view[name] = find(`[data-view=${name}] :checked`)?.value ?? USUAL[name];
for (const button of document.querySelectorAll("[data-view=y] input")) button.checked = button.value === view.y;
view.since = whole.since; view.to = whole.to;
// Cells are counted for one axis and one part of it: another one is asked for.
const asksAgain = () => !isExported && (whole.binned || whole.since > 0 || whole.to > 0);
let all = whole, found = null, unit = UNITS[0], u = null, placed = [], grid = new Map(), hot = null, colours = readColours();

/* --- the address --- */
function address(path, names) {
  const given = new URLSearchParams(location.search), said = new URLSearchParams();
  for (const name of names) if (given.get(name)) said.set(name, given.get(name));
  for (const name of ["x", "since", "to"]) if (view[name] !== USUAL[name]) said.set(name, view[name]);
  return `${path}?${said}`;
}

function withView(href) {
  const url = new URL(href, location.href);
  for (const [name, usual] of Object.entries(USUAL)) {
    if (view[name] === usual) url.searchParams.delete(name); else url.searchParams.set(name, view[name]);
  }
  return url.pathname + url.search.replaceAll("%2C", ",") + url.hash;
}

/* Links of the table were made for the view that the server knew. */
function tellAddress() {
  if (isExported) return;
  history.replaceState(history.state, "", withView(location.href));
  const form = find("#filter");
  for (const name of ["since", "to"]) if (form) form.elements[name].value = view[name];
  if (form) form.elements.y.value = view.y === USUAL.y ? "" : view.y;
  tellLinks();
}

function tellLinks() {
  for (const link of document.querySelectorAll("#results a[href='/'], #results a[href^='/?']")) {
    const to = withView(link.href);
    link.setAttribute("href", to);
    if (link.hasAttribute("hx-get")) link.setAttribute("hx-get", to);
  }
}

/* --- data --- */
async function ask(path) {
  const answer = await fetch(path);
  return answer.ok ? answer.json() : null;
}

async function showFound() {
  const given = new URLSearchParams(location.search);
  const isFiltered = !isExported && FILTERS.some(name => given.get(name));
  found = isFiltered ? await ask(address("/chart.json", [...FILTERS, "task"])) : null;
  rebuild();
}

async function show(changes) {
  const moves = ["x", "since", "to"].some(name => name in changes), part = () => `${view.since}-${view.to}`, before = part();
  if ("x" in changes) Object.assign(view, { since: 0, to: 0 });
  Object.assign(view, changes);
  plot.classList.toggle("small", view.chart === "small");
  plot.classList.toggle("large", view.chart === "large");
  find("#zoomed").hidden = !(view.since || view.to);
  tellAddress();
  // The table has the runs of the part that is shown.
  if (part() !== before) find("#filter")?.requestSubmit();
  if (moves && asksAgain()) {
    all = await ask(address("/chart.json", ["task"])) || all;
    if (found) found = await ask(address("/chart.json", [...FILTERS, "task"])) || found;
  }
  rebuild();
}

/* --- scales --- */
const column = () => COLUMNS[view.x];
const toScale = number => view.x === "cost" ? number / unit[1] : number;
const fromScale = number => view.x === "cost" ? number * unit[1] : number;

function bounds() {
  let lo = Infinity, hi = -Infinity;
  for (const numbers of [all.marks.map(mark => mark[column()]), all.dots[column()], all.failures[column()]]) {
    for (const number of numbers) { lo = Math.min(lo, number); hi = Math.max(hi, number); }
  }
  if (lo > hi) [lo, hi] = [0, 1];
  unit = UNITS.findLast(([, length]) => hi >= 2 * length) || UNITS[0];
  const edge = .012 * (hi - lo || 1);
  return [view.since ? toScale(view.since) : toScale(lo - edge), view.to ? toScale(view.to) : toScale(hi + edge)];
}

function distance(value) {
  const far = (all.maximize ? -1 : 1) * (value - all.floor);
  return Math.max(far, (all.noise || 1e-3) / 10);
}

function scene() {
  const name = column(), isDistance = view.y === "distance" && all.floor !== null;
  return { all, found, column: name, up: isDistance ? "distance" : view.y, colours, x: run => toScale(run[name]), y: value => isDistance ? distance(value) : value };
}

const DAY_MS = 8.64e7, MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = number => String(number).padStart(2, "0");

/* On the clock of the reader; the day where a day begins and at the first place. */
function moments(_, splits, __, ___, step) {
  return splits.map((time_ms, i) => {
    const at = new Date(time_ms), day = `${at.getDate()} ${MONTHS[at.getMonth()]}`, clock = `${two(at.getHours())}:${two(at.getMinutes())}`;
    if (step >= DAY_MS) return step > 300 * DAY_MS ? `${at.getFullYear()}` : day;
    if (clock === "00:00") return day;
    return (i ? "" : `${day} `) + clock + (step < 6e4 ? `:${two(at.getSeconds())}` : "");
  });
}

const X_LABELS = {
  time: moments,
  number: (_, numbers) => numbers.map(number => number < 0 || number % 1 ? "" : grouped(number)),
  cost: (_, numbers) => numbers.map(number => number < 0 ? "" : `${brief(number, 6)} ${unit[0]}`),
};

const axis = more => window.autoresearchChart.axis(() => colours, more);

function rebuild() {
  u?.destroy();
  u = null;
  if (!box.clientHeight) return;
  const [lo, hi] = bounds(), shown = scene(), isNarrow = box.clientWidth < NARROW, scale = upScale(shown, [lo, hi]), { range } = scale;
  if (shown.up !== "distance") shown.y = scale.place;
  u = new uPlot({
    width: box.clientWidth, height: box.clientHeight, ms: 1, legend: { show: false }, padding: [8, isNarrow ? 18 : 12, 0, 0],
    cursor: { points: { show: false }, drag: { x: true, y: false, dist: 8, setScale: false }, bind: { dblclick: () => () => show({ since: 0, to: 0 }) } },
    scales: { x: { time: view.x === "time", range: [lo, hi] }, y: scale.options },
    axes: [axis({ size: 30, space: view.x === "time" ? 100 : 80, values: X_LABELS[view.x] }), upAxis(scale, axis({ size: isNarrow ? 48 : 58 }))],
    series: [{}, { paths: () => null, points: { show: false } }],
    hooks: { draw: [drawn => keep(draw(drawn, shown))], setSelect: [selected] },
  }, [[lo, hi], range], box);
  box.append(ring, card);
  listen(u.over);
  tellOutside(found || all, [lo, hi], range, shown);
}

/* What the axis has no room for is said: the marks at its edges look alike. */
function tellOutside({ marks, dots }, [lo, hi], range, { x, up }) {
  const isIn = run => x(run) >= lo && x(run) <= hi, values = [], counts = [];
  for (const mark of marks) if (isIn(mark)) { values.push(valueOf(mark)); counts.push(1); }
  dots.reported.forEach((value, i) => { if (isIn(columnAt(dots, i))) { values.push(value); counts.push(dots.count[i] || 1); } });
  const told = up === "distance" ? "" : outside(values, range, at => counts[at]);
  find("#outside").textContent = told && `Marks at the edge: ${told}.`;
}

/* --- zoom --- */
let isDragged = false, opening = 0;

function selected(chart) {
  if (chart.select.width < 8) return;
  const [from, to] = [chart.select.left, chart.select.left + chart.select.width].map(left => fromScale(chart.posToVal(left, "x")));
  chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  isDragged = true;
  show({ since: Math.max(1, Math.floor(from)), to: Math.max(2, Math.ceil(to)) });
}

/* --- what is under the pointer --- */
const ring = document.createElement("div");
ring.className = "halo";
ring.hidden = true;

function keep(marks) {
  placed = marks;
  grid = new Map();
  for (const mark of marks) {
    const cell = `${Math.floor(mark.x / CELL)},${Math.floor(mark.y / CELL)}`;
    if (!grid.has(cell)) grid.set(cell, []);
    grid.get(cell).push(mark);
  }
}

function nearest(offsetX, offsetY) {
  const x = offsetX + u.bbox.left / devicePixelRatio, y = offsetY + u.bbox.top / devicePixelRatio;
  const column = Math.floor(x / CELL), row = Math.floor(y / CELL);
  let best = null, least = REACH;
  for (let i = -2; i <= 2; i++) for (let j = -2; j <= 2; j++) for (const mark of grid.get(`${column + i},${row + j}`) || []) {
    const far = Math.hypot(mark.x - x, mark.y - y) - (mark.run ? 5 : 0);
    if (far < least) { least = far; best = mark; }
  }
  return best;
}

function listen(over) {
  over.addEventListener("mousedown", () => { isDragged = false; });
  over.addEventListener("mousemove", event => point(nearest(event.offsetX, event.offsetY)));
  over.addEventListener("mouseleave", () => point(null));
  over.addEventListener("click", event => {
    const mark = isDragged ? null : nearest(event.offsetX, event.offsetY);
    if (!mark) return;
    if (event.shiftKey && mark.id) return document.dispatchEvent(new CustomEvent("page:pick", { detail: mark.id }));
    if (matchMedia("(hover: none)").matches && hot?.id !== mark.id) return point(mark);
    // While a part is shown, a second click may follow: two of them show all.
    clearTimeout(opening);
    if (event.detail < 2) opening = setTimeout(open, view.since || view.to ? DOUBLE_CLICK_MS : 0, mark);
  });
}

function open(mark) {
  if (isExported && !exported.has(mark.id)) return;
  location.href = box.dataset.run + mark.id + box.dataset.suffix;
}

function circle(mark) {
  ring.hidden = !mark;
  if (mark) { ring.style.left = `${mark.x - 9}px`; ring.style.top = `${mark.y - 9}px`; }
}

function words(mark) {
  const name = mark.mark === "leading" ? "reported" : mark.mark;
  const origin = mark.run?.verified === undefined ? "reported" : "verified";
  return [name, mark.value === undefined ? "" : `${metric(mark.value, all.decimals)} ${origin}`, mark.run?.label].filter(Boolean).join(", ");
}

const cards = new Map();
async function cardOf(id) {
  const answer = await fetch(`/card/${id}${box.dataset.suffix}`);
  return answer.ok ? answer.text() : "";
}

async function point(mark, isSpoken = false) {
  if (mark?.id === hot?.id) return;
  hot = mark;
  circle(mark);
  card.hidden = !mark;
  if (!mark) return;
  card.textContent = `${mark.id} ${words(mark)}`;
  putCard(mark);
  if (isSpoken) say.textContent = words(mark);
  if (isExported) return;
  if (!cards.has(mark.id)) {
    await new Promise(resolve => setTimeout(resolve, CARD_DELAY_MS));
    if (hot?.id !== mark.id) return;
    if (!cards.has(mark.id)) cards.set(mark.id, cardOf(mark.id).catch(() => ""));
  }
  const text = await cards.get(mark.id);
  if (hot?.id === mark.id && text) { card.innerHTML = text; putCard(mark); }
}

function putCard(mark) {
  const width = card.offsetWidth, fits = mark.x + 18 + width < box.clientWidth;
  const left = fits ? mark.x + 18 : Math.min(box.clientWidth - width - 8, mark.x - width - 18);
  card.style.left = `${Math.max(8, left)}px`;
  card.style.top = `${Math.max(4, Math.min(box.clientHeight - card.offsetHeight - 34, mark.y - card.offsetHeight / 2))}px`;
}

/* --- keyboard --- */
function neighbour(key, isEach) {
  const list = isEach ? placed : placed.filter(mark => mark.run && (mark.run.leads || mark.run.led_by_claim));
  const at = hot ? list.findIndex(mark => mark.id === hot.id) : -1;
  if (key === "Home") return list[0];
  if (key === "End") return list.at(-1);
  if (key === "ArrowRight") return at >= 0 ? list[at + 1] : hot ? list.find(mark => mark.at > hot.at) : list[0];
  if (key === "ArrowLeft") return at >= 0 ? list[at - 1] : hot ? list.findLast(mark => mark.at < hot.at) : list.at(-1);
  return null;
}

box.addEventListener("keydown", event => {
  if (event.target !== box) return;
  const to = neighbour(event.key, event.shiftKey);
  if (to) { event.preventDefault(); point(to, true); }
  else if (event.key === "Enter" && hot) open(hot);
  else if (event.key === "Escape" && hot) point(null);
  else if (event.key === "Escape" && view.chart === "large") choose("chart", "");
});
box.addEventListener("blur", () => point(null));

function choose(name, value) {
  for (const button of document.querySelectorAll(`[data-view=${name}] input`)) button.checked = button.value === value;
  show({ [name]: value });
}

/* --- the rest of the page --- */
for (const group of document.querySelectorAll("[data-view]")) {
  group.addEventListener("change", event => { event.stopPropagation(); show({ [group.dataset.view]: event.target.value }); });
}
find("#unzoom").addEventListener("click", () => show({ since: 0, to: 0 }));

let filtered = FILTERS.map(name => inAddress.get(name) || "").join("\n");
document.addEventListener("htmx:after:history:update", () => {
  const given = new URLSearchParams(location.search), now = FILTERS.map(name => given.get(name) || "").join("\n");
  if (now !== filtered) { filtered = now; showFound(); }
});
document.addEventListener("htmx:after:swap", tellLinks);

/* A picture of the chart as it is drawn, on the colour of the page. */
document.addEventListener("click", event => {
  if (event.target.id !== "png" || !u) return;
  const picture = document.createElement("canvas"), drawn = u.ctx.canvas, g = picture.getContext("2d");
  picture.width = drawn.width; picture.height = drawn.height;
  g.fillStyle = colours.surface;
  g.fillRect(0, 0, picture.width, picture.height);
  g.drawImage(drawn, 0, 0);
  const link = document.createElement("a");
  link.download = "progress.png";
  link.href = picture.toDataURL("image/png");
  link.click();
});

document.addEventListener("mouseover", event => {
  const row = event.target.closest("tr[data-id]");
  if (!hot) circle(row && placed.find(mark => mark.id === row.dataset.id));
});

new ResizeObserver(() => { if (u?.width !== box.clientWidth || u?.height !== box.clientHeight) rebuild(); }).observe(box);
dark.addEventListener("change", () => { colours = readColours(); rebuild(); });
rebuild();
if (filtered.trim()) showFound();

/* --- live: the chart is drawn again, the table stays as it is read; new runs are offered --- */
let listed = whole.total;

function offer() {
  const link = find("#fresh"), count = whole.total - listed;
  if (!link || count < 1) return;
  link.hidden = false;
  link.textContent = `${count} new ${count === 1 ? "run" : "runs"}, show`;
}

const idsOf = chart => new Set([...chart.marks.map(mark => mark.id), ...chart.dots.id]);

document.addEventListener("page:fresh", async () => {
  const fresh = isExported ? null : await ask(address("/chart.json", ["task"]));
  if (!fresh || JSON.stringify(fresh) === JSON.stringify(whole)) return;
  whole = fresh;
  const before = idsOf(all);
  all = whole;
  if (found) await showFound(); else rebuild();
  offer();
  const added = placed.findLast(mark => !before.has(mark.id));
  if (!added || hot) return;
  circle(added);
  ring.classList.add("new");
  ring.addEventListener("animationend", () => { ring.classList.remove("new"); if (!hot) circle(null); }, { once: true });
});
document.addEventListener("htmx:after:swap", event => {
  if (event.detail?.ctx?.target?.id === "results") listed = whole.total;
});
})();
