/* Where values lie on an axis: on equal steps, on a logarithm, or on one that has zero and both signs (symlog). What
diverged rules no axis: it lies outside and is drawn at the edge. pages/chart.py has the same rule for pictures without scripts. */
(() => {
"use strict";
const { metric, brief } = window.autoresearchNumbers;
const FAR = 1000, DECADES = 8, MOST = 1e300, FEW = 60, LEAST_DECADE = 3, PIXELS = 36, TINY = 1e-3;
const rising = values => Float64Array.from(values).sort();
/* Of two in the middle the smaller one: half of the values may have diverged. */
const middle = sorted => { const low = sorted[(sorted.length - 1) >> 1], high = sorted[sorted.length >> 1]; return Math.abs(high) < Math.abs(low) ? high : low; };
const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];

/* The finite values in order, without those that are `far` times as far from the middle as half of them are. */
function usual(values, far = FAR, least = null) {
  const finite = rising(Array.from(values).filter(Number.isFinite)).map(value => Math.max(-MOST, Math.min(MOST, value)));
  if (!finite.length) return finite;
  const centre = middle(finite), away = rising(finite.map(value => Math.abs(value - centre)));
  const reach = far * (Math.max(middle(away), least ?? Math.abs(centre)) || Math.min(1, middle(away.filter(Boolean)) || 1));
  return finite.filter(value => Math.abs(value - centre) <= reach);
}

/* Cut where the bulk of the values ends. They rise from the best on; what `lead` has in it is there. */
function bulk(values, { lead = [], floor = null } = {}) {
  const fair = usual(values);
  if (!fair.length) return [];
  const low = quantile(fair, .25), spread = quantile(fair, .75) - low, leaders = lead.filter(value => value >= fair[0] && value <= fair.at(-1));
  // One absurd report must not squeeze the others into a line.
  let good = spread > 0 ? Math.min(Math.max(fair[0], low - 8 * spread), ...leaders) : fair[0];
  const bad = fair.length < FEW ? quantile(fair, .85) : Math.min(quantile(fair, .955), Math.max(quantile(fair, .88), ...leaders));
  if (floor !== null && good - floor < 1.5 * (bad - good) && floor < bad) good = Math.min(good, floor);
  return [good, bad];
}

const KINDS = {
  linear: () => ({ to: value => value, from: place => place, options: {} }),
  log: () => ({ to: Math.log10, from: place => 10 ** place, options: { distr: 3, log: 10 } }),
  symlog: threshold => ({ to: value => Math.asinh(value / threshold) / Math.LN10, from: place => threshold * Math.sinh(place * Math.LN10), options: { distr: 4, asinh: threshold } }),
};

/* An axis of a kind over values, or between the two ends that `bulk` cut: `range` with a little room, `options` for uPlot,
`ticks`: round numbers within `ends`. */
function scaleOf(kind, values, noise = 0, isCut = false) {
  const sized = kind === "symlog" ? usual(Array.from(values, Math.abs).filter(Boolean).map(Math.log10), DECADES, 1) : [];
  const threshold = 10 ** Math.floor(sized.length ? quantile(sized, .1) : 0), { to, from, options } = KINDS[kind](threshold);
  const usable = kind === "log" ? Array.from(values).filter(value => value > 0) : values;
  const places = isCut ? rising(usable) : kind === "linear" ? usual(usable) : usual(Array.from(usable, to), DECADES, 1);
  const known = places.length > 0, low = known ? places[0] : 0, high = known ? places.at(-1) : 1;
  const room = .05 * (high - low) || (kind === "linear" ? noise || .05 * Math.abs(high) || 1 : .3);
  const ends = [from(low), from(high)], least = low - room;
  return {
    kind, to, from, ends, options: { ...options, range: [from(least), from(high + room)] }, range: [from(least), from(high + room)],
    // On a logarithm zero and what is below lie under everything.
    place: value => kind === "log" && !(value > 0) ? from(least - 1) : Math.max(-MOST, Math.min(MOST, value)),
    ticks: most => known ? kind === "linear" ? steps(ends, most) : decades(ends, most, kind === "symlog" ? threshold : 0) : [],
  };
}

/* Round numbers within the ends, with so many decimals as tell them apart; the value itself where there is one alone. */
function steps([low, high], most) {
  const span = high - low, power = 10 ** Math.floor(Math.log10(span / most)), step = power * ([1, 2, 5].find(factor => span / (factor * power) < most) || 10);
  if (!(span > 0) || low + step === low) return [{ value: low, text: metric(low) }];
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), isTiny = Math.max(-low, high) < TINY, found = [];
  for (let at = Math.ceil(low / step - 1e-9); at <= high / step + 1e-9; at++) found.push({ value: at * step, text: isTiny ? brief(at * step) : metric(at * step, decimals) });
  return found;
}

/* Powers of ten within the ends, thinned; with 2 and 5 between them where they are few. On both sides of zero from `threshold` on. */
function decades([low, high], most, threshold = 0) {
  const powers = (from, to) => {
    const first = Math.floor(Math.log10(from)), last = Math.ceil(Math.log10(to)), every = Math.max(1, Math.ceil((last - first) / most)), found = [];
    for (let power = first; power <= last; power++) {
      if (power % every) continue;
      for (const digit of last - first <= LEAST_DECADE ? [1, 2, 5] : [1]) { const at = Number(`${digit}e${power}`); if (at >= from * (1 - 1e-9) && at <= to * (1 + 1e-9)) found.push(at); }
    }
    return found;
  };
  const found = !threshold ? powers(low, high) : [
    ...low < -threshold ? powers(Math.max(10 * threshold, -high), -low).map(value => -value).reverse() : [],
    ...low <= 0 && high >= 0 ? [0] : [],
    ...high > threshold ? powers(Math.max(10 * threshold, low), high) : [],
  ];
  return found.length ? found.map(value => ({ value, text: brief(value) })) : steps([low, high], most);
}

/* The axis of uPlot for a scale, with the look that a picture gives it. */
function upAxis(scale, look) {
  return {
    ...look, filter: (_, splits) => splits,
    splits: u => scale.ticks(Math.max(2, Math.floor(u.bbox.height / devicePixelRatio / PIXELS))).map(tick => tick.value),
    values: (u, splits) => { const ticks = scale.ticks(Math.max(2, Math.floor(u.bbox.height / devicePixelRatio / PIXELS))); return splits.map(value => ticks.find(tick => tick.value === value)?.text ?? ""); },
  };
}

/* “3 lie above the axis, up to 2.4e54; 1 below”, or nothing. */
function outside(values, [low, high], count = () => 1) {
  let above = 0, below = 0, most = -Infinity, least = Infinity;
  values.forEach((value, at) => {
    if (value > high) { above += count(at); most = Math.max(most, value); }
    if (value < low) { below += count(at); least = Math.min(least, value); }
  });
  return [above && `${above} above the axis, up to ${metric(most)}`, below && `${below} below it, down to ${metric(least)}`].filter(Boolean).join("; ");
}

window.autoresearchScale = { usual, bulk, scaleOf, decades, upAxis, outside };
})();
