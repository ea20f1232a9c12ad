// Keeps the page up to date: fetches its sections every two seconds and replaces those that have changed.
// A page that takes long to make is asked for less often.
"use strict";

const EVERY = 2000; // milliseconds
const sections = document.getElementById("sections");
const status = document.getElementById("status");

function say(text, late) {
  status.textContent = text;
  status.classList.toggle("late", late);
}

function replace(old, fresh) {
  if (old.innerHTML === fresh.innerHTML) return;
  const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
  const scrolled = [...old.querySelectorAll(".scroll[id]")].map((area) => [area.id, area.scrollLeft]);
  old.replaceChildren(...fresh.childNodes);
  for (const [id, left] of scrolled) {
    const area = document.getElementById(id);
    if (area) area.scrollLeft = left;
  }
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

async function refresh() {
  if (document.hidden) return;
  try {
    const answer = await fetch(sections.dataset.live, { cache: "no-store" });
    if (answer.status === 401) return location.reload();
    if (!answer.ok) throw new Error(answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const fresh of page.querySelectorAll("section[id]")) {
      const old = document.getElementById(fresh.id);
      if (old) replace(old, fresh);
    }
    if (status.textContent !== "live") say("live", false);
  } catch {
    const late = "not up to date: no answer";
    if (status.textContent !== late) say(late, true);
  }
}

async function follow() {
  const began = performance.now();
  await refresh();
  setTimeout(follow, Math.max(EVERY, 10 * (performance.now() - began)));
}

document.addEventListener("visibilitychange", refresh);
say("live", false);
setTimeout(follow, EVERY);
