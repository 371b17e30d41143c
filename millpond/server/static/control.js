// A control table: what is measured, and knobs that can be turned. Whatever the server declares is shown.
import { call, get } from "./api.js";
import { element, inUnit } from "./words.js";

// Draws it into holder, or only what has changed; answers the values.
export async function controlTable(holder, kind, name, prefix = "knob") {
  const key = holder.dataset.asked = `${kind}\t${name}`;
  const table = await get(`/api/entities/${kind}/${encodeURIComponent(name)}`);
  if (holder.dataset.asked !== key) return values(table); // another table was asked for meanwhile
  if (holder.dataset.drawn !== key || !holder.childElementCount) {
    holder.dataset.drawn = key;
    holder.replaceChildren(...table.attributes.filter((a) => a.knob).map((a) => knobRow(a, kind, name, prefix)), ...table.attributes.filter((a) => !a.knob).map(factRow));
  }
  for (const attribute of table.attributes) show(holder, attribute);
  return values(table);
}

function values(table) { return Object.fromEntries(table.attributes.map((each) => [each.name, each.value])); }

function show(holder, attribute) {
  const place = holder.querySelector(`[data-name="${CSS.escape(attribute.name)}"]`);
  if (!place || place === document.activeElement || place.dataset.changing) return;
  if (!attribute.knob) {
    const text = inUnit(attribute.value, attribute.unit);
    if (place.textContent !== text) place.textContent = text;
  } else if (place.type === "checkbox") place.checked = attribute.value;
  else place.value = attribute.value;
}

function factRow(attribute) {
  return element("div", { class: "fact", title: attribute.meaning }, element("span", {}, attribute.name.replaceAll("_", " ")), element("b", { "data-name": attribute.name }));
}

function knobRow(attribute, kind, name, prefix) {
  const id = `${prefix}-${attribute.name}`;
  const said = element("span", { class: "said", role: "alert" });
  const input = attribute.choices.length
    ? element("select", { id, "data-name": attribute.name }, ...attribute.choices.map((choice) => element("option", {}, choice)))
    : element("input", { id, "data-name": attribute.name, type: { boolean: "checkbox", number: "number", integer: "number" }[attribute.type] ?? "text", step: attribute.type === "number" ? "any" : undefined });
  input.addEventListener("change", async () => {
    input.dataset.changing = "yes";
    const value = attribute.type === "boolean" ? input.checked : input.value;
    try {
      const answer = await call("PUT", `/api/entities/${kind}/${encodeURIComponent(name)}/${attribute.name}`, { value });
      said.textContent = "";
      if (input.type === "checkbox") input.checked = answer.value;
      else input.value = answer.value;
    } catch (error) { said.textContent = error.message; }
    delete input.dataset.changing;
    input.blur();
  });
  return element("div", { class: "knob", title: attribute.meaning }, element("label", { for: id }, attribute.name.replaceAll("_", " ")), input, said);
}

