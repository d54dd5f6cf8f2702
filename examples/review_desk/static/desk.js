// One person at the desk. Redis knows what is reserved for whom; here is only what is shown of it, so it can be loaded again at any time.

import * as people from "./people.js";
import * as show from "./show.js";

const { element } = show;
const KEYS = { n: next, a: () => take(true), e: verb("extend"), s: verb("skip"), h: verb("hand-over"), b: verb("give-back"), r: verb("reject") };
const WARNING = 10;
const MAY_COUNT = ["asked", "over"]; // what became of an item, if an answer may still count

let me = null;
let task = null; // what is on the desk
let ends = 0; // by this machine's clock, which needn't agree with Redis': only differences count
let whole = 1;
let limit = 1; // seconds that one usually has
let over = null; // what became of it when its time was over
let busy = false;
let warned = false;
let entries = [];

// One thing at a time: a click while another is under way is the same click again.
async function once(doing) {
  if (busy) return;
  busy = true;
  document.body.setAttribute("aria-busy", "true");
  try {
    await doing();
  } catch (error) {
    if (!(error instanceof people.Refused)) throw error;
    if (error.status === 401) enter(null);
    else show.say(error.message);
  } finally {
    busy = false;
    document.body.removeAttribute("aria-busy");
  }
}

function enter(name) {
  me = name;
  element("me").hidden = !me;
  element("my-name").textContent = me || "";
  if (me) return;
  task = null;
  element("ask").close();
  show.view("door");
  element("name").focus();
}

// What is on the desk

function put(found) {
  task = found;
  over = null;
  warned = false;
  element("over").hidden = true;
  ends = Date.now() + 1000 * task.left;
  whole = Math.max(task.left, limit);
  show.item(task);
  element("note").value = sessionStorage.getItem(`note ${task.jid}`) || "";
  freeze(false);
  show.view("work");
  tick();
  element("item-name").focus({ preventScroll: true });
}

async function idle(text, skipped = 0) {
  task = null;
  element("idle-text").textContent = text;
  element("again").hidden = !skipped;
  show.view("idle");
  element("idle-title").focus({ preventScroll: true });
}

function take(again = false) {
  if (task && !over) return;
  return once(async () => {
    const offer = await people.reserve(again);
    if (offer.task) return put(offer.task);
    const skipped = offer.skipped === 1 ? "1 that you skipped still waits." : `${offer.skipped} that you skipped still wait.`;
    await idle(offer.skipped ? `Nothing else to do: ${skipped}` : "Nothing to do just now. New items appear here as they come.", offer.skipped);
  });
}

function next() {
  return take(false);
}

// What a person does with it

function judge(label) {
  if (!task || (over && !MAY_COUNT.includes(over))) return;
  return once(async () => {
    const done = task;
    await settle("finish", { answer: { label, note: element("note").value.trim() } }, `you said: ${show.LABELS[label]}`);
    if (task !== done) await follow();
  });
}

function verb(name) {
  return () => {
    if (!task || (over && name !== "extend")) return;
    return once(() => verbs[name]());
  };
}

const verbs = {
  async extend() {
    const { left } = await people.act("extend", task, {}).catch(lost);
    if (!left) return;
    ends = Date.now() + 1000 * left;
    whole = Math.max(left, limit);
    over = null;
    warned = false;
    element("over").hidden = true;
    freeze(false);
    show.say("You have more time.");
  },
  async skip() {
    const done = task;
    await settle("skip", {}, "skipped, for others");
    if (task !== done) await follow();
  },
  async "hand-over"() {
    const to = await show.ask("Hand over", "To whom?");
    if (!to || !task) return;
    await settle("hand-over", { to }, `handed over to ${to}`, "waiting");
    if (!task) await idle("Handed over. Take the next when you are ready.");
  },
  async "give-back"() {
    await settle("give-back", {}, "given back", "waiting");
    if (!task) await idle("Given back: it is at its place for whoever comes next. Take a break.");
  },
  async reject() {
    const reason = await show.ask("Can't be judged", "What is wrong with it?");
    const done = task;
    if (reason && task) await settle("reject", { reason }, `set aside: ${reason}`, "failed");
    if (reason && task !== done) await follow();
  },
};

// Done with it, if it was still ours.
async function settle(name, more, told, kind = "finished") {
  if (!(await people.act(name, task, more).catch(lost))) return;
  sessionStorage.removeItem(`note ${task.jid}`);
  list({ jid: task.jid, name: task.data.name, told, kind });
  show.say(`${task.data.name}: ${told}.`);
  task = null;
  look();
}

async function follow() {
  const offer = await people.reserve(false);
  if (offer.task) return put(offer.task);
  await idle(offer.skipped ? `All done, but for ${offer.skipped} that you skipped.` : "All done. Thank you!", offer.skipped);
}

// It isn't ours any more: say so, and who has it.
function lost(error) {
  if (!(error instanceof people.Refused) || ![404, 409].includes(error.status)) throw error;
  return ranOut().then(() => null);
}

// When the time is over

const LOTS = {
  yours: () => ["You have it again.", ""],
  over: () => ["Time is up.", "Nobody has taken it yet, so your answer still counts."],
  taken: (by) => ["Time is up.", `${by} has it now. Your answer no longer counts.`],
  waiting: () => ["Time is up.", "It waits for the next who asks. Your answer no longer counts."],
  finished: (by) => ["Time is up.", `${by || "Somebody"} has judged it meanwhile. Your answer no longer counts.`],
  failed: (by) => ["Time is up.", `${by || "Somebody"} has set it aside meanwhile.`],
  gone: () => ["Time is up.", "It isn't there any more."],
};
const TOLD = { over: "time ran out; nobody has it", taken: "time ran out; now with", waiting: "time ran out; it waits for the next", finished: "time ran out; judged by", failed: "time ran out; set aside by", gone: "time ran out; it is gone" };

