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

/* --- copy --- */
document.addEventListener("click", async event => {
  const button = event.target.closest(".copy");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(button.previousElementSibling);
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1600);
});

/* --- a select box that says which command does the same; one that submits its form --- */
document.addEventListener("change", event => {
  const box = event.target;
  if ("submits" in box.dataset) box.form.requestSubmit();
  const told = box.dataset.tells && document.querySelector(box.dataset.tells);
  if (told) {
    const command = box.selectedOptions[0].dataset.cmd;
    told.querySelector("code").textContent = told.querySelector(".copy").dataset.copy = command;
  }
  if (box.dataset.fills && box.files[0]) {
    box.files[0].text().then(text => { box.form.elements[box.dataset.fills].value = text; });
  }
});

/* --- controls: a form whose fields go to the API as JSON --- */
const typed = {
  number: text => text === "" ? undefined : Number(text),
  minutes: text => Number(text) ? Date.now() + 60000 * Number(text) : undefined,
  flag: text => text === "true",
  list: text => [text],
};
const names = { minutes: "until_ms" };

function body(form) {
  const said = {};
  for (const field of form.elements) {
    if (!field.name || field.type === "file") continue;
    const kind = field.dataset.type, value = kind ? typed[kind](field.value) : field.value;
    if (value !== undefined) said[names[field.name] || field.name] = value;
  }
  return JSON.stringify(said);
}

function tell(form, sentence) {
  const place = form.querySelector(".failure") || form.parentElement.querySelector(".failure");
  if (!place) return;
  place.hidden = !sentence;
  place.textContent = sentence;
}

document.addEventListener("submit", async event => {
  const form = event.target;
  if (!form.dataset.post) return;
  event.preventDefault();
  const buttons = form.querySelectorAll("button");
  buttons.forEach(button => { button.disabled = true; });
  tell(form, "");
  try {
    const answer = await fetch(form.dataset.post, {
      method: "POST", body: body(form),
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    });
    if (answer.ok) {
      if (form.dataset.then === "reload") location.reload();
      else document.getElementById("live")?.dispatchEvent(new Event("state"));
      return;
    }
    const failure = await answer.json();
    tell(form, failure.hint ? `${failure.error} (${failure.hint})` : failure.error);
  } catch {
    tell(form, "the daemon does not answer: autoresearch status");
  } finally {
    buttons.forEach(button => { button.disabled = false; });
  }
});

/* --- the task switch keeps the rest of the address --- */
document.querySelectorAll("form.task").forEach(form => form.addEventListener("submit", event => {
  event.preventDefault();
  const address = new URL(location.href);
  address.search = "";
  address.searchParams.set("task", form.elements.task.value);
  location.href = address;
}));

/* --- a daemon that is gone is said, and a page that missed something is loaded again once it is back --- */
const live = document.getElementById("live");
live?.addEventListener("htmx:sse:error", () => {
  root.classList.add("gone");
  document.querySelector("#pill > span:nth-of-type(2)")?.replaceChildren("not running");
});
live?.addEventListener("htmx:sse:after:connection", () => {
  if (root.classList.contains("gone")) location.reload();
});
document.querySelector(".top [aria-current]")?.scrollIntoView({ inline: "nearest", block: "nearest" });
})();
