// The trace page: after the content was requested, move the focus to it.
document.addEventListener("waypost:done", (event) => {
  if (event.target.getAttribute("action")?.endsWith("/content")) document.getElementById("content").focus();
});
