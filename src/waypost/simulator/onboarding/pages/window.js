// A window that has ended goes to the page that it was opened for, or closes itself.
const ended = document.body.dataset.ended;
if (ended) location.replace(ended);
else if (ended === "") window.close();
