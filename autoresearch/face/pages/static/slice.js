/* A setting against the value: a point for each run, and the median of those beside each other. */
(() => {
"use strict";
const box = document.getElementById("slice"), told = document.getElementById("slice-told");
if (!box || !window.uPlot) return;
const { readColours, drawMark, axis, ORDER, RADIUS } = window.autoresearchChart, { decades, upAxis, outside } = window.autoresearchScale;
const { DOUBTED, READING, load, upScale, dots, Pointing, showKey } = window.autoresearchColumns;
const { metric, brief, grouped } = window.autoresearchNumbers;
const dark = matchMedia("(prefers-color-scheme: dark)");
const FEW_VALUES = 24, FEW_RUNS = 3, MANY_MARKS = 300, WIDE = 30, WINDOWS = 32, LEAST_WINDOW = 9, SPREAD = 14, NARROW = 560;
const PLAIN = ORDER.filter(mark => mark !== "reported");
const middle = values => { const sorted = Float64Array.from(values).sort(), half = sorted.length >> 1; return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2; };

/* Groups of runs that are beside each other: those with the same value of the setting, or as many at a time. */
function medians(runs, at, value, isFew) {
  const found = [], window = Math.max(LEAST_WINDOW, Math.ceil(runs.length / WINDOWS));
  if (isFew) {
    for (let i = 0; i < runs.length;) {
      let end = i;
      while (end < runs.length && at[runs[end]] === at[runs[i]]) end++;
      found.push([at[runs[i]], middle(runs.slice(i, end).map(run => value[run]))]);
      i = end;
    }
    return found;
  }
  for (let i = 0; i + window <= runs.length; i += Math.max(1, window >> 1)) {
    const group = runs.slice(i, i + window);
    found.push([middle(group.map(run => at[run])), middle(group.map(run => value[run]))]);
  }
  return found;
}

function show(data) {
  const setting = data.settings.get(box.dataset.setting), at = setting.values, isFailed = data.isMark("failed");
  const known = Array.from(at.keys()).filter(run => Number.isFinite(at[run]));
  const valued = known.filter(run => Number.isFinite(data.value[run])).sort((a, b) => at[a] - at[b]), failed = known.filter(isFailed);
  const all = valued.concat(failed);
  if (!all.length) { told.textContent = "No run states a value of this setting."; return; }
  const lowest = Math.min(...[valued[0], valued.at(-1), ...failed.slice(0, 5000)].filter(run => run !== undefined).map(run => at[run]));
  const highest = valued.concat(failed).reduce((most, run) => Math.max(most, at[run]), -Infinity);
  const distinct = new Set();
  for (const run of all) { distinct.add(at[run]); if (distinct.size > FEW_VALUES) break; }
  const isFew = distinct.size <= FEW_VALUES, isLog = !setting.texts.length && lowest > 0 && highest / lowest >= WIDE;
  const counted = valued.filter(run => !DOUBTED.has(data.mark(run)));
  const line = medians(counted, at, data.value, isFew && counted.length >= FEW_RUNS * distinct.size), up = upScale(data, document.querySelector("[name=y]:checked").value || "value");
  const xs = new Float32Array(data.runs).fill(NaN), ys = new Float32Array(data.runs).fill(NaN);
  const say = run => `${setting.name} ${setting.texts[at[run]] ?? brief(at[run])}${Number.isFinite(data.value[run]) ? `, ${metric(data.value[run], data.decimals)}` : ""}, ${data.mark(run)}`;
  const pointing = new Pointing(box, data, { xs, ys, order: all, say });
  const kinds = new Map(PLAIN.map(mark => [mark, []])), plain = [];
  for (const run of valued) (kinds.get(data.mark(run)) || plain).push(run);
  let colours = readColours(), chart = null;
  const edge = isLog ? [lowest / 1.15, highest * 1.15] : [lowest - .03 * (highest - lowest || 1), highest + .03 * (highest - lowest || 1)];
  const pad = Math.max(.5 * step(), .02 * (highest - lowest));
  const wide = setting.texts.length || isFew && !isLog ? [lowest - pad, highest + pad] : edge;

  function step() {
    const sorted = [...distinct].sort((a, b) => a - b);
    return Math.min(...sorted.slice(1).map((one, i) => one - sorted[i]), highest - lowest || 1);
  }

  function draw(u) {
    const g = u.ctx, k = devicePixelRatio, { left, top, width, height } = u.bbox, bottom = top + height;
    const pixels = [...distinct].map(one => u.valToPos(one, "x", true)).sort((a, b) => a - b);
    const gap = isFew ? Math.min(...pixels.slice(1).map((one, i) => one - pixels[i]), width) : 0;
    const spread = isFew ? Math.min(2 * SPREAD * k, .6 * gap) : 0;
    for (const run of all) {
      xs[run] = u.valToPos(at[run], "x", true) + spread * ((run * .618034) % 1 - .5);
      const y = u.valToPos(up.place(data.value[run]), "y", true);
      ys[run] = Number.isFinite(y) ? Math.max(top + 4 * k, Math.min(bottom - 8 * k, y)) : bottom - 4 * k;
    }
    g.save();
    g.beginPath(); g.rect(left, top, width, height); g.clip();
    g.strokeStyle = colours.grey; g.lineWidth = k; g.globalAlpha = failed.length > 500 ? .3 : .8;
    g.beginPath();
    for (const run of failed) { g.moveTo(xs[run], bottom); g.lineTo(xs[run], bottom - 7 * k); }
    g.stroke();
    g.globalAlpha = plain.length > 2000 ? .35 : .8;
    g.fillStyle = colours.dot;
    dots(g, xs, ys, plain, Math.round((plain.length < 200 ? 4.5 : 3) * k));
    g.globalAlpha = 1;
    const isMany = valued.length - plain.length > MANY_MARKS;
    if (isMany) marks(g, k);
    g.lineJoin = "round";
    for (const [colour, thick] of [[colours.surface, 5], [colours.blue, 2.4]]) {
      g.strokeStyle = colour; g.lineWidth = thick * k;
      g.beginPath();
      for (const [x, y] of line) g.lineTo(u.valToPos(x, "x", true), u.valToPos(up.place(y), "y", true));
      g.stroke();
      g.fillStyle = colour;
      if (isFew) for (const [x, y] of line) { g.beginPath(); g.arc(u.valToPos(x, "x", true), u.valToPos(up.place(y), "y", true), (thick + 1) * k, 0, 2 * Math.PI); g.fill(); }
    }
    if (!isMany) marks(g, k);
    g.restore();
  }

  function marks(g, k) {
    for (const [mark, runs] of kinds) for (const run of runs) drawMark(g, colours, mark, xs[run], ys[run], .8 * (RADIUS[mark] || 2.6) * k, 1.4 * k);
  }

  function rebuild() {
    chart?.destroy();
    colours = readColours();
    const isNarrow = box.clientWidth < NARROW, words = setting.texts.length > 0;
    const across = {
      size: 30, space: 70, values: (_, values) => values.map(one => one === null ? "" : words ? setting.texts[one] ?? "" : brief(one)),
      ...words ? { splits: () => [...distinct].sort((a, b) => a - b) } : isLog ? { splits: () => decades(edge, 6).map(tick => tick.value), filter: (_, splits) => splits } : {},
    };
    chart = new uPlot({
      width: box.clientWidth, height: box.clientHeight, legend: { show: false }, padding: [8, isNarrow ? 18 : 12, 0, 0],
      cursor: { points: { show: false }, drag: { x: false, y: false } },
      scales: { x: isLog ? { time: false, distr: 3, log: 10, range: edge } : { time: false, range: wide }, y: up.options },
      axes: [axis(() => colours, across), upAxis(up, axis(() => colours, { size: isNarrow ? 48 : 58 }))],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: { draw: [draw] },
    }, [isLog ? edge : wide, up.range], box);
    pointing.listen(chart.over);
  }

  const beyond = outside(valued.map(run => data.value[run]), up.range);
  const best = line.reduce((a, b) => (data.maximize ? b[1] > a[1] : b[1] < a[1]) ? b : a, line[0]);
  const rest = known.length < data.runs ? ` ${grouped(data.runs - known.length)} others state none.` : "";
  told.textContent = `${grouped(known.length)} runs state ${setting.name}${failed.length ? `; ${grouped(failed.length)} of them failed, the ticks below` : ""}.${best ? ` The running median is best, ${metric(best[1], data.decimals)}, at ${setting.texts[best[0]] ?? brief(best[0])}.` : ""}${rest}${data.left_out ? ` ${grouped(data.left_out)} ${data.sampled ? "runs are left out: these are a sample by chance, and those that led or were measured by others" : "older runs are left out"}.` : ""}${beyond && ` Marks at the edge: ${beyond}.`}`;
  showKey(data, all);
  new ResizeObserver(() => { if (chart?.width !== box.clientWidth || chart?.height !== box.clientHeight) rebuild(); }).observe(box);
  dark.addEventListener("change", rebuild);
  rebuild();
}

told.textContent = READING;
load(box, JSON.parse(document.getElementById("axes").textContent)).then(show).catch(error => { told.textContent = "The runs could not be read: autoresearch status"; throw error; });
})();
