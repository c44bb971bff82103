/* Numbers for people, as autoresearch/text.py writes them; tests/face/pages/numbers.json has the examples of both. */
(() => {
"use strict";
const HUGE = 1e7, TINY = 1e-4, LARGE = 1000, DIGITS = 7, DECIMALS = 4, EXPONENT_DIGITS = 3, MOST_DECIMALS = 6, ALL_DECIMALS = 16;

const trimmed = text => text.includes(".") ? text.replace(/\.?0+$/, "") : text;

/* A metric; with so many decimals where it is known how many tell it from its neighbours. */
function metric(number, decimals = null, sign = "") {
  const amount = Math.abs(number), minus = number < 0 ? "-" : sign;
  if (Number.isNaN(number)) return `${sign}nan`;
  if (!amount) return (decimals ?? 0) <= MOST_DECIMALS ? (0).toFixed(Math.max(0, decimals ?? 0)) : "0";
  if (amount === Infinity) return `${minus}inf`;
  const power = Math.floor(Math.log10(amount));
  if (amount >= HUGE || (amount < TINY && (decimals === null || decimals > MOST_DECIMALS))) {
    const [mantissa, exponent] = amount.toExponential(decimals === null ? EXPONENT_DIGITS : Math.min(Math.max(0, decimals + power), DIGITS - 1)).split("e");
    return `${minus}${trimmed(mantissa)}e${Number(exponent)}`;
  }
  if (decimals !== null) {
    const text = amount.toFixed(Math.min(Math.max(0, decimals), ALL_DECIMALS));
    return /[1-9]/.test(text) ? minus + text : metric(0, decimals);
  }
  if (amount >= LARGE) return minus + trimmed(amount.toFixed(DIGITS - 1 - power));
  const [whole, part] = amount.toFixed(Math.max(DECIMALS, 2 - power)).split(".");
  return `${minus}${whole}.${part.slice(0, DECIMALS)}${part.slice(DECIMALS).replace(/0+$/, "")}`;
}

/* A change of a metric, with its sign unless it is zero. */
const signed = (number, decimals = null) => metric(number, decimals, "+");

/* A number that somebody chose, or that stands at an axis: the whole part, so many digits, no zeros behind them. */
function brief(number, digits = 4) {
  const amount = Math.abs(number);
  if (!amount || !Number.isFinite(amount)) return metric(number);
  if (amount < HUGE && amount >= TINY) return trimmed(number.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(amount)))));
  const [mantissa, exponent] = number.toExponential(digits - 1).split("e");
  return `${trimmed(mantissa)}e${Number(exponent)}`;
}

const grouped = number => number.toLocaleString("en").replaceAll(",", "\u2009");

/* So many decimals tell the ends of a part of an axis apart, and what lies between them. */
const decimalsBetween = (low, high) => Math.max(0, 2 - Math.floor(Math.log10(high - low || 1)));

window.autoresearchNumbers = { metric, signed, brief, grouped, decimalsBetween };
})();
