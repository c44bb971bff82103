/* What the progress chart draws on its canvas: dots, lines, marks, labels. It keeps no state and asks nothing.

A scene has `all` (the chart's data), `found` (the same for a filter, or null), `column` (of the axis across), `x` and
`y` (from a run or a value to the scale), `up` (value, log, symlog, distance or full) and `colours`. What a filter leaves out stays, faintly. */
(() => {
"use strict";
const { metric, signed, decimalsBetween } = window.autoresearchNumbers, { bulk, scaleOf } = window.autoresearchScale;
const COLOURS = ["surface", "line", "text", "text-2", "text-3", "blue", "band", "amber", "red", "violet", "grey", "dot"];
const RADIUS = { confirmed: 5, provisional: 4.3, leading: 4, "not replicated": 2.9, disputed: 5, refuted: 3.6, fraud: 4, banned: 4, unavailable: 3.6, "not believed": 3.6 };
// What is drawn later lies above.
const ORDER = ["reported", "unavailable", "not believed", "not replicated", "refuted", "banned", "fraud", "leading", "provisional", "disputed", "confirmed"];
const HUE = { "not replicated": "grey", unavailable: "grey", "not believed": "amber", disputed: "amber", refuted: "red", fraud: "violet", banned: "violet", reported: "dot" };
const DISCREDITED = new Set(["refuted", "fraud", "banned", "not believed"]);
const FAR_OFF = 1e4, FAINT = .15, NARROW = 560, FEW = 200, MANY = 20000, CROWD = 300, CROWDED = 14, TWO_PI = 2 * Math.PI;
const isNarrow = u => u.width < NARROW;

function readColours() {
  const style = getComputedStyle(document.documentElement), found = { font: style.getPropertyValue("--sans").trim() };
  for (const name of COLOURS) found[name] = style.getPropertyValue(`--${name}`).trim();
  return found;
}

/* --- ranges --- */
/* The verified value where there is one, else the reported one. */
const valueOf = mark => mark.verified ?? mark.reported;
const sorted = values => values.filter(Number.isFinite).sort((a, b) => a - b);

/* Smaller is better in here, whatever the metric's direction. */
function valuesIn(all, x, [lo, hi]) {
  const sign = all.maximize ? -1 : 1, isIn = run => x(run) >= lo && x(run) <= hi;
  const marks = all.marks.filter(isIn), fair = marks.filter(mark => !DISCREDITED.has(mark.mark)).map(mark => sign * valueOf(mark));
  all.dots.reported.forEach((value, i) => { if (isIn(columnAt(all.dots, i))) fair.push(sign * value); });
  const steps = all.marks.filter(mark => mark.leads), before = steps.filter(mark => x(mark) < lo).at(-1);
  const lead = [...steps.filter(isIn), ...before ? [before] : []].map(mark => sign * valueOf(mark));
  const doubtful = marks.filter(mark => DISCREDITED.has(mark.mark)).map(mark => sign * valueOf(mark));
  return { sign, fair: sorted([...fair, ...lead]), lead: sorted(lead), doubtful: sorted(doubtful) };
}

function columnAt(dots, i) {
  return { number: dots.number[i], time_ms: dots.time_ms[i], cost_ms: dots.cost_ms[i] };
}

/* The axis up for the runs in a part of the axis across. What is discredited has a place on it where all values have. */
function upScale(scene, window) {
  const { all, up } = scene, { sign, fair, lead, doubtful } = valuesIn(all, scene.x, window), some = fair.length ? fair : doubtful;
  if (up === "distance") return scaleOf("log", some.map(value => scene.y(sign * value)));
  if (up !== "value") return scaleOf(up === "full" ? "linear" : up, [...fair, ...doubtful].map(value => sign * value), all.noise);
  const values = bulk(some, { lead, floor: all.floor === null ? null : sign * all.floor });
  return scaleOf("linear", values.map(value => sign * value), all.noise, true);
}

/* --- marks --- */
function outline(g, mark, x, y, r) {
  g.beginPath();
  if (mark === "disputed") { g.moveTo(x, y - r); g.lineTo(x + r, y); g.lineTo(x, y + r); g.lineTo(x - r, y); g.closePath(); }
  else if (mark === "fraud" || mark === "banned") g.rect(x - r, y - r, 2 * r, 2 * r);
  else g.arc(x, y, r, 0, TWO_PI);
}

function stroke(g, ...points) {
  g.beginPath();
  points.forEach(([x, y], i) => i % 2 ? g.lineTo(x, y) : g.moveTo(x, y));
  g.stroke();
}

const INSIDE = {
  provisional: (g, x, y, r) => { g.beginPath(); g.arc(x, y, r, Math.PI / 2, -Math.PI / 2); g.fill(); },
  "not replicated": (g, x, y, r) => stroke(g, [x - .6 * r, y], [x + .6 * r, y]),
  disputed: (g, x, y, r) => { g.beginPath(); g.arc(x, y, .28 * r, 0, TWO_PI); g.fill(); },
  fraud: (g, x, y, r) => stroke(g, [x - .5 * r, y - .5 * r], [x + .5 * r, y + .5 * r], [x + .5 * r, y - .5 * r], [x - .5 * r, y + .5 * r]),
  "not believed": (g, x, y, r) => stroke(g, [x - .6 * r, y - .3 * r], [x, y + .5 * r], [x + .6 * r, y - .3 * r]),
  banned: (g, x, y, r) => stroke(g, [x - .6 * r, y + .6 * r], [x + .6 * r, y - .6 * r]),
};

function drawMark(g, colours, mark, x, y, r, width) {
  const hue = colours[HUE[mark] || "blue"];
  g.strokeStyle = g.fillStyle = hue;
  g.lineWidth = width;
  if (mark === "refuted") {
    g.lineWidth = 1.4 * width;
    return stroke(g, [x - r, y - r], [x + r, y + r], [x + r, y - r], [x - r, y + r]);
  }
  outline(g, mark, x, y, r);
  const isFilled = mark === "confirmed" || mark === "reported";
  if (!isFilled) g.fillStyle = colours.surface;
  g.fill();
  if (isFilled) g.strokeStyle = colours.surface;
  g.stroke();
  g.strokeStyle = g.fillStyle = hue;
  INSIDE[mark]?.(g, x, y, r);
}

/* --- layers --- */
class Painter {
  constructor(u, scene) {
    Object.assign(this, { u, scene, g: u.ctx, k: devicePixelRatio, box: u.bbox, placed: [], taken: [] });
    this.left = this.box.left; this.top = this.box.top;
    this.right = this.left + this.box.width; this.bottom = this.top + this.box.height;
  }

  atX(run) { return this.u.valToPos(this.scene.x(run), "x", true); }

  /* A canvas draws no line to a place that is too far away. */
  atY(value) { return Math.max(-FAR_OFF, Math.min(FAR_OFF, this.u.valToPos(this.scene.y(value), "y", true))); }

  /* What lies outside stands on the edge. -1: above it, 1: below it. */
  place(value, inset) {
    const y = this.atY(value);
    if (!(y >= this.top)) return [this.top + inset * this.k, -1];
    return y > this.bottom ? [this.bottom - (inset + 8) * this.k, 1] : [y, 0];
  }

  keep(x, y, about) { this.placed.push({ ...about, x: x / this.k, y: y / this.k }); }

  band(steps) {
    this.g.fillStyle = this.scene.colours.band;
    steps.forEach((mark, i) => {
      const from = this.atX(mark), to = i + 1 < steps.length ? this.atX(steps[i + 1]) : this.right;
      const margin = mark.verified_margin || 0, edges = [valueOf(mark) - margin, valueOf(mark) + margin].map(value => this.atY(value));
      this.g.fillRect(from, Math.min(...edges), to - from, Math.abs(edges[0] - edges[1]));
    });
  }

  floor() {
    const { all, up, colours } = this.scene, { g, k } = this;
    if (all.floor === null || up === "distance" || !(all.marks.length + all.dots.reported.length)) return;
    const y = this.atY(all.floor);
    if (y < this.top || y > this.bottom) return;
    g.strokeStyle = colours["text-3"]; g.lineWidth = k; g.setLineDash([2 * k, 3 * k]);
    stroke(g, [this.left, y], [this.right, y]);
    g.setLineDash([]);
    g.fillStyle = colours["text-2"]; g.font = `${11 * k}px ${colours.font}`; g.textAlign = "left"; g.textBaseline = "bottom";
    const text = `floor ${metric(all.floor)}`, left = this.left + 8 * k;
    g.fillText(text, left, y - 3 * k);
    this.taken.push({ left, middle: y - 9 * k, width: g.measureText(text).width });
  }

  dots(dots, alpha, isKept) {
    const { g, k, scene } = this, many = dots.reported.length > MANY;
    const side = Math.max(2, Math.round((dots.reported.length < FEW ? 5 : isNarrow(this.u) ? 2.2 : 3) * k));
    g.fillStyle = scene.colours.dot;
    dots.reported.forEach((value, i) => {
      const at = columnAt(dots, i), x = this.atX(at), count = dots.count[i];
      if (x < this.left || x > this.right) return;
      g.globalAlpha = alpha * (count ? Math.min(1, .4 + .15 * Math.log2(count)) : many ? .5 : 1);
      const [y, edge] = this.place(value, 4);
      if (edge) this.caret(x, y, edge);
      else if (side > 3 * k) { g.beginPath(); g.arc(x, y, side / 2, 0, TWO_PI); g.fill(); }
      else g.fillRect(Math.round(x - side / 2), Math.round(y - side / 2), side, side);
      if (isKept && dots.id[i]) this.keep(x, y, { id: dots.id[i], mark: "reported", value, at: scene.x(at) });
    });
    g.globalAlpha = 1;
  }

  caret(x, y, edge) {
    const { g, k } = this;
    g.beginPath(); g.moveTo(x - 2.5 * k, y - 2 * edge * k); g.lineTo(x + 2.5 * k, y - 2 * edge * k); g.lineTo(x, y + 2 * edge * k); g.fill();
  }

  failures(failures, alpha, isKept) {
    const { g, k, scene } = this;
    g.strokeStyle = scene.colours.grey; g.lineWidth = Math.max(1, k); g.globalAlpha = alpha;
    failures[scene.column].forEach((_, i) => {
      const at = columnAt(failures, i), x = Math.round(this.atX(at)) + .5;
      if (x < this.left || x > this.right) return;
      stroke(g, [x, this.bottom], [x, this.bottom - 7 * k]);
      if (isKept && failures.id[i]) this.keep(x, this.bottom - 4 * k, { id: failures.id[i], mark: "failed", at: scene.x(at) });
    });
    g.globalAlpha = 1;
  }

  line(steps, value, colour, width, dash = []) {
    const { g, k } = this;
    if (!steps.length) return;
    g.lineJoin = "round"; g.strokeStyle = colour; g.lineWidth = width * k; g.setLineDash(dash.map(part => part * k));
    g.beginPath();
    let y = this.atY(value(steps[0]));
    g.moveTo(this.atX(steps[0]), y);
    for (const mark of steps) { const x = this.atX(mark); g.lineTo(x, y); y = this.atY(value(mark)); g.lineTo(x, y); }
    g.lineTo(this.right, y); g.stroke(); g.setLineDash([]);
  }

  marks(marks, alpha, isKept) {
    const { g, k, scene } = this, shrunk = isNarrow(this.u) ? .75 : 1, crowd = marks.length > CROWD ? CROWDED * k : 0, taken = new Set();
    g.globalAlpha = alpha;
    for (const kind of ORDER) for (const mark of marks) {
      if (mark.mark !== kind) continue;
      const x = this.atX(mark);
      if (x < this.left - 6 * k || x > this.right + 6 * k) continue;
      const [y, edge] = this.place(valueOf(mark), 13), smaller = kind === "confirmed" && !mark.leads ? 1.6 : 0;
      // Many marks side by side are a worm: of those of a kind in a small square one is drawn.
      const place = `${kind} ${Math.round(x / crowd)} ${Math.round(y / crowd)}`;
      if (!crowd || !taken.has(place)) drawMark(g, scene.colours, kind, x, y, ((RADIUS[kind] || 2.6) - smaller) * k * shrunk, 1.5 * k);
      taken.add(place);
      if (edge) this.caret(x, y + 9 * edge * k, edge);
      if (isKept) this.keep(x, y, { id: mark.id, mark: kind, value: valueOf(mark), run: mark, at: scene.x(mark) });
    }
    g.globalAlpha = 1;
  }

  /* The largest steps, named where that covers no mark. */
  labels(steps, value) {
    const { g, k, scene, taken } = this;
    let named = 0;
    const most = this.u.width < NARROW ? 2 : this.u.width < 900 ? 4 : scene.all.dots.reported.length < FEW ? 10 : 7;
    g.font = `${11.5 * k}px ${scene.colours.font}`; g.textBaseline = "middle"; g.textAlign = "left";
    for (const step of this.largest(steps, value).slice(0, 2 * most)) {
      if (named === most) break;
      const x = this.atX(step.mark), y = this.atY(value(step.mark)), text = step.mark.label;
      if (x < this.left || x > this.right || y < this.top || y > this.bottom) continue;
      const gain = ` ${signed(step.gain, ["value", "full"].includes(scene.up) ? decimalsBetween(this.u.scales.y.min, this.u.scales.y.max) : null)}`;
      const width = g.measureText(text).width + g.measureText(gain).width, spot = this.spot(x, y, width);
      if (!spot) continue;
      taken.push(spot);
      named += 1;
      this.label(x, y, spot, text, gain);
    }
  }

  largest(steps, value) {
    const { all, up, y } = this.scene, sign = all.maximize ? -1 : 1;
    let before = all.baseline;
    const gains = steps.map(mark => {
      const was = before ?? value(mark), gain = sign * (was - value(mark));
      before = value(mark);
      return { mark, gain, by: up === "distance" ? Math.log(y(was) / y(value(mark))) : gain };
    });
    return gains.filter(step => step.mark.label && step.gain > all.noise).sort((a, b) => b.by - a.by);
  }

  /* The place near a mark where a label covers no other mark or label, and the fewest dots. */
  spot(x, y, width) {
    const { k, taken } = this, height = 15 * k, found = [];
    for (const dy of [15, -15, 32, -32, 52, -52, 74, -74, 100]) for (const dx of [12, -10 - width / k, 40, -40 - width / k, -width / k / 2]) {
      const left = x + dx * k, middle = y + dy * k, spot = { left, middle, width };
      if (left < this.left + 2 * k || left + width > this.right || middle < this.top + height / 2 || middle > this.bottom - 16 * k) continue;
      if (taken.some(one => left < one.left + one.width + 8 * k && left + width + 8 * k > one.left && Math.abs(middle - one.middle) < height + 2 * k)) continue;
      const covered = this.placed.filter(one => one.x * k > left - 7 * k && one.x * k < left + width + 7 * k && Math.abs(one.y * k - middle) < 13 * k);
      if (covered.some(one => one.run)) continue;
      found.push({ ...spot, cost: Math.abs(dy) / 20 + Math.abs(dx + (dx < 0 ? width / k : 0)) / 40 + .3 * covered.length });
    }
    return found.sort((a, b) => a.cost - b.cost)[0];
  }

  label(x, y, { left, middle, width }, text, gain) {
    const { g, k, scene: { colours } } = this, isRight = left > x, isOver = !isRight && left + width > x;
    const split = g.measureText(text).width;
    g.strokeStyle = colours["text-3"]; g.lineWidth = k;
    if (isOver) stroke(g, [x, y + (middle > y ? 5 : -5) * k], [x, middle + (middle > y ? -8 : 8) * k]);
    else stroke(g, [x + (isRight ? 5 : -5) * k, y + (middle > y ? 5 : -5) * k], [isRight ? left - 3 * k : left + width + 3 * k, middle]);
    g.lineWidth = 4 * k; g.lineJoin = "round"; g.strokeStyle = colours.surface;
    g.strokeText(text, left, middle); g.strokeText(gain, left + split, middle);
    g.fillStyle = colours.text; g.fillText(text, left, middle);
    g.fillStyle = colours.blue; g.fillText(gain, left + split, middle);
  }
}

/* Draws a scene. Returns what can be pointed at: id, mark, value, run, and places in pixels of the page. */
function draw(u, scene) {
  const painter = new Painter(u, scene), { all, found, colours } = scene, shown = found || all, g = u.ctx;
  const confirmed = all.marks.filter(mark => mark.leads), reported = all.marks.filter(mark => mark.led_by_claim);
  g.save();
  g.beginPath(); g.rect(painter.left, painter.top, painter.box.width, painter.box.height); g.clip();
  painter.band(confirmed);
  painter.floor();
  if (found) { painter.dots(all.dots, FAINT, false); painter.failures(all.failures, FAINT, false); }
  painter.dots(shown.dots, 1, true);
  painter.failures(shown.failures, .8, true);
  painter.line(reported, mark => mark.reported, confirmed.length ? colours["text-3"] : colours.blue, confirmed.length ? 1.25 : 1.8, [4, 3]);
  painter.line(confirmed, valueOf, colours.blue, 2.2);
  if (found) painter.marks(all.marks, FAINT, false);
  painter.marks(shown.marks, 1, true);
  if (confirmed.length) painter.labels(confirmed, valueOf);
  else painter.labels(reported, mark => mark.reported);
  g.restore();
  return painter.placed.sort((a, b) => a.at - b.at);
}

/* --- axes --- */
function axis(colours, more) {
  return { stroke: () => colours()["text-2"], font: `11px ${colours().font}`, grid: { stroke: () => colours().line, width: 1 }, ticks: { show: false }, gap: 6, ...more };
}

window.autoresearchChart = { draw, drawMark, readColours, valueOf, upScale, columnAt, axis, ORDER, RADIUS };
})();
