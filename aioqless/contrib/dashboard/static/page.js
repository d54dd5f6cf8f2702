// What the pages do beyond HTML: stay up to date, send forms without losing the place, keys, times such as "12 s ago".
// All of it can be missing: links and forms work by themselves.

const root = document.body.dataset.root
const main = document.getElementById("main")
const notes = document.getElementById("notes")
const parse = html => new DOMParser().parseFromString(html, "text/html")

// Make the content of an element like that of another, changing as little as can be: what is typed, open or focused stays.
function morph(old, fresh) {
  Idiomorph.morph(old, fresh.childNodes, { morphStyle: "innerHTML", callbacks: { beforeNodeMorphed, beforeAttributeUpdated } })
}
const beforeNodeMorphed = (old, fresh) => old.nodeType !== Node.ELEMENT_NODE
  || !(old.isEqualNode(fresh) || changed(old) || (old.matches("time") && old.dateTime === fresh.dateTime))
const beforeAttributeUpdated = (name, node, change) => !(change === "remove" && name === "open" && node.matches("details"))

// A form that a user is filling in, or a field that differs from what the server sent, is left alone.
const changed = node => node.matches("form") && [...node.elements].some(each => each === document.activeElement && each.matches("input:not([type=hidden]), textarea, select")
  || each.matches("input:not([type=hidden]), textarea") && each.value !== each.defaultValue)

// Stay up to date while the page is visible: browsers allow few connections to one server.
let events, checked = 0, reason = ""
const LATE = 15000 // ms without an update or a confirmation after which the page isn't called live
const state = document.getElementById("live")
function badge() {
  if (!events) return
  const closed = events.readyState === EventSource.CLOSED, age = Date.now() - checked
  const live = events.readyState === EventSource.OPEN && checked && age < LATE
  const text = live ? "live" : reason ? `not live: ${reason}` : closed ? "not live: reload the page"
    : events.readyState === EventSource.CONNECTING || !checked ? "connecting …" : `updated ${inWords(-age / 1000)}`
  state.hidden = false
  state.className = `state ${live ? "on" : "off"}`
  if (state.textContent !== text) state.textContent = text
}
function confirm() {
  checked = Date.now()
  reason = ""
  badge()
}
function listen() {
  events?.close()
  events = undefined
  const at = document.body.dataset.at
  if (!at || document.hidden) {
    state.hidden = true
    return
  }
  events = new EventSource(`${root}/live?at=${encodeURIComponent(at)}`)
  checked = 0
  reason = ""
  events.onerror = badge
  events.addEventListener("checked", confirm)
  events.addEventListener("refused", message => {
    reason = JSON.parse(message.data)
    badge()
  })
  events.onmessage = message => {
    morph(main, parse(`<main>${JSON.parse(message.data)}</main>`).querySelector("main"))
    times()
    alarms()
    confirm()
  }
  badge()
}
document.addEventListener("visibilitychange", listen)
window.addEventListener("pagehide", () => events?.close())

// Show another page in place of this one: what was answered to a form.
function show(html, address) {
  const fresh = parse(html)
  document.title = fresh.title
  if (fresh.body.dataset.at) document.body.dataset.at = fresh.body.dataset.at
  else delete document.body.dataset.at
  morph(notes, fresh.getElementById("notes"))
  morph(main, fresh.getElementById("main"))
  const here = document.querySelector("body > nav ul")
  if (here && fresh.querySelector("body > nav ul")) morph(here, fresh.querySelector("body > nav ul"))
  if (address !== location.href) {
    history.pushState({}, "", address)
    scrollTo(0, 0)
  }
  times()
  alarms()
  listen()
}
window.addEventListener("popstate", () => location.reload())

