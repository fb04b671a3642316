// A view as the part of the address behind #: what was asked, and how it is looked at.

/**
 * @typedef {object} Question
 * @property {string|null} model
 * @property {object|null} input   {smiles} | {sentence} | {graph} | {run_graph}
 * @property {{name: string, options: object}[]|null} explainers   null: those ticked by default
 * @property {number} seed
 * @property {boolean} best
 * @property {number|null} target
 */

const INPUTS = ['smiles', 'sentence', 'graph', 'run_graph'];
const NUMBERED = new Set(['graph', 'run_graph']);

/** The address of a question, a sparsity and one's own selection. */
export function askLink(question, { sparsity = null, own = [] } = {}) {
  const found = new URLSearchParams();
  if (question.model && !('run_graph' in (question.input ?? {})))
    found.append('model', question.model);
  for (const [name, value] of Object.entries(question.input ?? {})) found.append(name, value);
  for (const { name, options } of question.explainers ?? []) {
    found.append('explainer', name);
    for (const [option, value] of Object.entries(options))
      found.append(`${name}.${option}`, JSON.stringify(value));
  }
  if (question.seed) found.append('seed', question.seed);
  if (question.best === false) found.append('best', 'no');
  if (question.target !== null && question.target !== undefined)
    found.append('target', question.target);
  if (sparsity !== null) found.append('sparsity', sparsity);
  if (own.length) found.append('own', [...own].sort((a, b) => a - b).join('.'));
  return `#ask?${found}`;
}

/** The address of a page of the table. */
export function browseLink(table) {
  const found = new URLSearchParams(
    Object.entries(table).filter(
      ([, value]) => value !== null && value !== undefined && value !== '',
    ),
  );
  return found.size ? `#browse?${found}` : '#browse';
}

/** What an address asks for; whatever makes no sense in it is left out. */
export function readLink(hash) {
  const [view, query = ''] = hash.replace(/^#/, '').split(/\?(.*)/s);
  const given = new URLSearchParams(query);
  if (view === 'browse') return { view: 'browse', table: Object.fromEntries(given) };
  const names = given.getAll('explainer');
  return {
    view: 'ask',
    question: {
      model: given.get('model'),
      input: inputOf(given),
      explainers: names.length
        ? [...new Set(names)].map((name) => ({ name, options: optionsOf(given, name) }))
        : null,
      seed: natural(given.get('seed')) ?? 0,
      best: given.get('best') !== 'no',
      target: natural(given.get('target')),
    },
    sparsity: share(given.get('sparsity')),
    own: (given.get('own') ?? '')
      .split('.')
      .map(natural)
      .filter((node) => node !== null),
  };
}

/** Whether two questions have the same answer. */
export const sameQuestion = (one, other) => askLink(one) === askLink(other);

function inputOf(given) {
  const name = INPUTS.find((input) => given.has(input));
  if (!name) return null;
  const value = NUMBERED.has(name) ? natural(given.get(name)) : given.get(name);
  return value === null ? null : { [name]: value };
}

function optionsOf(given, explainer) {
  const found = {};
  for (const [key, text] of given) {
    if (!key.startsWith(`${explainer}.`)) continue;
    try {
      found[key.slice(explainer.length + 1)] = JSON.parse(text);
    } catch {
      /* left out */
    }
  }
  return found;
}

const natural = (text) => (/^\d{1,15}$/.test(text ?? '') ? Number(text) : null);

function share(text) {
  const value = Number.parseFloat(text ?? '');
  return value >= 0 && value <= 1 ? value : null;
}
