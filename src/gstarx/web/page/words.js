// How numbers and things are called.

export const METRICS = {
  harmonic_fidelity: {
    title: 'H-fidelity',
    help: 'Both fidelities in one number from 0 to 1, weighted by how little is kept. Higher is better; doing nothing scores about 0.5.',
  },
  fidelity: {
    title: 'Fidelity',
    help: 'What the prediction loses without what is kept: was it needed? Higher is better.',
  },
  inverse_fidelity: {
    title: 'Inverse fidelity',
    help: 'What the prediction loses with nothing but what is kept: is it enough? Lower is better.',
  },
};

const NODES = {
  molecule: ['atom', 'atoms'],
  sentence: ['word', 'words'],
  graph: ['node', 'nodes'],
};

/** "6 atoms", by the kind of graph. */
export const counted = (kind, count) => `${count} ${nodesOf(kind, count)}`;

/** "atoms", "word", ... */
export const nodesOf = (kind, count) => (NODES[kind] ?? NODES.graph)[count === 1 ? 0 : 1];

/** A number with so many digits after the point and a true minus; a dash for none. */
export function decimal(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace('-', '') : text).replace('-', '−');
}

/** A score: its sign and three digits. */
export function signed(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  const text =
    size >= 1e-4 && size < 1e5 ? String(Number(size.toPrecision(3))) : size.toPrecision(2);
  return (value < 0 ? '−' : '+') + text;
}

/** An error: more digits than one or two would pretend. */
export const about = (value) =>
  value >= 1e-4 ? String(Number(value.toPrecision(value < 0.01 ? 1 : 2))) : value.toExponential(0);

/** A score among others up to `largest`, all with as many digits. */
export function aligned(value, largest) {
  const digits = largest > 0 ? Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(largest)))) : 3;
  const text = Math.abs(value).toFixed(digits);
  return (Number(text) === 0 ? '\u2007' : value < 0 ? '−' : '+') + text;
}

export const percent = (share) => `${decimal(100 * share, 1)} %`;

/** 12 345 with thin spaces. */
export const whole = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, '\u2009');

export function seconds(value) {
  if (value === null || value === undefined) return '–';
  if (value < 0.095) return `${Math.max(1, Math.round(value * 1000))} ms`;
  return value < 60 ? `${value.toFixed(value < 10 ? 1 : 0)} s` : `${(value / 60).toFixed(1)} min`;
}

/** "1 evaluation", "2 795 evaluations". */
export const evaluated = (count) => `${whole(count)} evaluation${count === 1 ? '' : 's'}`;

/** Words as a sentence: with a full stop. */
export const sentence = (text) => (/[.!?…]$/.test(text) ? text : `${text}.`);

/** The name of a class, or its number. */
export const classed = (classes, which) => {
  if (which === null || which === undefined) return '–';
  return classes?.[which] ?? `class ${which}`;
};