document.addEventListener("submit", async event => {
  const form = event.target, button = event.submitter
  if (form.method !== "post" || !(button?.getAttribute("formaction") || form.action).includes("/do/")) return
  event.preventDefault()
  const body = new URLSearchParams(new FormData(form, button))
  if (button) button.disabled = true
  let refused = false
  try {
    const answer = await fetch(button?.getAttribute("formaction") || form.action, { method: "POST", body, credentials: "same-origin" })
    refused = !answer.redirected && answer.status < 500
    if (!answer.headers.get("content-type")?.startsWith("text/html")) throw new Error(await answer.text())
    const html = await answer.text()
    if (!parse(html).querySelector("#notes .refused")) form.reset() // else the input is to be corrected
    for (const open of document.querySelectorAll("details.sheet[open]")) open.open = false
    document.activeElement?.blur()
    show(html, answer.url)
  } catch (error) {
    const message = document.createElement("p")
    message.className = "note refused"
    message.textContent = `${refused ? "Not done" : "Result unknown, the action may have been performed"}: ${error.message}`
    notes.replaceChildren(message)
  } finally {
    if (button) button.disabled = false
  }
})

// Times
const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]]
function inWords(seconds) {
  const parts = []
  let left = Math.round(Math.abs(seconds))
  for (const [name, length] of units) {
    if (left >= length) parts.push(`${Math.floor(left / length)} ${name}`)
    left %= length
  }
  const span = parts.slice(0, 2).join(" ")
  return !span ? "now" : seconds > 0 ? `in ${span}` : `${span} ago`
}
const local = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" }) // 2026-11-23 06:00:00
const zone = new Intl.DateTimeFormat("en", { timeZoneName: "short" })
const zoned = at => `${local.format(at)} ${zone.formatToParts(at).find(part => part.type === "timeZoneName").value}`
function times() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = Date.parse(time.dateTime), ago = inWords((at - Date.now()) / 1000)
    const text = time.className === "exact" ? `${ago}, ${zoned(at)}` : ago
    if (time.textContent !== text) time.textContent = text
  }
}

// Alarms that the reader has dismissed stay hidden until they end.
const DISMISSED = `aioqless dismissed ${root}`
const dismissed = () => JSON.parse(localStorage.getItem(DISMISSED) || "[]")
function alarms() {
  const list = document.querySelector(".alarms")
  const found = [...document.querySelectorAll(".alarms [data-key]")], keys = found.map(each => each.dataset.key)
  if (!document.querySelector(".figures")) return // not the overview
  const kept = dismissed().filter(key => keys.includes(key))
  if (kept.length !== dismissed().length) localStorage.setItem(DISMISSED, JSON.stringify(kept))
  if (!list) return
  for (const each of found) each.hidden = kept.includes(each.dataset.key)
  list.querySelector(".all").hidden = found.length - kept.length < 2
  list.querySelector(".dismissed").hidden = !kept.length
}
document.addEventListener("click", event => {
  const button = event.target.closest(".dismiss, .restore")
  if (!button) return
  event.preventDefault() // without JavaScript the server remembers it
  const keys = button.dataset.keys?.split(" ")
  localStorage.setItem(DISMISSED, JSON.stringify(keys ? [...dismissed(), ...keys] : []))
  alarms()
  document.querySelector(".alarms .restore")?.focus()
})

// Keys
const pages = { o: "/", q: "/queues", f: "/failures", w: "/workers" }
let went = 0
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return
  if (event.key === "Escape") for (const open of document.querySelectorAll("details.sheet[open]")) {
    open.open = false
    open.querySelector("summary").focus()
  }
  if (event.target.matches("input, textarea, select")) return
  const rows = [...document.querySelectorAll("a.row")]
  const at = rows.indexOf(document.activeElement)
  if (Date.now() - went < 1500 && pages[event.key]) location.href = root + pages[event.key]
  else if (event.key === "/") document.getElementById("q")?.select()
  else if (event.key === "?") document.getElementById("keys").showModal()
  else if (event.key === "j") rows[Math.min(at + 1, rows.length - 1)]?.focus()
  else if (event.key === "k") rows[Math.max(at - 1, 0)]?.focus()
  else if (event.key !== "g") return
  went = event.key === "g" ? Date.now() : 0
  event.preventDefault()
})
document.addEventListener("click", event => {
  for (const open of document.querySelectorAll(".heading details.sheet[open]")) if (!open.contains(event.target)) open.open = false
})

document.querySelector("body > nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" })
times()
alarms()
setInterval(() => (times(), badge()), 1000)
listen()
