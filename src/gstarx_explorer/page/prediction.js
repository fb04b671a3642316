// The prediction: a bar for each class or target, or the value, and the label if there is one.

import { h } from './dom.js';
import { className, formatValue, outputName, percent } from './words.js';

const MANY = 6;

/** The head of the results: the input and the prediction of the model. */
export function predictionHead(subject, chosen) {
  const { smiles, title, kind, task } = subject;
  const named = kind === 'molecule' && smiles && smiles !== title;
  const words = { multilabel: targetWords, regression: valueWords }[task] ?? classWords;
  return h(
    'header',
    { class: 'panel head' },
    h(
      'div',
      { class: 'head-title' },
      h('h2', { class: kind === 'molecule' && !named && !/\s/.test(title) ? 'mono' : null }, title),
      named ? h('p', { class: 'mono muted smiles' }, smiles) : null,
      words(subject, chosen),
      subject.remark ? h('p', { class: 'muted' }, remarkWords(subject.remark)) : null,
    ),
    h(
      'ul',
      { class: 'classes', 'aria-label': task === 'regression' ? 'Values' : 'Probabilities' },
      task === 'regression' ? values(subject) : bars(subject),
    ),
  );
}

const remarkWords = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

function classWords({ classes, prediction, label }, chosen) {
  const badge =
    label === null || label === undefined
      ? null
      : label === prediction.class
        ? h('span', { class: 'badge right' }, 'correct prediction')
        : h('span', { class: 'badge wrong' }, `wrong prediction: the label is ${className(classes, label)}`);
  const other =
    chosen !== null && chosen !== undefined && chosen !== prediction.class
      ? h(
          'p',
          { class: 'muted' },
          `The explained class is ${className(classes, chosen)}, which is not the predicted one.`,
        )
      : null;
  return [
    h(
      'p',
      {},
      'The model predicts ',
      h('strong', {}, prediction.name ?? className(classes, prediction.class)),
      ' ',
      badge,
    ),
    other,
  ];
}

function targetWords({ task, classes, prediction, target, measured }) {
  const share = prediction.probabilities[target];
  const label = measured[target];
  const right = label !== null && label !== undefined && label > 0.5 === share > 0.5;
  return [
    h(
      'p',
      {},
      'The explained target is ',
      h('strong', {}, outputName(task, classes, target)),
      `: ${share > 0.5 ? 'yes' : 'no'}, with a probability of ${percent(Math.max(share, 1 - share))} `,
      label === null || label === undefined
        ? null
        : h(
            'span',
            { class: right ? 'badge right' : 'badge wrong' },
            right ? 'correct prediction' : `wrong prediction: the label is ${label > 0.5 ? 'yes' : 'no'}`,
          ),
    ),
  ];
}

function valueWords({ task, classes, prediction, target, measured }) {
  const label = measured[target];
  return [
    h(
      'p',
      {},
      'The model predicts ',
      h('strong', {}, `${outputName(task, classes, target)} ${formatValue(prediction.values[target])}`),
      label === null || label === undefined ? null : `; the label is ${formatValue(label)}`,
    ),
  ];
}

function bars(subject) {
  const { probabilities } = subject.prediction;
  const order = probabilities.map((_, i) => i);
  const shown =
    order.length <= MANY
      ? order
      : [...order].sort((a, b) => probabilities[b] - probabilities[a]).slice(0, MANY);
  // the explained target is always among them
  if (subject.target !== null && !shown.includes(subject.target)) shown.push(subject.target);
  return shown.map((i) => bar(i, subject));
}

function bar(i, { task, classes, prediction, target }) {
  const share = prediction.probabilities[i];
  const fill = h('span', { class: 'fill' });
  fill.style.width = `${100 * share}%`;
  const main = i === (task === 'multilabel' ? target : prediction.class);
  return h(
    'li',
    { class: main ? 'predicted' : null },
    h('span', { class: 'class-name' }, outputName(task, classes, i)),
    h('span', { class: 'track', 'aria-hidden': 'true' }, fill),
    h('span', { class: 'value' }, percent(share)),
  );
}

/** The values of several targets; a single one is said in words. */
const values = ({ task, classes, prediction, target }) =>
  prediction.values.length < 2
    ? []
    : prediction.values.map((value, i) =>
        h(
          'li',
          { class: i === target ? 'predicted' : null },
          h('span', { class: 'class-name' }, outputName(task, classes, i)),
          h('span', { 'aria-hidden': 'true' }),
          h('span', { class: 'value' }, formatValue(value)),
        ),
      );
