/* What the pictures of all runs share: their data as arrays, the part of the metric that is shown, points under the
pointer and the keyboard. Each picture says where its runs are; nothing is drawn anew while the pointer moves. */
(() => {
"use strict";
const CARD_DELAY_MS = 50, REACH = 20, DRAGGED = 8, DISCREDITED = new Set(["refuted", "fraud", "banned", "not believed"]), ID = 8;
// What their authors report does not count now.
const DOUBTED = new Set([...DISCREDITED, "disputed", "unavailable"]);
const { bulk, scaleOf } = window.autoresearchScale;

/* Columns as face/pages/effects.py packs them. */
const loads = new Map();
function load(box, names) {
  const address = new URL(box.dataset.columns, location.href);
  for (const name of names) address.searchParams.append("setting", name);
  if (!loads.has(address.href)) loads.set(address.href, read(address));
  return loads.get(address.href);
}

async function read(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  const body = await answer.arrayBuffer(), size = new Uint32Array(body, 0, 1)[0];
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(body, 4, size))), runs = head.runs;
  let at = 4 + size;
  const take = (kind, count) => { const part = new kind(body, at, count); at += part.byteLength; return part; };
  const value = take(Float32Array, runs), parent = take(Int32Array, runs);
  const settings = new Map(head.settings.map(one => [one.name, { ...one, values: take(Float32Array, runs) }]));
  const marks = take(Uint8Array, runs), ids = take(Uint8Array, ID * runs);
  return {
    ...head, value, parent, settings,
    mark: run => head.marks[marks[run]],
    isMark: name => { const number = head.marks.indexOf(name); return run => marks[run] === number; },
    id: run => String.fromCharCode(...ids.subarray(ID * run, ID * (run + 1))),
  };
}

/* The axis up for some runs: cut where the bulk of them ends, as on Progress, or a logarithm of all. */
function upScale(data, kind = "value", since = 0, to = data.runs) {
  const sign = data.maximize ? -1 : 1, fair = data.value.subarray(since, to).filter((value, at) => Number.isFinite(value) && !DISCREDITED.has(data.mark(since + at)));
  if (kind !== "value") return scaleOf(kind, fair, data.noise);
  return scaleOf("linear", bulk(fair.map(value => sign * value), { floor: data.floor === null ? null : sign * data.floor }).map(value => sign * value), data.noise, true);
}

/* Dots on a canvas in pixels of it: where many lie on each other, three are drawn. */
function dots(g, xs, ys, runs, side) {
  const width = g.canvas.width, cells = new Uint8Array(width * g.canvas.height);
  for (const run of runs) {
    const cell = Math.round(ys[run]) * width + Math.round(xs[run]);
    if (!(cell >= 0 && cell < cells.length) || cells[cell] > 2) continue;
    cells[cell] += 1;
    g.fillRect(Math.round(xs[run] - side / 2), Math.round(ys[run] - side / 2), side, side);
  }
}

/* Lets the pointer and the keyboard go from run to run. A picture gives the runs in `order`, the places `xs` and `ys`
of each in pixels of its canvas (rising in that order where it `isByX`), what to `say` of one; and perhaps what else a `click` or the space bar does (`toggle`), and other runs to go `along` with Shift. */
class Pointing {
  constructor(box, data, picture) {
    Object.assign(this, { box, data, picture, hot: -1, cards: new Map() });
    this.card = box.querySelector(".card");
    this.ring = Object.assign(document.createElement("div"), { className: "halo", hidden: true });
    box.append(this.ring);
    box.addEventListener("keydown", event => this.key(event));
    box.addEventListener("blur", () => this.point(-1));
  }

  /* A new canvas. */
  listen(over) {
    this.over = over;
    this.point(-1);
    this.box.append(this.ring, this.card);
    over.addEventListener("mousemove", event => this.point(this.nearest(event)));
    over.addEventListener("mouseleave", () => this.point(-1));
    over.addEventListener("mousedown", event => { this.from = event.clientX; });
    over.addEventListener("click", event => {
      const run = Math.abs(event.clientX - this.from) < DRAGGED ? this.nearest(event) : -1;
      if (run < 0 || this.picture.click?.(run)) return;
      if (matchMedia("(hover: none)").matches && this.hot !== run) return this.point(run);
      this.open(run);
    });
  }

