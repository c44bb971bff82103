/* What every page does by itself: copy buttons, controls with the token, select boxes. The rest is HTML from the server.

The token comes in the fragment of the address that `autoresearch open` opens. A fragment is sent to nobody. It stays in
this tab's session storage, and goes out in a header only with a click on a control. */
(() => {
"use strict";
const TOKEN = "autoresearch-token";
const root = document.documentElement;

const given = /^#token=([\w-]+)$/.exec(location.hash);
if (given) {
  sessionStorage.setItem(TOKEN, given[1]);
  history.replaceState(null, "", location.pathname + location.search);
}
const token = sessionStorage.getItem(TOKEN);
root.classList.toggle("has-token", Boolean(token) && !("readOnly" in document.body.dataset));

/* The token by hand; the API says whether it is the right one. */
document.addEventListener("submit", async event => {
  const form = event.target;
  if (!form.closest(".unlock")) return;
  event.preventDefault();
  const text = form.elements.token.value.trim(), pasted = /token=([\w-]+)/.exec(text)?.[1] || text, failure = form.querySelector(".failure");
  const answer = /^[\w-]+$/.test(pasted) ? await fetch("/v1/status", { headers: { Authorization: `Bearer ${pasted}` } }).catch(() => null) : { ok: false };
  if (answer?.ok) {
    sessionStorage.setItem(TOKEN, pasted);
    return location.reload();
  }
  failure.hidden = false;
  failure.textContent = answer ? "That is not this node’s token. Copy the whole line that autoresearch open --print prints." : "The daemon does not answer: autoresearch up";
});

/* --- copy --- */
document.addEventListener("click", async event => {
  const button = event.target.closest(".copy");
  if (!button) return;
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copies === "address" ? location.href : button.dataset.copy);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(button.previousElementSibling);
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = before; }, 1600);
});

/* --- a select box that says which command does the same; one that submits its form --- */
let isChoosing = false;
document.addEventListener("change", event => {
  const box = event.target;
  if ("submits" in box.dataset) box.form.requestSubmit();
  if ("slides" in box.dataset) box.form.requestSubmit();
  isChoosing = box.name === "cols";
  const told = box.dataset.tells && document.querySelector(box.dataset.tells);
  if (told) {
    const command = box.selectedOptions[0].dataset.cmd;
    told.querySelector("code").textContent = told.querySelector(".copy").dataset.copy = command;
  }
  if (box.dataset.fills && box.files[0]) {
    box.files[0].text().then(text => { box.form.elements[box.dataset.fills].value = text; });
  }
});

/* --- a slider says its value and its command while it moves --- */
document.addEventListener("input", event => {
  const slider = event.target;
  if (!("slides" in slider.dataset)) return;
  const said = "percent" in slider.dataset ? `${Math.round(100 * slider.value)}%` : slider.value, told = slider.form.querySelector(".copy");
  slider.form.querySelector("output").textContent = said;
  slider.setAttribute("aria-valuetext", said);
  told.previousElementSibling.textContent = told.dataset.copy = told.dataset.copy.replace(/\S+$/, slider.value);
});

/* --- controls: a form whose fields go to the API as JSON --- */
const typed = {
  number: text => text === "" ? undefined : Number(text),
  minutes: text => Number(text) ? Date.now() + 60000 * Number(text) : undefined,
  flag: text => text === "true",
  list: text => [text],
};
const names = { minutes: "until_ms" };

const DID = "autoresearch-did";
let restarting = false;

function body(form) {
  const said = {};
  for (const field of form.elements) {
    if (!field.name || field.type === "file" || field.type === "checkbox" && !field.checked) continue;
    const kind = field.dataset.type, value = kind ? typed[kind](field.value) : field.value;
    if (value !== undefined) said[names[field.name] || field.name] = value;
  }
  return JSON.stringify(said);
}

/* Beside the control: what went wrong, or what it did. */
function tell(form, sentence, done = "") {
  const within = [form, form.closest(".acts"), form.parentElement].find(one => one?.querySelector(".failure"));
  const place = within?.querySelector(".failure"), did = within?.querySelector(".done");
  if (did) did.textContent = done;
  if (!place) return;
  place.hidden = !sentence;
  place.textContent = sentence;
}

