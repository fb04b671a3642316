// One tooltip for the page, next to the element that is pointed at or focused.

import { byId, h } from './dom.js';

const GAP = 10;

/** Show a heading and lines next to an element. */
export function showTooltip(target, heading, lines) {
  const box = byId('tooltip');
  box.replaceChildren(
    ...(heading ? [h('b', {}, heading)] : []),
    ...lines.map((line) => h('span', {}, line)),
  );
  box.hidden = false;
  const [around, own] = [target.getBoundingClientRect(), box.getBoundingClientRect()];
  const middle = around.left + around.width / 2 - own.width / 2;
  const left = Math.max(8, Math.min(middle, document.documentElement.clientWidth - own.width - 8));
  const above = around.top - own.height - GAP;
  box.style.left = `${left}px`;
  box.style.top = `${above >= 8 ? above : around.bottom + GAP}px`;
}

export function hideTooltip() {
  byId('tooltip').hidden = true;
}

/** A term with a help text, shown while it is pointed at or focused. */
export function term(text, help) {
  const button = h('button', { type: 'button', class: 'term', 'aria-description': help }, text);
  const show = () => showTooltip(button, null, [help]);
  button.addEventListener('pointerenter', show);
  button.addEventListener('focus', show);
  button.addEventListener('click', show);
  button.addEventListener('pointerleave', hideTooltip);
  button.addEventListener('blur', hideTooltip);
  return button;
}

addEventListener('scroll', hideTooltip, { passive: true, capture: true });
addEventListener('keydown', (event) => {
  if (event.key === 'Escape') hideTooltip();
});
