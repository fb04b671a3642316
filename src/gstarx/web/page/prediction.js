// What the model says of the input: a bar for each class, and whether it is right.

import { h } from './dom.js';
import { classed, percent } from './words.js';

const MANY = 6;

/** The head of an answer: what was asked about, and what the model says of it. */
export function predictionHead(subject, target) {
  const { classes, prediction, label } = subject;
  const badge =
    label === null || label === undefined
      ? null
      : label === prediction.class
        ? h('span', { class: 'badge right' }, 'predicted right')
        : h('span', { class: 'badge wrong' }, `predicted wrong: it is ${classed(classes, label)}`);
  const order = prediction.probabilities.map((_, i) => i);
  const shown =
    order.length <= MANY
      ? order
      : [...order]
          .sort((a, b) => prediction.probabilities[b] - prediction.probabilities[a])
          .slice(0, MANY);
  const other =
    target !== null && target !== undefined && target !== prediction.class
      ? h(
          'p',
          { class: 'muted' },
          `Explained is the class ${classed(classes, target)}, which is not the predicted one.`,
        )
      : null;
  return h(
    'header',
    { class: 'panel head' },
    h(
      'div',
      { class: 'head-title' },
      h(
        'h2',
        { class: subject.kind === 'molecule' && !/\s/.test(subject.title) ? 'mono' : null },
        subject.title,
      ),
      h(
        'p',
        {},
        'The model says ',
        h('strong', {}, prediction.name ?? classed(classes, prediction.class)),
        ' ',
        badge,
      ),
      other,
    ),
    h(
      'ul',
      { class: 'classes', 'aria-label': 'Probabilities' },
      shown.map((i) => bar(i, subject)),
    ),
  );
}

function bar(i, { classes, prediction }) {
  const share = prediction.probabilities[i];
  const fill = h('span', { class: 'fill' });
  fill.style.width = `${100 * share}%`;
  return h(
    'li',
    { class: i === prediction.class ? 'predicted' : null },
    h('span', { class: 'class-name' }, classed(classes, i)),
    h('span', { class: 'track', 'aria-hidden': 'true' }, fill),
    h('span', { class: 'value' }, percent(share)),
  );
}
