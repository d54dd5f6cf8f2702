// What is seen: elements by their ids, and pieces of them. Every text of others is set as text, never as markup.

export const LABELS = { clear: "Clear", terse: "Too terse", example: "Wants an example", confusing: "Confusing" };
export const element = (id) => document.getElementById(id);

export function view(name) {
  document.body.dataset.view = name;
}

let silence;

export function say(text) {
  element("said").textContent = text;
  clearTimeout(silence);
  silence = setTimeout(() => { element("said").textContent = ""; }, 4000);
}

export function labels(judge) {
  Object.entries(LABELS).forEach(([label, title], index) => {
    const button = document.createElement("button");
    button.className = `label ${label}`;
    button.dataset.label = label;
    button.append(title, key(index + 1));
    button.addEventListener("click", () => judge(label));
    element("labels").append(button);
  });
}

function key(name) {
  const kbd = document.createElement("kbd");
  kbd.textContent = name;
  return kbd;
}

export function item(task) {
  const [module, name] = task.data.name.split(".");
  element("item-module").textContent = `${module}.`;
  element("item-name").textContent = name;
  element("item-signature").textContent = task.data.signature;
  element("item-text").textContent = task.data.text;
  element("item-text").scrollTop = 0;
}

// The ring and the number; it is said aloud only when it matters.
export function clock(left, whole) {
  const seconds = Math.max(0, Math.ceil(left));
  const text = seconds >= 60 ? `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}` : String(seconds);
  if (element("left").textContent !== text) element("left").textContent = text;
  const share = Math.max(0, Math.min(1, left / whole));
  element("ring").style.strokeDashoffset = String(100 * (1 - share));
  element("clock").dataset.state = left <= 0 ? "over" : left < 10 || share < 0.2 ? "soon" : "fine";
}

export function bars(id, counts, titles = {}) {
  const most = Math.max(1, ...Object.values(counts));
  element(id).replaceChildren(
    ...Object.entries(counts).flatMap(([name, count]) => {
      const term = document.createElement("dt");
      const value = document.createElement("dd");
      const bar = document.createElement("span");
      term.textContent = titles[name] || name;
      bar.className = `bar ${name in LABELS ? name : "person"}`;
      bar.style.width = `${(100 * count) / most}%`;
      value.append(bar, String(count));
      return [term, value];
    }),
  );
}

export function mine(entries) {
  element("mine-empty").hidden = entries.length > 0;
  element("mine").replaceChildren(
    ...entries.map((entry) => {
      const row = document.createElement("li");
      const name = document.createElement("b");
      const told = document.createElement("span");
      name.textContent = entry.name;
      told.textContent = entry.told;
      told.className = entry.kind;
      row.append(name, told);
      return row;
    }),
  );
}

// Ask for one text in a dialog; null when it was called off.
export function ask(title, label) {
  const dialog = element("ask");
  element("ask-title").textContent = title;
  element("ask-label").textContent = label;
  element("ask-text").value = "";
  dialog.returnValue = "no";
  dialog.showModal();
  element("ask-text").focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes" ? element("ask-text").value.trim() || null : null), { once: true });
  });
}
