// What an admin can do on a page: every change is confirmed first, sent to the API, and then seen on the page.
"use strict";

const dialog = document.getElementById("confirm");
const part = (name) => document.getElementById(`confirm-${name}`);
const METHODS = { change: "PATCH" };
let asked = null; // what happens if the answer is yes

function confirmed(title, says, changes, request) {
  part("title").textContent = title;
  part("says").textContent = says;
  part("problem").textContent = "";
  part("changes").replaceChildren(
    ...changes.map((words) => Object.assign(document.createElement("li"), { textContent: words })),
  );
  part("yes").hidden = !request;
  asked = request;
  dialog.showModal();
}

async function send() {
  part("yes").disabled = true;
  try {
    const answer = await fetch(asked.path, {
      method: asked.method,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(asked.body),
    });
    if (answer.ok) return location.reload();
    part("problem").textContent = (await answer.json()).detail;
  } catch {
    part("problem").textContent = "No answer; it may or may not be done. Try again.";
  }
  part("yes").disabled = false;
}

part("yes").addEventListener("click", send);
part("no").addEventListener("click", () => dialog.close());

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-method]");
  if (!button) return;
  const { method, path, body, title, says } = button.dataset;
  confirmed(title, says, [], { path, method: METHODS[method] ?? "POST", body: JSON.parse(body) });
});

// The form of settings: what has changed is sent, the rest stays as it is.
const GOAL = ["goal", "floor", "budget"]; // are said together: a goal replaces the one before
const form = document.getElementById("settings");

function valueOf(field) {
  const text = field.value.trim();
  if (field.dataset.type === "text") return text;
  if (text === "") return JSON.parse(field.dataset.empty);
  if (field.dataset.type === "number" && Number.isFinite(Number(text))) return Number(text);
  try {
    return JSON.parse(text);
  } catch {
    return text; // the service says what is wrong with it, or it is an option's name
  }
}

function initial(field) {
  return field.tagName === "SELECT" ? [...field.options].find((one) => one.defaultSelected)?.value : field.defaultValue;
}

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  const fields = [...form.elements].filter((field) => field.name);
  const changed = fields.filter((field) => field.value !== initial(field));
  if (!changed.length) return confirmed("Nothing has changed", "Every field is as it was.", [], null);
  const body = Object.fromEntries(changed.map((field) => [field.name, valueOf(field)]));
  if (changed.some((field) => GOAL.includes(field.name)))
    for (const name of GOAL) body[name] = valueOf(form.elements[name]) ?? undefined;
  const words = changed.map((field) => {
    const label = form.querySelector(`label[for=${field.id}]`).textContent;
    return `${label}: ${initial(field) || "none"} → ${field.value || "none"}`;
  });
  const says = "It holds from the next task on, for everybody who uses this scheduler.";
  confirmed(`Change ${form.dataset.name}?`, says, words, { path: form.dataset.path, method: "PATCH", body });
});

const wanted = form?.elements[location.hash.slice(1)];
wanted?.focus();
