/* Training curves: of a run and its parent, or of runs that are compared. The data stand in the page; uPlot draws axes and lines. */
(() => {
"use strict";
const holder = document.getElementById("curve"), data = document.getElementById("curve-data");
if (!holder || !data || !window.uPlot) return;
const { curves, rewards } = JSON.parse(data.textContent);
const HEIGHT = 190;
const dark = matchMedia("(prefers-color-scheme: dark)");
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const font = () => `11px ${colour("sans")}`;

/* All curves over the same share of the budget, whatever the number of their points. */
const points = Math.max(...curves.map(curve => curve.values.length));
const share = Array.from({ length: points }, (_, place) => (place + 1) / points);
const along = ({ values }) => share.map(at => values[Math.max(0, Math.round(at * values.length) - 1)]);

/* The first losses are far above the rest: the axis ends where nine tenths of them are below it. Rewards are shown whole. */
const known = curves.flatMap(curve => curve.values).filter(Number.isFinite).sort((a, b) => a - b);
const shown = rewards ? 1 : 0.9;
const least = known[0], most = Math.max(known[Math.floor(shown * (known.length - 1))], ...curves.map(curve => curve.values.at(-1)));
const { metric, decimalsBetween } = window.autoresearchNumbers, places = decimalsBetween(least, most);
const room = (most - least) * 0.08 || Math.abs(least) * 0.01 || 1;

const axis = more => ({
  stroke: () => colour("text-2"), font: font(), grid: { stroke: () => colour("line"), width: 1 }, ticks: { show: false }, gap: 6, ...more,
});
const chart = new uPlot({
  width: holder.clientWidth, height: HEIGHT, legend: { show: false }, padding: [6, 18, 0, 0],
  cursor: { y: false, drag: { x: false, y: false } },
  scales: { x: { time: false, range: [0, 1] }, y: { range: [least - room, most + room] } },
  axes: [
    axis({ size: 26, space: 60, values: (_, shares) => shares.map(at => `${Math.round(100 * at)} %`) }),
    axis({ size: 46, space: 34, values: (_, values) => values.map(value => metric(value, places)) }),
  ],
  series: [
    {},
    ...curves.map(({ look }, i) => ({ stroke: () => colour(look), width: i === curves.length - 1 ? 2 : 1.5, points: { show: false } })),
  ],
}, [share, ...curves.map(along)], holder);
new ResizeObserver(() => chart.setSize({ width: holder.clientWidth, height: HEIGHT })).observe(holder);
dark.addEventListener("change", () => chart.redraw());
})();
