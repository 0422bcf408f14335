// What the pages do in the browser: local times, keys, buttons, and Now without a reload. It makes no markup
// of its own and shows texts as text.
"use strict";

const main = document.getElementById("main");
const status = document.getElementById("said");
let hide = 0;

function say(text) {
  clearTimeout(hide);
  status.textContent = text;
  hide = setTimeout(() => { status.textContent = ""; }, 6000);
}

// --- times ---------------------------------------------------------------------------------------

const moment = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

function ago(ms) {
  const s = Math.max(0, (Date.now() - ms) / 1000);
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (s >= size) return `${Math.floor(s / size)} ${unit} ago`;
  }
  return "just now";
}

function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const full = moment.format(at);
    const shown = "ago" in time.dataset ? ago(at.getTime()) : full;
    if (time.textContent !== shown) time.textContent = shown;
    time.title = full;
  }
}

// --- keys ----------------------------------------------------------------------------------------

const LINK = "a[href], button";

function items() {
  return [...main.querySelectorAll("[data-item]")].filter((e) => !e.parentElement.closest("[data-item]"));
}

function holder(item) {
  return item.closest("li, tr") ?? item;
}

function current() {
  return items().find((item) => item.contains(document.activeElement) || holder(item).contains(document.activeElement));
}

function move(step) {
  const at = items().indexOf(current());
  choose(at < 0 && step < 0 ? Infinity : at + step);
}

function choose(at) {
  const all = items();
  if (!all.length) return;
  const next = all[Math.min(all.length - 1, Math.max(0, at))];
  const target = next.matches(`${LINK}, [tabindex]`) ? next : next.querySelector(LINK) ?? next;
  if (!target.matches(`${LINK}, [tabindex]`)) target.tabIndex = -1;
  target.focus();
  holder(next).scrollIntoView({ block: "nearest" });
}

function dispute() {
  const form = document.getElementById("dispute");
  if (form) {
    form.closest("details").open = true;
    form.querySelector("input:not([disabled]), button").focus();
    form.scrollIntoView({ block: "nearest" });
    return;
  }
  const here = document.activeElement.closest("a[href^='/verdict/']");
  const item = current();
  const to = here ?? (item?.matches("a") ? item : item?.querySelector("a[href^='/verdict/']"));
  const href = to?.getAttribute("href") ?? "";
  if (href.startsWith("/verdict/")) location.href = `${href}#d`;
  else if (location.pathname.startsWith("/verdict/")) say("This round has no saved case, so there is nothing to dispute.");
  else say(items().some((e) => e.matches("a[href^='/verdict/']") || e.querySelector("a[href^='/verdict/']")) ? "Choose a verdict first: j and k." : "There is no verdict on this page.");
}

function search() {
  const field = document.querySelector("[data-search]");
  if (field) field.focus();
  else location.href = "/history#search";
}

let going = 0;

function pressed(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
  if (document.querySelector("dialog[open]")) return;
  const typing = event.target.closest?.("input, select, textarea");
  if (typing) {
    if (event.key === "Escape") typing.blur();
    return;
  }
  const go = going && Date.now() - going < 1500;
  going = 0;
  let done = true;
  if (go) {
    const link = [...document.querySelectorAll("[data-go]")].find((a) => a.dataset.go === event.key);
    if (link) location.href = link.href;
  } else if (event.key === "g") going = Date.now();
  else if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "/") search();
  else if (event.key === "?") document.getElementById("keys").showModal();
  else if (event.key === "Enter" && event.target.matches?.("[data-item]:not(a)")) event.target.querySelector(LINK)?.click();
  else {
    const item = current();
    const button = item && [...holder(item).querySelectorAll("[data-key]")].find((b) => b.dataset.key === event.key);
    if (button) button.click();
    else if (event.key === "d") dispute();
    else done = false;
  }
  if (done) event.preventDefault();
}

// --- buttons -------------------------------------------------------------------------------------

async function post(route, body) {
  const answer = await fetch(route, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(told.error ?? "This dashboard has ended. Run: reflectd dashboard");
  return told;
}

function sure(words) {
  const dialog = document.getElementById("sure");
  document.getElementById("sure-text").textContent = words;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

// What was done is told whatever the page says afterwards.
async function shown() {
  try {
    await refresh();
  } catch {
    status.textContent += " This page could not be read again: reload it.";
  }
}

async function act(button) {
  if (button.dataset.confirm && !(await sure(button.dataset.confirm))) return;
  const at = items().findIndex((item) => holder(item).contains(button));
  button.disabled = true;
  try {
    const told = await post(button.dataset.post, JSON.parse(button.dataset.body));
    say(told.said ?? "Done.");
    await shown();
    choose(at);
  } catch (error) {
    button.disabled = false;
    button.focus();
    say(error.message);
  }
}

async function send(form) {
  const body = { ...JSON.parse(form.dataset.body), ...Object.fromEntries(new FormData(form)) };
  const button = form.querySelector("button");
  if (button.disabled) return;
  button.disabled = true;
  try {
    const told = await post(form.dataset.post, body);
    say(told.said ?? "Done.");
    await shown();
  } catch (error) {
    say(error.message);
  } finally {
    button.disabled = false;
  }
}

function clicked(event) {
  const button = event.target.closest?.("button");
  if (!button) return;
  if (button.dataset.post) act(button);
  else if ("keys" in button.dataset) document.getElementById("keys").showModal();
  else if ("copy" in button.dataset) {
    navigator.clipboard.writeText(button.dataset.copy).then(() => say("Copied."), () => say("The browser did not allow it."));
  }
}

// --- live ----------------------------------------------------------------------------------------

let reading = null;
let again = false;

// One after the other, so that an older page never comes last; what happens meanwhile is read for once more.
function refresh() {
  if (reading) {
    again = true;
    return reading;
  }
  reading = read().finally(() => {
    reading = null;
    if (!again) return undefined;
    again = false;
    return refresh();
  });
  return reading;
}

async function read() {
  const answer = await fetch(location.pathname + location.search);
  if (!answer.ok) throw new Error("This dashboard has ended. Run: reflectd dashboard");
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById("main");
  localTimes(fresh);
  if (fresh.innerHTML === main.innerHTML) return;
  const held = document.activeElement?.getAttribute("href");
  main.replaceChildren(...fresh.childNodes);
  if (held) [...main.querySelectorAll("a[href]")].find((a) => a.getAttribute("href") === held)?.focus({ preventScroll: true });
}

let events = null;
let asked = 0;

function watch() {
  const wanted = document.visibilityState === "visible";
  if (wanted && !events) {
    events = new EventSource("/stream");
    events.onmessage = () => {
      asked ||= setTimeout(() => {
        asked = 0;
        refresh().catch((error) => say(error.message));
      }, 100);
    };
    events.onerror = () => say("This page is not live any more. If reloading it does not help, run: reflectd dashboard");
    refresh().catch(() => {});
  } else if (!wanted && events) {
    events.close();
    events = null;
  }
}

if (location.hash.length > 40) history.replaceState(null, "", location.pathname + location.search); // a token
localTimes(document);
setInterval(() => localTimes(document), 30000);
document.addEventListener("keydown", pressed);
document.addEventListener("click", clicked);
document.addEventListener("submit", (event) => {
  if (event.target.dataset.post) {
    event.preventDefault();
    send(event.target);
  }
});
if (location.hash === "#d") dispute();
if (location.hash === "#search") search();
if ("live" in document.body.dataset) {
  document.addEventListener("visibilitychange", watch);
  watch();
}
