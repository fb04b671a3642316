// All elements are created here, with texts as text nodes, never as markup.

const SVG = 'http://www.w3.org/2000/svg';

/** The element of the page with this id. */
export const byId = (id) => document.getElementById(id);

/** An HTML element; `on…` are listeners, and boolean attributes are present or absent. */
export const h = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);

/** An SVG element. */
export const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A function that runs once, `wait` milliseconds after its last call; `.cancel()` prevents it. */
export function debounced(wait, run) {
  let timer = 0;
  const later = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...values), wait);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

/** One tab stop for a row of buttons; arrow keys move between them. */
export function roving(row) {
  const buttons = [...row.querySelectorAll('button')];
  buttons.forEach((button, i) => {
    button.tabIndex = i ? -1 : 0;
    button.addEventListener('keydown', (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      button.tabIndex = -1;
      const next = buttons[(i + step + buttons.length) % buttons.length];
      next.tabIndex = 0;
      next.focus();
    });
  });
}

/** Announce a text to screen readers. */
export const say = debounced(400, (text) => {
  byId('announcement').textContent = text;
});
