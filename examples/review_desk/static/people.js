// The API of one task queue: sessions, the tab, and requests that may be sent again.

const BASE = "/people";
const QUEUE = `${BASE}/tasks/docs`;
const PATIENCE = [300, 1000, 3000, 8000];

const LINK_TOKEN = new URLSearchParams(location.search).get("token") || ""; // only who has the link that was printed is let in

let token = null;
let tab = null;
let away = () => {};

export class Refused extends Error {
  constructor(status, trouble) {
    super(trouble.message);
    this.status = status;
    this.code = trouble.code;
    this.by = trouble.by;
  }
}

// `tell(true)` when there is no connection, `tell(false)` when it is back.
export function onConnection(tell) { away = tell; }

// A tab keeps its number when it is loaded again. A copy of a tab has it, too, and finds it taken: then it gets one of its own.
export async function openTab() {
  for (let attempt = 0; attempt < 5; attempt++) {
    tab = sessionStorage.getItem("tab") || crypto.randomUUID();
    if (await claim(tab)) return sessionStorage.setItem("tab", tab);
    await pause(100);
  }
  sessionStorage.clear();
  tab = crypto.randomUUID();
  await claim(tab);
  sessionStorage.setItem("tab", tab);
}

function claim(name) {
  return new Promise((resolve) => {
    navigator.locks.request(`tab ${name}`, { ifAvailable: true }, (lock) => {
      resolve(Boolean(lock));
      return lock ? new Promise(() => {}) : undefined; // held until the tab is gone
    });
  });
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// An answer, asked for again while there is none. What is sent again has the same key, so it isn't done twice.
async function call(method, path, body) {
  const headers = { "X-Tab": tab, "Idempotency-Key": crypto.randomUUID(), "X-Link-Token": LINK_TOKEN };
  headers["X-Name"] = encodeURIComponent(localStorage.getItem("name") || "");
  if (method !== "GET") headers["Content-Type"] = "application/json";
  if (token) headers["X-Token"] = token;
  for (let attempt = 0; ; attempt++) {
    try {
      const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(15000) });
      const said = await answer.json();
      if (answer.status !== 503) {
        away(false);
        if (!answer.ok) throw new Refused(answer.status, said);
        return said;
      }
    } catch (error) {
      if (error instanceof Refused) throw error;
    }
    away(true);
    await pause(PATIENCE[Math.min(attempt, PATIENCE.length - 1)]);
  }
}

async function session(method, body) {
  const who = await call(method, `${BASE}/session`, body);
  token = who.token;
  return who.person;
}

export const who = () => session("GET");
export const signIn = (name) => {
  localStorage.setItem("name", name);
  return session("POST", {});
};
export const signOut = () => {
  const signedOut = session("DELETE");
  localStorage.removeItem("name");
  return signedOut;
};
export const counts = () => call("GET", QUEUE);
export const current = () => call("GET", `${QUEUE}/reservation`);
export const reserve = (again) => call("POST", `${QUEUE}/reservation`, { again });
export const act = (verb, task, more) => call("POST", `${QUEUE}/${verb}`, { jid: task.jid, fence: task.fence, ...more });
export const status = (jid) => call("GET", `${QUEUE}/status?jid=${encodeURIComponent(jid)}`);
export const progress = () => call("GET", "/progress");
