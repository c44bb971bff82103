/* The family tree: number across, value up, each run joined to its parent. A branch that has no run which led or was
confirmed is a dead end; folded, the dead ends of a run are one pale line to the best of them. */
(() => {
"use strict";
const box = document.getElementById("tree"), told = document.getElementById("tree-told"), ends = document.getElementById("ends");
if (!box || !window.uPlot) return;
const { readColours, drawMark, axis, ORDER, RADIUS } = window.autoresearchChart, { scaleOf, upAxis } = window.autoresearchScale;
const { DOUBTED, READING, load, upScale, dots, Pointing, showKey } = window.autoresearchColumns;
const dark = matchMedia("(prefers-color-scheme: dark)");
const FEW = 400, NARROW = 560, NEAR = .1, ALIVE = ["leading", "provisional", "confirmed"], PLAIN = ORDER.filter(mark => mark !== "reported");
const { metric, grouped } = window.autoresearchNumbers;

/* Parents before their children, whatever their times say. */
function topDown(parent) {
  const runs = parent.length, first = new Int32Array(runs).fill(-1), next = new Int32Array(runs).fill(-1), order = new Int32Array(runs);
  const waiting = [];
  for (let run = runs - 1; run >= 0; run--) {
    if (parent[run] < 0) { waiting.push(run); continue; }
    next[run] = first[parent[run]];
    first[parent[run]] = run;
  }
  let count = 0;
  while (waiting.length) {
    const run = waiting.pop();
    order[count++] = run;
    for (let child = first[run]; child >= 0; child = next[child]) waiting.push(child);
  }
  return order;
}

/* What the tree is, whatever of it is shown: which runs are alive (a root, or they or runs after them led), the nearest
run alive above each dead one, and of each run alive how many dead ends it has and the best of them. */
function treeOf(data) {
  const { parent, runs, value } = data, order = topDown(parent), sign = data.maximize ? -1 : 1;
  const alive = new Uint8Array(runs), owner = new Int32Array(runs), dead = new Int32Array(runs), failed = new Int32Array(runs), best = new Int32Array(runs).fill(-1);
  const leads = ALIVE.map(mark => data.isMark(mark)), hasFailed = data.isMark("failed");
  for (let at = runs - 1; at >= 0; at--) {
    const run = order[at];
    if (parent[run] < 0 || leads.some(led => led(run))) alive[run] = 1;
    if (alive[run] && parent[run] >= 0) alive[parent[run]] = 1;
  }
  for (const run of order) {
    owner[run] = alive[run] ? run : owner[parent[run]];
    if (alive[run]) continue;
    const above = owner[run];
    dead[above] += 1;
    if (hasFailed(run)) failed[above] += 1;
    if (Number.isFinite(value[run]) && !DOUBTED.has(data.mark(run)) && (best[above] < 0 || sign * value[run] < sign * value[best[above]])) best[above] = run;
  }
  return { order, alive, owner, dead, failed, best };
}

function find(data, id) {
  for (let run = data.runs - 1; run >= 0; run--) if (data.id(run) === id) return run;
  return -1;
}

function show(data) {
  const { runs, parent, value } = data, { order, alive, owner, dead, failed, best } = treeOf(data), hasFailed = data.isMark("failed");
  const xs = new Float32Array(runs), ys = new Float32Array(runs), opened = new Set(), way = [], isWay = new Uint8Array(runs);
  for (let run = find(data, box.dataset.of); run >= 0; run = parent[run]) { way.unshift(run); isWay[run] = 1; }
  const first = 1 + data.left_out, whole = [first - .01 * runs - 1, first + 1.01 * runs];
  let span = whole, isOpen = runs <= FEW, isFar = false, colours = readColours(), chart = null;
  const sign = data.maximize ? -1 : 1, farthest = data.floor === null ? null : value => Math.max(sign * (value - data.floor), (data.noise || 1e-3) / 10);
  const scaled = value => isFar ? Math.log10(farthest(value)) : value;
  ends.querySelector(`[value=${isOpen ? "open" : "folded"}]`).checked = true;

  const isUnfolded = run => isOpen || opened.has(owner[run]);
  const isStub = run => !alive[run] && !isUnfolded(run);
  const toggle = run => {
    if (!dead[owner[run]] || isOpen) return false;
    if (!opened.delete(owner[run])) opened.add(owner[run]);
    rebuild();
    return true;
  };
  function say(run) {
    const number = `run ${grouped(run + first)}${Number.isFinite(value[run]) ? `, ${metric(value[run], data.decimals)}` : ""}, ${data.mark(run)}`;
    const count = dead[owner[run]], lost = failed[owner[run]];
    if (isStub(run)) return `${number}: the best of ${grouped(count)} in dead ends${lost ? `, ${grouped(lost)} failed` : ""}. A click unfolds them.`;
    return alive[run] && count ? `${number}; ${grouped(count)} ${count === 1 ? "run" : "runs"} in dead ends` : number;
  }
  const picture = { xs, ys, order: [], isByX: true, say, click: run => isStub(run) && toggle(run), toggle, along: way };
  const pointing = new Pointing(box, data, picture);

  function place(u) {
    const k = devicePixelRatio, { top, height } = u.bbox, bottom = top + height, shown = [];
    const perRun = u.valToPos(first + 1, "x", true) - u.valToPos(first, "x", true), left = u.valToPos(first, "x", true);
    const [least, most] = [u.scales.y.min, u.scales.y.max].map(one => isFar ? Math.log10(one) : one), rise = height / (most - least);
    for (const run of order) {
      xs[run] = left + perRun * run;
      const y = bottom - rise * (scaled(value[run]) - least);
      if (Number.isFinite(y)) ys[run] = Math.max(top + 4 * k, Math.min(bottom - 12 * k, y));
      else ys[run] = hasFailed(run) || parent[run] < 0 ? bottom - 4 * k : ys[parent[run]];
      const isThere = alive[run] || isUnfolded(run) || best[owner[run]] === run;
      if (isThere && xs[run] >= u.bbox.left && xs[run] <= u.bbox.left + u.bbox.width) shown.push(run);
    }
    picture.order = shown.sort((a, b) => a - b);
  }

  /* Lines as one path for each few thousand: a canvas slows down with longer ones. */
  function join(g, pairs, colour, width, alpha, dash = []) {
    g.strokeStyle = colour; g.lineWidth = width; g.globalAlpha = alpha; g.setLineDash(dash);
    let count = 0;
    g.beginPath();
    for (const [from, to] of pairs) {
      if (Math.abs(xs[from] - xs[to]) + Math.abs(ys[from] - ys[to]) < 1) continue;
      g.moveTo(xs[from], ys[from]); g.lineTo(xs[to], ys[to]);
      if (++count % 4000 === 0) { g.stroke(); g.beginPath(); }
    }
    g.stroke();
    g.globalAlpha = 1; g.setLineDash([]);
  }

  function draw(u) {
    place(u);
    const g = u.ctx, k = devicePixelRatio, { left, top, width, height } = u.bbox, bottom = top + height;
    const living = [], lost = [], stubs = [], plain = [], ticks = [], bold = [];
    for (let run = 0; run < runs; run++) {
      if (alive[run]) {
        if (parent[run] >= 0 && !isWay[run]) living.push([parent[run], run]);
        if (best[run] >= 0 && !isUnfolded(run)) stubs.push([run, best[run]]);
      } else if (isUnfolded(run)) {
        if (hasFailed(run)) ticks.push(run); else { lost.push([parent[run], run]); plain.push(run); }
      }
    }
    for (const run of picture.order) if (alive[run] && (way.length < FEW || !isWay[run])) bold.push(run);
    g.save();
    g.beginPath(); g.rect(left, top, width, height); g.clip();
    g.lineJoin = g.lineCap = "round";
    join(g, stubs, colours["text-3"], k, stubs.length > 300 ? .25 : .5, [3 * k, 2 * k]);
    join(g, lost, colours["text-3"], k, lost.length > 3000 ? .12 : .4);
    g.fillStyle = colours.dot;
    g.globalAlpha = plain.length > 3000 ? .4 : .8;
    dots(g, xs, ys, plain.filter(run => data.mark(run) === "reported"), Math.round((plain.length < FEW ? 4 : 2.4) * k));
    g.globalAlpha = stubs.length > 300 ? .3 : .8;
    for (const [run, end] of stubs) { g.beginPath(); g.arc(xs[end], ys[end], Math.min(7, 1.8 + .6 * Math.log2(dead[run])) * k, 0, 2 * Math.PI); g.fill(); }
    g.strokeStyle = colours.grey; g.lineWidth = k; g.globalAlpha = .5;
    g.beginPath();
    for (const run of ticks) { g.moveTo(xs[run], bottom); g.lineTo(xs[run], bottom - 7 * k); }
    g.stroke();
    join(g, living, colours["text-3"], 1.2 * k, .8);
    if (way.length) {
      g.strokeStyle = colours.blue; g.lineWidth = 3.2 * k;
      g.beginPath();
      for (const run of way) g.lineTo(xs[run], ys[run]);
      g.stroke();
    }
    const scale = bold.length > 500 ? .45 : bold.length > FEW / 4 ? .7 : 1;
    for (const kind of PLAIN) for (const run of plain.concat(bold)) if (data.mark(run) === kind) drawMark(g, colours, kind, xs[run], ys[run], scale * (RADIUS[kind] || 2.6) * k, 1.4 * k);
    g.fillStyle = colours["text-2"];
    for (const run of bold) if (data.mark(run) === "reported") { g.beginPath(); g.arc(xs[run], ys[run], 2.2 * scale * k, 0, 2 * Math.PI); g.fill(); }
    if (way.length) drawMark(g, colours, data.mark(way.at(-1)), xs[way.at(-1)], ys[way.at(-1)], 6 * k, 2 * k);
    g.restore();
    box.dataset.shown = picture.order.length;
  }

  function rebuild() {
    chart?.destroy();
    colours = readColours();
    const [since, to] = span.map(number => Math.round(number - first)), part = [Math.max(0, since), Math.min(runs, to + 1)];
    // How far from the floor, on a logarithm: equal heights are equal shares of what is left.
    const up = isFar ? scaleOf("log", value.subarray(...part).map(farthest)) : upScale(data, "value", ...part);
    chart = new uPlot({
      width: box.clientWidth, height: box.clientHeight, legend: { show: false }, padding: [8, box.clientWidth < NARROW ? 18 : 12, 0, 0],
      cursor: { points: { show: false }, drag: { x: true, y: false, dist: 8, setScale: false }, bind: { dblclick: () => () => zoom(whole) } },
      scales: { x: { time: false, range: span }, y: up.options },
      axes: [
        axis(() => colours, { size: 30, space: 80, values: (_, numbers) => numbers.map(number => number < 1 || number % 1 ? "" : grouped(number)) }),
        upAxis(up, axis(() => colours, { size: box.clientWidth < NARROW ? 48 : 58 })),
      ],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: { draw: [draw], setSelect: [selected] },
    }, [span, up.range], box);
    pointing.listen(chart.over);
    const folded = isOpen ? 0 : runs - alive.reduce((sum, one) => sum + one, 0);
    told.textContent = `${folded ? `${grouped(folded)} runs in dead ends are folded; a click on a pale circle unfolds those of a run. ` : ""}Dragging shows a part, a double click all.${data.left_out ? ` ${grouped(data.left_out)} older runs are left out.` : ""}`;
  }

  function zoom(to) {
    span = to;
    document.getElementById("zoomed").hidden = span === whole;
    rebuild();
  }

  function selected(u) {
    if (u.select.width < 8) return;
    const [from, to] = [u.select.left, u.select.left + u.select.width].map(at => u.posToVal(at, "x"));
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    if (to - from > 2) zoom([from, to]);
  }

  document.getElementById("unzoom").addEventListener("click", () => zoom(whole));
  ends.addEventListener("change", event => { isOpen = event.target.value === "open"; opened.clear(); rebuild(); });
  const ups = document.getElementById("ups");
  ups.hidden = !farthest;
  if (farthest) {
    // Most runs are near the floor: there a logarithm tells them apart.
    const far = value.filter(Number.isFinite).map(farthest).sort();
    isFar = far[far.length >> 1] < NEAR * far.at(-1);
    ups.querySelector(`[value=${isFar ? "far" : "value"}]`).checked = true;
  }
  ups.addEventListener("change", event => { isFar = event.target.value === "far"; rebuild(); });
  showKey(data, order);
  new ResizeObserver(() => { if (chart?.width !== box.clientWidth || chart?.height !== box.clientHeight) rebuild(); }).observe(box);
  dark.addEventListener("change", rebuild);
  rebuild();
}

told.textContent = READING;
load(box, []).then(show).catch(error => { told.textContent = "The runs could not be read: autoresearch status"; throw error; });
})();
