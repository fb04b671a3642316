// The three metrics of a selection, each with a help text.

import { h } from './dom.js';
import { term } from './tooltip.js';
import { METRICS, decimal } from './words.js';

/** A list of metrics; `show(metrics)` fills it, `show(null)` empties it. */
export function metricsList() {
  const cells = {};
  const element = h(
    'dl',
    { class: 'metrics' },
    Object.entries(METRICS).map(([name, { title, help }]) => {
      cells[name] = h('dd', { 'data-metric': name }, '–');
      return h('div', {}, h('dt', {}, term(title, help)), cells[name]);
    }),
  );
  return {
    element,
    show(metrics) {
      for (const [name, cell] of Object.entries(cells)) cell.textContent = decimal(metrics?.[name]);
    },
  };
}

/** The metrics at one size. */
export function metricsAt(metrics, size) {
  if (
    !metrics ||
    metrics.harmonic_fidelity?.[size] === null ||
    metrics.harmonic_fidelity?.[size] === undefined
  )
    return null;
  return Object.fromEntries(Object.keys(METRICS).map((name) => [name, metrics[name][size]]));
}