document.addEventListener("submit", async event => {
  const form = event.target;
  if (!form.dataset.post) return;
  event.preventDefault();
  if (form.ariaBusy === "true") return;
  form.ariaBusy = "true"; // its button keeps the focus
  tell(form, "", form.dataset.wait);
  try {
    const answer = await fetch(form.dataset.post, {
      method: "POST", body: body(form),
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    });
    if (answer.ok) {
      const { note, restarts } = await answer.json();
      tell(form, "", note || form.dataset.done);
      if (restarts) {
        restarting = true;
        sessionStorage.setItem(DID, note);
      }
      if (form.dataset.then === "reload") location.reload();
      else await refresh(form);
      return;
    }
    const failure = await answer.json();
    tell(form, failure.hint ? `${failure.error} (${failure.hint})` : failure.error);
  } catch {
    tell(form, "the daemon does not answer: autoresearch status");
  } finally {
    form.ariaBusy = "false";
  }
});

/* What a press did stays to be read when the daemon has begun again. */
document.getElementById("did")?.replaceChildren(sessionStorage.getItem(DID) || "");
sessionStorage.removeItem(DID);

/* --- the task switch keeps the rest of the address --- */
document.querySelectorAll("form.task").forEach(form => form.addEventListener("submit", event => {
  event.preventDefault();
  const address = new URL(location.href);
  address.search = "";
  address.searchParams.set("task", form.elements.task.value);
  location.href = address;
}));

/* --- runs that are ticked stand in a tray, which leads to their comparison; this tab keeps them --- */
const PICKED = "autoresearch-compared", MOST_PICKED = 6, tray = document.getElementById("tray");
let picked = JSON.parse(sessionStorage.getItem(PICKED) || "[]");

function showPicked() {
  if (!tray) return;
  for (const box of document.querySelectorAll(".pick")) {
    box.checked = picked.includes(box.value);
    box.disabled = !box.checked && picked.length >= MOST_PICKED;
  }
  tray.hidden = !picked.length;
  tray.querySelector("[role=status]").textContent = picked.length === 1 ? "1 run ticked; tick another" : `${picked.length} runs ticked`;
  const link = tray.querySelector("a"), to = new URL(link.href);
  to.searchParams.set("runs", picked.join(","));
  link.href = (to.pathname + to.search).replaceAll("%2C", ",");
  link.hidden = picked.length < 2;
}

function pick(id) {
  picked = picked.includes(id) ? picked.filter(one => one !== id) : [...picked, id].slice(-MOST_PICKED);
  sessionStorage.setItem(PICKED, JSON.stringify(picked));
  showPicked();
}
document.addEventListener("change", event => { if (event.target.matches(".pick")) pick(event.target.value); });
document.addEventListener("page:pick", event => pick(event.detail));
document.addEventListener("htmx:after:swap", showPicked);
tray?.querySelector("button").addEventListener("click", () => { picked = []; sessionStorage.removeItem(PICKED); showPicked(); });
root.classList.add("scripted");
showPicked();

/* --- views: the address of the table and its chart under a name, in this browser --- */
const VIEWS = "autoresearch-views";
const saved = () => JSON.parse(localStorage.getItem(VIEWS) || "{}");

function showViews() {
  const list = document.querySelector("#views ul");
  list?.replaceChildren(...Object.entries(saved()).map(([name, search]) => {
    const item = document.createElement("li"), link = document.createElement("a"), away = document.createElement("button");
    link.href = `/${search}`;
    link.textContent = name;
    away.type = "button"; away.className = "link"; away.textContent = "Forget";
    away.setAttribute("aria-label", `Forget ${name}`);
    away.addEventListener("click", () => keepView(name, undefined));
    item.append(link, away);
    return item;
  }));
}

