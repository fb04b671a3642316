// The prediction: a bar for each class, and whether it is correct.

import { h } from './dom.js';
import { className, percent } from './words.js';

const MANY = 6;

/** The head of the results: the input and the prediction of the model. */
export function predictionHead(subject, target) {
  const { classes, prediction, label } = subject;
  const badge =
    label === null || label === undefined
      ? null
      : label === prediction.class
        ? h('span', { class: 'badge right' }, 'correct prediction')
        : h('span', { class: 'badge wrong' }, `wrong prediction: the label is ${className(classes, label)}`);
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
          `The explained class is ${className(classes, target)}, which is not the predicted one.`,
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
        'The model predicts ',
        h('strong', {}, prediction.name ?? className(classes, prediction.class)),
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
    h('span', { class: 'class-name' }, className(classes, i)),
    h('span', { class: 'track', 'aria-hidden': 'true' }, fill),
    h('span', { class: 'value' }, percent(share)),
  );
}
