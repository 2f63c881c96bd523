// Stores the browser's time zone in a cookie for the server, which renders every time in it. When it is new, as on the
// first visit or after a journey, the page is loaded again, unless that would repeat a form or lose a notice.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC";
const { zone: shown, method } = document.documentElement.dataset;
const cookie = `waypost_zone=${zone}`;
const isStored = () => document.cookie.split("; ").includes(cookie);

if (!isStored()) {
  document.cookie = `${cookie}; path=/; max-age=31536000; samesite=lax${location.protocol === "https:" ? "; secure" : ""}`;
  const isChanged = shown && shown !== zone && !document.cookie.split("; ").includes("waypost_times=utc");
  if (isStored() && isChanged && method === "GET" && !document.querySelector("#notices .notice")) location.reload();
}