function keepView(name, search) {
  localStorage.setItem(VIEWS, JSON.stringify({ ...saved(), [name]: search }));
  showViews();
}
document.addEventListener("submit", event => {
  if (!event.target.closest("#views")) return;
  event.preventDefault();
  keepView(event.target.elements[0].value.trim(), location.search);
  event.target.reset();
});
document.addEventListener("htmx:after:swap", () => {
  showViews();
  const columns = document.querySelector(".take details");
  if (isChoosing && columns) columns.open = true;
});
showViews();

/* --- one search over everything, opened by / on every page --- */
const finder = document.getElementById("finder");

function openFinder(event) {
  event.preventDefault();
  finder.showModal();
  finder.querySelector("[name=q]").select();
}
document.getElementById("find")?.addEventListener("click", openFinder);
document.addEventListener("keydown", event => {
  if (event.key === "/" && finder && !finder.open && !event.ctrlKey && !event.metaKey && !event.target.closest("input, textarea, select")) openFinder(event);
});
finder?.addEventListener("click", event => { if (event.target === finder) finder.close(); });

/* --- live: what records change is shown anew. A part that somebody reads or types in stays as it is. --- */
const gone = document.getElementById("gone"), isLive = Boolean(gone);
const CHANGES = ["state", "condition", "worker", "run_started", "run_finished", "run_failed", "record", "records", "best", "confirmed", "demoted", "committed", "verified", "check_started", "trust", "evidence"];
const LEAST_MS = 1500, STEADY_MS = 5000;
let due = 0;

function isUsed(part) {
  return part.contains(document.activeElement) || part.querySelector("details[open]") || part.contains(getSelection().isCollapsed ? null : getSelection().anchorNode);
}

/* The bar moves from where it was; a new best says what it was before. */
function replace(part, next) {
  const widths = [...part.querySelectorAll(".meter .fg")].map(bar => bar.getAttribute("width"));
  if (next.dataset.best && part.dataset.best && next.dataset.best !== part.dataset.best) {
    next.classList.add("new");
    const was = document.createElement("p");
    was.className = "was muted num";
    was.textContent = `new; before it ${part.dataset.value}`;
    next.querySelector(".s-main").append(was);
    document.getElementById("say")?.replaceChildren(`New best: ${next.dataset.value}`);
  }
  const focused = part.contains(document.activeElement) && document.activeElement;
  part.replaceWith(next);
  window.htmx?.process(next);
  if (focused) (document.getElementById(focused.id) || next.querySelector("button, input"))?.focus();
  next.querySelectorAll(".meter .fg").forEach((bar, i) => {
    const width = bar.getAttribute("width");
    if (widths[i] === undefined || widths[i] === width) return;
    bar.setAttribute("width", widths[i]);
    bar.getBoundingClientRect();
    bar.setAttribute("width", width);
  });
}

/* After a press its own part is shown anew too; where it looks then, the focus stays. */
async function refresh(form) {
  due = 0;
  if (document.hidden) return;
  const pressed = form?.closest("[data-live]:not(:has([data-slides]))");
  const answer = await fetch(location.href).catch(() => null);
  if (!answer?.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  // The first run: the page has a chart and a table from now on.
  if (fresh.getElementById("chart") && !document.getElementById("chart")) return location.reload();
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(part.id);
    if (next && !next.isEqualNode(part) && (part === pressed || !isUsed(part))) replace(part, document.adoptNode(next));
  }
  document.dispatchEvent(new CustomEvent("page:fresh", { detail: fresh }));
  // Some runs are not judged yet: what leads may change without an event.
  if (fresh.getElementById("unsettled")?.textContent) refreshSoon();
}

function refreshSoon() {
  if (isLive && !due && document.querySelector("[data-live]")) due = setTimeout(refresh, LEAST_MS);
}

/* How far a run is stands in the head of each page. A page that shows more of it, or of the machine, looks steadily. */
const isSteady = () => document.querySelector("[data-live=steady]") && !root.classList.contains("gone");
function showProgress({ fraction }) {
  const pill = document.getElementById("pill");
  pill.querySelector(".meter .fg")?.setAttribute("width", `${100 * fraction}%`);
  pill.querySelector(".num")?.replaceChildren(`${Math.round(100 * fraction)} %`);
  if (isSteady()) refreshSoon();
}
setInterval(() => { if (isSteady()) refreshSoon(); }, STEADY_MS);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refreshSoon(); });