async function ranOut() {
  const about = task;
  const lot = await people.status(about.jid).catch((error) => {
    if (error.status !== 404) throw error;
    return { what: "gone", by: null };
  });
  if (task !== about) return;
  if (lot.what === "yours") {
    const offer = await people.current();
    if (offer.task && offer.task.jid === about.jid) return put(offer.task);
  }
  over = lot.what;
  const [title, text] = LOTS[lot.what](lot.by);
  const by = lot.by && lot.by === me ? "you, in another window" : lot.by;
  list({ jid: about.jid, name: about.data.name, told: [TOLD[lot.what] || "time ran out", by].filter(Boolean).join(" "), kind: "over" });
  element("over-title").textContent = title;
  if (element("over-text").textContent !== text || element("over").hidden) element("over-text").textContent = text;
  element("over").hidden = false;
  freeze(lot.what !== "over");
}

function freeze(still) {
  for (const button of document.querySelectorAll("#labels button")) button.disabled = still;
  for (const button of document.querySelectorAll("#verbs button")) button.disabled = still || (over !== null && button.dataset.verb !== "extend");
}

function tick() {
  if (!task) return;
  const left = (ends - Date.now()) / 1000;
  show.clock(left, whole);
  if (left < WARNING && !warned && left > 0) {
    warned = true;
    show.say(`${Math.ceil(left)} seconds left. Press E for more time.`);
  }
  if (left <= -0.2 && over === null) {
    over = "asked";
    look();
  }
}

// What became of mine, and of all

function list(entry) {
  entries = [entry, ...entries.filter((each) => each.jid !== entry.jid)].slice(0, 8);
  sessionStorage.setItem("mine", JSON.stringify(entries));
  show.mine(entries);
}

async function progress() {
  const all = await people.progress();
  element("done").textContent = `${all.done} of ${all.total} judged`;
  element("share").value = all.total ? all.done / all.total : 0;
  show.bars("by-label", all.labels, show.LABELS);
  show.bars("by-person", all.people);
  element("agreed").textContent = all.done ? `A rule of thumb had guessed the same for ${Math.round((100 * all.agreed) / all.done)} %.` : "";
}

// What changes without our doing: a job whose time is over, of which somebody else takes care; and what waits.
async function look() {
  try {
    await lookAround();
  } catch (error) {
    if (!(error instanceof people.Refused)) throw error;
    if (error.status === 401) enter(null);
  }
}

async function lookAround() {
  if (task && over === "asked") await ranOut();
  if (document.hidden) return;
  await progress();
  if (!me) return;
  if (task && over && !busy) await ranOut();
  for (const entry of entries.filter((each) => each.kind === "over" && (!task || each.jid !== task.jid)).slice(0, 3)) {
    const lot = await people.status(entry.jid).catch(() => null);
    if (lot && TOLD[lot.what]) list({ ...entry, told: [TOLD[lot.what], lot.by].filter(Boolean).join(" "), kind: ["finished", "failed", "gone"].includes(lot.what) ? "past" : "over" });
  }
  if (document.body.dataset.view === "idle") {
    const { waiting } = await people.counts();
    element("take").dataset.waiting = waiting;
  }
}

// Beginning

async function resume() {
  const { waiting, limit: usual } = await people.counts();
  limit = usual;
  const offer = await people.current();
  if (offer.task) return put(offer.task);
  await idle(waiting ? `${waiting} wait. You have ${limit} seconds for each, and may ask for more.` : "Nothing to do just now.");
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || element("ask").open) return;
  if (event.target.matches("input, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const label = Object.keys(show.LABELS)[Number(event.key) - 1];
  if (label && task) judge(label);
  else if (event.key.toLowerCase() in KEYS && me) KEYS[event.key.toLowerCase()]();
  else return;
  event.preventDefault();
}

async function begin() {
  // The second click of a double click is the first one again, also if that is done by now.
  document.addEventListener("click", (event) => event.detail > 1 && event.target.closest("button") && event.stopPropagation(), true);
  people.onConnection((away) => { element("connection").hidden = !away; });
  show.labels(judge);
  for (const button of document.querySelectorAll("[data-verb]")) button.addEventListener("click", verb(button.dataset.verb));
  element("take").addEventListener("click", next);
  element("over-next").addEventListener("click", next);
  element("again").addEventListener("click", () => take(true));
  element("note").addEventListener("input", () => task && sessionStorage.setItem(`note ${task.jid}`, element("note").value));
  element("sign-in").addEventListener("submit", (event) => {
    event.preventDefault();
    once(async () => {
      enter(await people.signIn(element("name").value.trim()));
      await resume();
    });
  });
  element("sign-out").addEventListener("click", () => once(async () => {
    if (task && !over) await people.act("give-back", task).catch(() => null);
    enter(await people.signOut());
  }));
  document.addEventListener("keydown", press);
  document.addEventListener("visibilitychange", () => document.hidden || tick());
  await people.openTab();
  entries = JSON.parse(sessionStorage.getItem("mine") || "[]");
  show.mine(entries);
  setInterval(tick, 200);
  setInterval(look, 2000);
  await once(async () => {
    enter(await people.who());
    if (me) await resume();
  });
  await look();
}

begin();
