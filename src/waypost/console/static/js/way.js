// One message: once its text has been asked for and is there, whoever reads by keyboard goes on from it.
document.addEventListener("waypost:done", (event) => {
  if (event.target.getAttribute("action")?.endsWith("/words")) document.getElementById("words").focus();
});
