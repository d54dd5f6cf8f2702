// Show what the server tells of the job. When the connection breaks, EventSource connects again by itself.
const picture = document.getElementById("picture")
const part = name => picture.querySelector(name)
const events = new EventSource(picture.dataset.events)

events.onmessage = message => {
  const { state, share, message: text, file } = JSON.parse(message.data)
  part(".state").textContent = state
  part(".message").textContent = text
  part("progress").value = share
  if (file && part("img").getAttribute("src") !== file) part("img").src = file
  if (["complete", "failed", "cancelled"].includes(state)) events.close()
}