/* --- times that say how long ago something was go on --- */
const LENGTHS = [["d", 8.64e7], ["h", 3.6e6], ["min", 6e4], ["s", 1e3]];
setInterval(() => {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const past = Date.now() - Date.parse(time.dateTime), [unit, length] = LENGTHS.find(([, length]) => past >= length) || [];
    if (unit && /^(just now|\d+ (s|min|h|d)( \d+ \w+)?( ago)?)$/.test(time.textContent)) {
      time.textContent = `${Math.floor(past / length)} ${unit}${/ago|now/.test(time.textContent) ? " ago" : ""}`;
    }
  }
}, 10000);

/* --- a daemon that is gone is said, and a page that missed something is loaded again once it is back --- */
let missed = null;
function tellGone() {
  if (root.classList.contains("gone")) return;
  root.classList.add("gone");
  const at = new Date();
  gone.querySelector("time").textContent = `${String(at.getHours()).padStart(2, "0")}:${String(at.getMinutes()).padStart(2, "0")}`;
  gone.hidden = false;
  document.querySelector("#pill > span:nth-of-type(2)")?.replaceChildren("not running");
}
document.addEventListener("htmx:error", event => {
  const source = event.detail?.ctx?.sourceElement;
  if (!root.classList.contains("gone") || source?.id !== "filter") return;
  missed = source;
  document.querySelector("#results [role=status]")?.replaceChildren("not filtered: the daemon does not answer");
});
function tellBack() {
  if (!root.classList.contains("gone") && !restarting) return refreshSoon(); // what happened before it listened
  if (missed) missed.submit(); else reload();
}
/* A daemon that ends just now would leave the browser with an error's page, which asks for nothing any more. One that
   begins again may answer until it ends: its page says since when it runs. */
async function reload() {
  const answer = await fetch(location.href).catch(() => null);
  const began = answer?.ok && new DOMParser().parseFromString(await answer.text(), "text/html").body.dataset.started;
  if (began && (!restarting || began !== document.body.dataset.started)) location.reload(); else setTimeout(reload, 500);
}

/* --- events: one connection for all tabs, since a browser has six for a host. Who holds the lock listens and tells the
others. Where there are no locks (a page of another machine without HTTPS) a tab listens while somebody looks at it. --- */
const OPEN = "open", LOST = "lost", RETRY_MS = [500, 1000, 2000, 5000];
const channel = isLive && "BroadcastChannel" in window ? new BroadcastChannel("autoresearch-events") : null;
let source = null, tries = 0;

function hear({ kind, data }) {
  if (kind === OPEN) tellBack();
  else if (kind === LOST) tellGone();
  else if (kind === "progress") showProgress(data);
  else refreshSoon();
}

function pass(message) {
  hear(message);
  if (navigator.locks) channel?.postMessage(message);
}

function listen() {
  source?.close();
  source = new EventSource("/events");
  source.onopen = () => { tries = 0; pass({ kind: OPEN }); };
  source.onerror = () => {
    source.close();
    if (tries) pass({ kind: LOST });
    setTimeout(() => { if (navigator.locks || !document.hidden) listen(); }, RETRY_MS[Math.min(tries++, RETRY_MS.length - 1)]);
  };
  for (const kind of CHANGES) source.addEventListener(kind, () => pass({ kind }));
  source.addEventListener("progress", event => pass({ kind: "progress", data: JSON.parse(event.data).data }));
}

if (isLive && navigator.locks) {
  channel?.addEventListener("message", event => hear(event.data));
  navigator.locks.request("autoresearch-events", () => { listen(); return new Promise(() => {}); });
  refreshSoon();
} else if (isLive) {
  if (!document.hidden) listen();
  document.addEventListener("visibilitychange", () => { if (document.hidden) source?.close(); else listen(); });
}
document.querySelector(".top [aria-current]")?.scrollIntoView({ inline: "nearest", block: "nearest" });
})();
