/* Parallel coordinates: an axis for each setting and one for the value, a line for each run. What is dragged over on an
axis is a condition, which stands in the field below; the field finds the runs of the table. */
(() => {
"use strict";
const box = document.getElementById("parallel"), told = document.getElementById("parallel-told"), form = document.getElementById("where");
if (!box || !form) return;
const { readColours } = window.autoresearchChart, { DOUBTED, READING, load, upScale } = window.autoresearchColumns;
const names = JSON.parse(document.getElementById("axes").textContent), VALUE = "value", dark = matchMedia("(prefers-color-scheme: dark)");
const LEAST_WIDTH = 96, TOP = 34, BOTTOM = 18, LINES = 3000, WIDE = 30, BEST = .1, GRAB = 24, LEAST_DRAG = 4;
const canvas = document.createElement("canvas"), front = document.createElement("canvas");
const { brief, grouped } = window.autoresearchNumbers;
front.className = "front";
box.append(canvas, front);

/* A value that the axis begins or ends with is written so that rounding leaves no run out. */
const rounded = (number, up) => { const step = 10 ** (Math.floor(Math.log10(Math.abs(number) || 1)) - 4); return String(+((up ? Math.ceil : Math.floor)(number / step) * step).toPrecision(6)); };

class Axis {
  constructor(name, values, texts, scale = null) {
    Object.assign(this, { name, values, texts, scale, brush: null });
    let low = Infinity, high = -Infinity;
    for (const value of values) { if (value < low) low = value; if (value > high && value < Infinity) high = value; }
    [this.low, this.high] = scale?.range || (low > high ? [0, 1] : low === high || texts.length ? [low - .5, high + .5] : [low, high]);
    this.isLog = !scale && !texts.length && low > 0 && high / low >= WIDE;
  }

  share(value) {
    const to = this.scale?.to || (this.isLog ? Math.log : one => one), placed = this.scale?.place(value) ?? value;
    return Math.max(0, Math.min(1, (to(placed) - to(this.low)) / (to(this.high) - to(this.low))));
  }

  at(share) {
    if (this.scale) { const [low, high] = [this.low, this.high].map(this.scale.to); return this.scale.from(low + share * (high - low)); }
    return this.isLog ? this.low * (this.high / this.low) ** share : this.low + share * (this.high - this.low);
  }

  /* Ends that lie at the end of the axis are none: the axis of the value is cut. */
  get ends() { return [this.brush[0] <= 0 ? -Infinity : this.at(this.brush[0]), this.brush[1] >= 1 ? Infinity : this.at(this.brush[1])]; }

  get condition() {
    if (!this.brush) return "";
    const [low, high] = this.ends;
    if (this.texts.length) return `${this.name}=${this.texts.filter((_, at) => at >= low && at <= high).join("|")}`;
    return [low > -Infinity ? `${this.name}>=${rounded(low, false)}` : "", high < Infinity ? `${this.name}<=${rounded(high, true)}` : ""].filter(Boolean).join(",");
  }
}

function show(data) {
  const known = names.filter(name => data.settings.has(name)).map(name => data.settings.get(name));
  const axes = [...known.map(one => new Axis(one.name, one.values, one.texts)), new Axis(VALUE, data.value, [], upScale(data, document.querySelector("[name=y]:checked").value || "value"))];
  const field = form.elements.where, sign = data.maximize ? -1 : 1;
  const runs = Array.from(data.value.keys()).filter(run => Number.isFinite(data.value[run]) && !DOUBTED.has(data.mark(run))).sort((a, b) => sign * (data.value[a] - data.value[b]));
  const every = Math.max(1, Math.floor(runs.length / LINES)), best = runs.slice(0, Math.ceil(BEST * runs.length));
  let colours, width, height, rest = "", isAsked = 0;

  /* Conditions that a brush can stand for become brushes; others stay in the field. */
  function read() {
    const others = [], bounds = new Map();
    for (const part of field.value.split(",").map(one => one.trim()).filter(Boolean)) {
      const [, name, how, wanted] = part.match(/^(.+?)\s*(<=|>=)\s*(.+)$/) || [], axis = axes.find(one => one.name === name && !one.texts.length);
      if (!axis || !Number.isFinite(+wanted)) { others.push(part); continue; }
      const bound = bounds.get(axis) || [0, 1];
      bound[how === ">=" ? 0 : 1] = axis.share(+wanted);
      bounds.set(axis, bound);
    }
    for (const axis of axes) axis.brush = bounds.get(axis) || null;
    rest = others.join(",");
  }

  const x = at => LEAST_WIDTH / 2 + at * (width - LEAST_WIDTH) / Math.max(1, axes.length - 1);
  const y = (axis, value) => TOP + (1 - axis.share(value)) * (height - TOP - BOTTOM);

  function chosen() {
    const brushed = axes.filter(axis => axis.brush).map(axis => [axis.values, ...axis.ends]);
    return brushed.length ? runs.filter(run => brushed.every(([values, low, high]) => values[run] >= low && values[run] <= high)) : null;
  }

  function lines(g, some, colour, alpha) {
    g.strokeStyle = colour; g.globalAlpha = alpha; g.lineWidth = 1;
    for (const run of some) {
      g.beginPath();
      let isUp = true;
      axes.forEach((axis, at) => {
        const value = axis.values[run];
        if (Number.isNaN(value)) { isUp = true; return; }
        if (isUp) g.moveTo(x(at), y(axis, value)); else g.lineTo(x(at), y(axis, value));
        isUp = false;
      });
      g.stroke();
    }
    g.globalAlpha = 1;
  }

  const thinned = some => { const step = Math.max(1, Math.floor(some.length / LINES)); return step > 1 ? some.filter((_, at) => at % step === 0) : some; };
  const alpha = some => Math.max(.05, Math.min(.7, 100 / Math.min(LINES, some.length || 1)));

  function paint(of) {
    const k = devicePixelRatio;
    of.width = width * k; of.height = height * k;
    of.style.width = `${width}px`; of.style.height = `${height}px`;
    const g = of.getContext("2d");
    g.scale(k, k);
    return g;
  }

  function drawAll() {
    colours = readColours();
    width = Math.max(box.parentElement.clientWidth, LEAST_WIDTH * axes.length); height = box.clientHeight;
    box.style.width = `${width}px`;
    lines(paint(canvas), runs.filter((_, at) => at % every === 0), colours.dot, alpha(runs) / 2);
    drawChosen();
  }

  /* What changes while somebody drags is drawn on a canvas of its own. */
  function drawChosen() {
    const g = paint(front), found = chosen();
    lines(g, thinned(found || best), colours.blue, alpha(found || best));
    g.font = `11px ${colours.font}`; g.textAlign = "center"; g.lineJoin = "round";
    const text = (words, left, top, colour) => { g.lineWidth = 3; g.strokeStyle = colours.surface; g.strokeText(words, left, top); g.fillStyle = colour; g.fillText(words, left, top); };
    axes.forEach((axis, at) => {
      const left = x(at);
      g.strokeStyle = colours["text-3"]; g.lineWidth = 1;
      g.beginPath(); g.moveTo(left, TOP); g.lineTo(left, height - BOTTOM); g.stroke();
      const title = axis.name === VALUE ? box.dataset.metric : axis.name;
      text(title.length > 15 ? `${title.slice(0, 14)}…` : title, left, 11, colours.text);
      if (axis.texts.length) axis.texts.slice(0, 12).forEach((word, i) => text(word.slice(0, 14), left, y(axis, i) + 4, colours["text-2"]));
      else if (axis.scale) for (const tick of axis.scale.ticks(6)) text(tick.text, left + 24, y(axis, tick.value) + 4, colours["text-2"]);
      else { text(brief(axis.high), left, TOP - 6, colours["text-2"]); text(brief(axis.low), left, height - 4, colours["text-2"]); }
      if (!axis.brush) return;
      const [top, bottom] = [1, 0].map(end => TOP + (1 - axis.brush[end]) * (height - TOP - BOTTOM));
      const top2 = Math.min(top, bottom);
      g.fillStyle = colours.band; g.fillRect(left - 9, top2, 18, Math.abs(bottom - top));
      g.strokeStyle = colours.blue; g.lineWidth = 1.5; g.strokeRect(left - 9, top2, 18, Math.abs(bottom - top));
    });
    const others = rest ? ` The field has further conditions: ${rest}.` : "";
    told.textContent = (found ? `${grouped(found.length)} of ${grouped(runs.length)} runs with a value go through what is marked.` : `The best tenth of ${grouped(runs.length)} runs with a value is blue.`) + others;
  }

  async function ask() {
    const address = new URL(location.href), mine = ++isAsked;
    address.hash = "";
    if (field.value) address.searchParams.set("where", field.value); else address.searchParams.delete("where");
    history.replaceState(history.state, "", address);
    const answer = await fetch(address, { headers: { "HX-Request": "true" } }).catch(() => null), text = answer?.ok ? await answer.text() : "";
    if (mine !== isAsked) return;
    const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("results");
    if (fresh) document.getElementById("results").replaceWith(document.adoptNode(fresh));
    else told.textContent = answer ? "That is no condition on runs: such as LR>=0.01, OPT=adam|sgd, value<1.1" : "The daemon does not answer: autoresearch status";
  }

  let dragged = null;
  const shareAt = event => Math.max(0, Math.min(1, 1 - (event.clientY - box.getBoundingClientRect().top - TOP) / (height - TOP - BOTTOM)));
  box.addEventListener("pointerdown", event => {
    const left = event.clientX - box.getBoundingClientRect().left, at = axes.findIndex((_, place) => Math.abs(x(place) - left) < GRAB);
    if (at < 0 || event.button) return;
    event.preventDefault();
    dragged = { axis: axes[at], from: shareAt(event), y: event.clientY };
    box.setPointerCapture(event.pointerId);
  });
  box.addEventListener("pointermove", event => {
    if (!dragged) return;
    const to = shareAt(event);
    dragged.axis.brush = Math.abs(event.clientY - dragged.y) < LEAST_DRAG ? null : [Math.min(dragged.from, to), Math.max(dragged.from, to)];
    requestAnimationFrame(drawChosen);
  });
  const drop = event => {
    if (!dragged) return;
    if (Math.abs(event.clientY - dragged.y) < LEAST_DRAG) dragged.axis.brush = null;
    dragged = null;
    field.value = [...axes.map(axis => axis.condition), rest].filter(Boolean).join(",");
    drawChosen();
    ask();
  };
  box.addEventListener("pointerup", drop);
  box.addEventListener("pointercancel", drop);
  form.addEventListener("submit", event => { event.preventDefault(); read(); drawChosen(); ask(); });

  read();
  new ResizeObserver(drawAll).observe(box.parentElement);
  dark.addEventListener("change", drawAll);
}

told.textContent = READING;
load(box, names).then(show).catch(error => { told.textContent = "The runs could not be read: autoresearch status"; throw error; });
})();
