// The nodes with the highest scores as bars, with whiskers of one standard error.

import { h, svg } from './dom.js';
import { about, aligned, nodesOf } from './words.js';
import { PAGE } from './colors.js';
import { ranked, ranksOf, tieWords } from './ranks.js';

const FEW = 5;

const whiskerPath = (from, to) => `M${from} 6H${to}M${from} 3V9M${to} 3V9`;

/**
 * @returns {object} `element`; `show({low, high}, selected)` on an axis; `light(node)`, or none by null
 */
export function barList(subject, result, onPoint) {
  const { scores, std_errors: errors } = result;
  const [order, ranks] = [ranked(scores), ranksOf(scores)];
  const largest = Math.max(...scores.map(Math.abs));
  const rows = order.map((node) => row(node));
  const all =
    order.length > FEW
      ? h(
          'button',
          { type: 'button', class: 'link', 'aria-expanded': 'false', onclick: toggle },
          `All ${order.length} ${nodesOf(subject.unit, order.length)}`,
        )
      : null;
  const list = h(
    'ol',
    { class: 'bars' },
    rows.map((made) => made.element),
  );
  let open = false;

  function toggle() {
    open = !open;
    all.setAttribute('aria-expanded', open);
    all.textContent = open
      ? `The first ${FEW}`
      : `All ${order.length} ${nodesOf(subject.unit, order.length)}`;
    fold();
  }
  function fold() {
    rows.forEach(({ element }, place) => {
      element.hidden = !open && place >= FEW;
    });
  }
  function row(node) {
    const { name } = subject.units[node];
    const plot = svg('svg', {
      viewBox: '0 0 100 12',
      preserveAspectRatio: 'none',
      'aria-hidden': 'true',
    });
    const error = errors?.[node];
    const value = aligned(scores[node], largest);
    const element = h(
      'li',
      { 'data-node': node, title: `rank ${ranks[node].rank}${tieWords(ranks[node])}` },
      h('span', { class: 'name', title: subject.players ? name : null }, name),
      plot,
      h('span', { class: 'value' }, value, error ? h('small', {}, ` ± ${about(error)}`) : null),
    );
    element.addEventListener('pointerenter', () => onPoint(node, element));
    element.addEventListener('pointerleave', () => onPoint(null, element));
    return { node, element, plot, error };
  }
  fold();
  return {
    element: h('div', { class: 'ranking' }, list, all),
    show({ low, high }, selected) {
      const at = (value) =>
        +(100 * Math.max(0, Math.min(1, (value - low) / (high - low || 1)))).toFixed(2);
      for (const { node, element, plot, error } of rows) {
        const [zero, end] = [at(0), at(scores[node])];
        const whisker = error
          ? [
              svg('path', {
                class: 'whisker',
                d: whiskerPath(at(scores[node] - error), at(scores[node] + error)),
                stroke: PAGE.ink,
                fill: 'none',
                'vector-effect': 'non-scaling-stroke',
              }),
            ]
          : [];
        plot.replaceChildren(
          svg('path', {
            d: `M${zero} 0V12`,
            stroke: PAGE.edge,
            'vector-effect': 'non-scaling-stroke',
          }),
          svg('rect', {
            x: Math.min(zero, end),
            y: 2,
            width: Math.abs(end - zero),
            height: 8,
            fill: scores[node] > 0 ? 'var(--for)' : 'var(--against)',
          }),
          ...whisker,
        );
        element.classList.toggle('kept', selected.has(node));
      }
    },
    light(node) {
      for (const made of rows) made.element.classList.toggle('lit', made.node === node);
    },
  };
}
