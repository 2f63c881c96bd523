// Updates an element to match another one and leaves equal parts untouched: focus, typed text, scroll
// positions and open details are kept. Children with an id are matched by it, all others by position.
export function morph(old, next) {
  if (old.isEqualNode(next)) return old;
  if (old.nodeType !== next.nodeType || old.nodeName !== next.nodeName || old.id !== next.id) {
    old.replaceWith(next);
    return next;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue;
    return old;
  }
  if (old.hasAttribute("data-own")) return old; // its content was loaded by the page itself
  const kept = old.dataset?.keep?.split(" ") ?? []; // attributes controlled by the user, such as `open`
  for (const { name } of [...old.attributes]) {
    if (!next.hasAttribute(name) && !kept.includes(name)) old.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (old.getAttribute(name) !== value && !kept.includes(name)) old.setAttribute(name, value);
  }
  if (old !== document.activeElement && "value" in old && old.matches("input, textarea, select")) {
    if (old.defaultValue !== undefined && old.value !== next.value) old.value = next.value;
  }
  children(old, next);
  return old;
}

function children(old, next) {
  const byId = new Map();
  for (const child of old.children) if (child.id) byId.set(child.id, child);
  let place = old.firstChild;
  for (const target of [...next.childNodes]) {
    const known = target.id ? byId.get(target.id) : undefined;
    if (known) {
      byId.delete(target.id);
      if (known !== place) old.insertBefore(known, place);
      place = morph(known, target).nextSibling;
    } else if (place && !place.id && !target.id && place.nodeName === target.nodeName) {
      place = morph(place, target).nextSibling;
    } else {
      old.insertBefore(target, place);
    }
  }
  while (place) {
    const following = place.nextSibling;
    place.remove();
    place = following;
  }
}
