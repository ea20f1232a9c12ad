// Shows the OpenAPI description, and lets every request be tried from the page.
"use strict";

function make(name, settings = {}, ...children) {
  const element = Object.assign(document.createElement(name), settings);
  element.append(...children);
  return element;
}

function example(schema, all) {
  if (schema.$ref) return example(all[schema.$ref.split("/").pop()], all);
  if (schema.examples) return schema.examples[0];
  if (schema.anyOf) return example(schema.anyOf[0], all);
  if (schema.default !== undefined && schema.default !== null) return schema.default;
  if (schema.type === "object")
    return Object.fromEntries(
      Object.entries(schema.properties ?? {})
        .filter(([name, field]) => field.examples || (schema.required ?? []).includes(name) || !(schema.required ?? []).length)
        .map(([name, field]) => [name, example(field, all)]),
    );
  if (schema.type === "array") return [example(schema.items ?? {}, all)];
  return { string: "weather", number: 1.5, integer: 1, boolean: true }[schema.type] ?? 1;
}

function fields(schema, all) {
  const object = schema.$ref ? all[schema.$ref.split("/").pop()] : schema;
  return Object.entries(object.properties ?? {}).map(([name, field]) => {
    const needed = (object.required ?? []).includes(name) ? "" : " (may be left out)";
    const type = field.type ?? (field.anyOf ?? []).map((each) => each.type ?? each.$ref?.split("/").pop()).join(" or ");
    return make("li", {}, make("code", { textContent: name }), ` ${type}${needed} ${field.description ?? ""}`);
  });
}

function endpoint(path, method, operation, all, index) {
  const body = operation.requestBody?.content["application/json"].schema;
  const address = make("input", { id: `path-${index}`, value: path.replace("{scheduler}", "default").replace("{task}", "1") });
  const text = make("textarea", { id: `body-${index}`, rows: 4, value: body ? JSON.stringify(example(body, all)) : "" });
  const shown = make("pre", { tabIndex: 0, hidden: true, ariaLabel: "answer" });
  const send = make("button", { className: "button", textContent: "Send" });
  send.addEventListener("click", async () => {
    const token = document.getElementById("bearer").value;
    const headers = token ? { authorization: `Bearer ${token}` } : {};
    if (body) headers["content-type"] = "application/json";
    const answer = await fetch(address.value, { method: method.toUpperCase(), headers, body: body ? text.value : undefined });
    shown.hidden = false;
    shown.textContent = `${answer.status}\n${await answer.text()}`;
  });
  const parts = [make("p", { className: "hint", textContent: operation.description })];
  if (body) parts.push(make("ul", {}, ...fields(body, all)));
  parts.push(make("p", {}, make("label", { htmlFor: address.id, textContent: "address" }), " ", address));
  if (body) parts.push(make("p", {}, make("label", { htmlFor: text.id, textContent: "body" }), " ", text));
  parts.push(make("p", {}, send), shown);
  const head = make("summary", {}, make("code", { textContent: `${method.toUpperCase()} ${path}` }), ` ${operation.summary}`);
  return make("details", { className: "card endpoint" }, head, ...parts);
}

const description = await (await fetch("/v1/openapi.json")).json();
const list = document.getElementById("endpoints");
let index = 0;
for (const [path, methods] of Object.entries(description.paths))
  for (const [method, operation] of Object.entries(methods))
    list.append(endpoint(path, method, operation, description.components.schemas, index++));