  nearest(event) {
    const k = devicePixelRatio, edge = this.box.getBoundingClientRect(), { xs, ys, order, isByX } = this.picture;
    const x = (event.clientX - edge.left) * k, y = (event.clientY - edge.top) * k;
    let best = -1, least = (REACH * k) ** 2, low = 0, high = isByX ? order.length : 0;
    while (low < high) { const half = (low + high) >> 1; if (xs[order[half]] < x - REACH * k) low = half + 1; else high = half; }
    for (let at = low; at < order.length; at++) {
      const run = order[at];
      if (isByX && xs[run] > x + REACH * k) break;
      const far = (xs[run] - x) ** 2 + (ys[run] - y) ** 2;
      if (far < least) { least = far; best = run; }
    }
    return best;
  }

  open(run) { location.href = `/run/${this.data.id(run)}${this.box.dataset.suffix}`; }

  async point(run, isSpoken = false) {
    if (run === this.hot) return;
    this.hot = run;
    this.card.hidden = this.ring.hidden = run < 0;
    if (run < 0) return;
    const k = devicePixelRatio, x = this.picture.xs[run] / k, y = this.picture.ys[run] / k, id = this.data.id(run);
    this.ring.style.left = `${x - 9}px`;
    this.ring.style.top = `${y - 9}px`;
    this.tell(this.picture.say(run), x, y);
    if (isSpoken) document.getElementById("say").textContent = `${id}, ${this.picture.say(run)}`;
    await new Promise(resolve => setTimeout(resolve, this.cards.has(id) ? 0 : CARD_DELAY_MS));
    if (this.hot !== run) return;
    if (!this.cards.has(id)) this.cards.set(id, fetch(`/card/${id}${this.box.dataset.suffix}`).then(answer => answer.ok ? answer.text() : "").catch(() => ""));
    const text = await this.cards.get(id);
    if (this.hot === run && text) this.tell(this.picture.say(run), x, y, text);
  }

  tell(sentence, x, y, html = "") {
    const { card, box } = this;
    card.innerHTML = html; // from the server, which escapes it
    card.append(Object.assign(document.createElement("p"), { className: "small muted", textContent: sentence }));
    const isRight = x + 18 + card.offsetWidth < box.clientWidth;
    card.style.left = `${Math.max(8, isRight ? x + 18 : Math.min(box.clientWidth - card.offsetWidth - 8, x - card.offsetWidth - 18))}px`;
    card.style.top = `${Math.max(4, Math.min(box.clientHeight - card.offsetHeight - 34, y - card.offsetHeight / 2))}px`;
  }

  key(event) {
    if (event.target !== this.box) return;
    const order = event.shiftKey && this.picture.along || this.picture.order, at = order.indexOf(this.hot);
    const to = { Home: order[0], End: order.at(-1), ArrowRight: order[at + 1], ArrowLeft: at < 0 ? order.at(-1) : order[at - 1] }[event.key];
    if (to !== undefined) { event.preventDefault(); this.point(to, true); }
    else if (event.key === "Enter" && this.hot >= 0) this.open(this.hot);
    else if (event.key === "Escape") this.point(-1);
    else if (event.key === " " && this.hot >= 0 && this.picture.toggle) { event.preventDefault(); this.picture.toggle(this.hot); }
  }
}

/* The key names the marks that are drawn. */
function showKey(data, runs) {
  const there = new Set();
  for (const run of runs) there.add(data.mark(run));
  for (const entry of document.querySelectorAll(".key [data-mark]")) entry.hidden = !there.has(entry.dataset.mark);
}

window.autoresearchColumns = { DOUBTED, READING: "Reading the runs …", load, upScale, dots, Pointing, showKey };
})();
