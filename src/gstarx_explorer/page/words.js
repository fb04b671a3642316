// Names of metrics and formats of numbers.

export const METRICS = {
  harmonic_fidelity: {
    title: 'H-fidelity',
    help: 'Combines both fidelities into one number from 0 to 1, weighted by the share of nodes left out. Higher is better; about 0.5 without any explanation.',
  },
  fidelity: {
    title: 'Fidelity',
    help: 'The drop in the predicted probability when the kept nodes are removed: are they necessary? Higher is better. For a predicted number, the change toward the mean, as a share of the usual range.',
  },
  inverse_fidelity: {
    title: 'Inverse fidelity',
    help: 'The drop in the predicted probability when only the kept nodes remain: are they sufficient? Lower is better. For a predicted number, the change toward the mean, as a share of the usual range.',
  },
};

const NODES = {
  molecule: ['atom', 'atoms'],
  sentence: ['word', 'words'],
  graph: ['node', 'nodes'],
  group: ['functional group', 'functional groups'],
  bonds: ['bond', 'bonds'],
  dependencies: ['dependency', 'dependencies'],
  edges: ['edge', 'edges'],
  brics: ['fragment', 'fragments'],
  functional_groups: ['group', 'groups'],
  rings: ['group', 'groups'],
  murcko: ['part', 'parts'],
  phrases: ['phrase', 'phrases'],
  communities: ['community', 'communities'],
  features: ['feature', 'features'],
};
const LINKS = { molecule: 'bonds', sentence: 'dependencies', graph: 'edges' };

/** What has scores, as a kind for the words below: nodes, or other players. */
export const unitOf = ({ kind, players }) =>
  !players ? kind : players.kind === 'edges' ? LINKS[kind] : players.name;

/** "6 atoms", by the kind of graph. */
export const counted = (kind, count) => `${count} ${nodesOf(kind, count)}`;

/** "atoms", "word", ... */
export const nodesOf = (kind, count) => (NODES[kind] ?? ['group', 'groups'])[count === 1 ? 0 : 1];

/** A number with fixed decimals and a minus sign; a dash if there is none. */
export function decimal(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace('-', '') : text).replace('-', '−');
}

/** A score with its sign and three digits. */
export function signed(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  const text =
    size >= 1e-4 && size < 1e5 ? String(Number(size.toPrecision(3))) : size.toPrecision(2);
  return (value < 0 ? '−' : '+') + text;
}

/** A standard error with one or two significant digits. */
export const about = (value) =>
  value >= 1e-4 ? String(Number(value.toPrecision(value < 0.01 ? 1 : 2))) : value.toExponential(0);

/** A score among others up to `largest`, all with the same number of decimals. */
export function aligned(value, largest) {
  const digits = largest > 0 ? Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(largest)))) : 3;
  const text = Math.abs(value).toFixed(digits);
  return (Number(text) === 0 ? '\u2007' : value < 0 ? '−' : '+') + text;
}

export const percent = (share) => `${decimal(100 * share, 1)} %`;

/** 12 345 with thin spaces. */
export const formatInteger = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, '\u2009');

export function seconds(value) {
  if (value === null || value === undefined) return '–';
  if (value < 0.095) return `${Math.max(1, Math.round(value * 1000))} ms`;
  return value < 60 ? `${value.toFixed(value < 10 ? 1 : 0)} s` : `${(value / 60).toFixed(1)} min`;
}

/** "1 evaluation", "2 795 evaluations". */
export const evaluated = (count) => `${formatInteger(count)} evaluation${count === 1 ? '' : 's'}`;

/** A text with a period at its end. */
export const sentence = (text) => (/[.!?…]$/.test(text) ? text : `${text}.`);

/** The names of the classes or targets of a model, or their numbers. */
export const outputNames = ({ classes, outputs, task }) =>
  Array.from({ length: Math.max(classes.length, outputs ?? 0) }, (_, i) =>
    outputName(task, classes, i),
  );

/** The name of a class or target, or its number. */
export const outputName = (task, classes, which) =>
  task === 'multilabel' || task === 'regression'
    ? (classes?.[which] ?? `target ${which}`)
    : className(classes, which);

/** The label of a graph in words: its class, or the measured targets; empty without one. */
export function labelWords({ task, classes, label, measured }) {
  if (label !== null && label !== undefined) return className(classes, label);
  return (measured ?? [])
    .map((value, i) => [value, outputName(task, classes, i)])
    .filter(([value]) => value !== null)
    .map(([value, name]) => `${name} ${task === 'multilabel' ? (value > 0.5 ? 'yes' : 'no') : formatValue(value)}`)
    .join(', ');
}

/** A value of a regression, to four digits. */
export function formatValue(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  const text = size >= 1e-3 && size < 1e5 ? String(Number(size.toPrecision(4))) : size.toPrecision(3);
  return (value < 0 ? '−' : '') + text;
}

/** The name of a class, or its number. */
export const className = (classes, which) => {
  if (which === null || which === undefined) return '–';
  return classes?.[which] ?? `class ${which}`;
};
