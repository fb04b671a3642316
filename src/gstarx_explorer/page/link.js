// The view in the fragment of the address: the request, the sparsity and the selection.

/**
 * @typedef {object} Question
 * @property {string|null} model
 * @property {object|null} input   {smiles} | {sentence} | {graph} | {run_graph}
 * @property {{name: string, options: object}[]|null} explainers   null: those ticked by default
 * @property {number} seed
 * @property {boolean} best
 * @property {number|null} target
 * @property {string} players   what gets scores
 */

const INPUTS = ['smiles', 'sentence', 'graph', 'run_graph'];
const NUMBERED = new Set(['graph', 'run_graph']);

/** The address of a request, a sparsity and the user's own selection. */
export function askLink(question, { sparsity = null, own = [] } = {}) {
  const query = new URLSearchParams();
  if (question.model && !('run_graph' in (question.input ?? {})))
    query.append('model', question.model);
  for (const [name, value] of Object.entries(question.input ?? {})) query.append(name, value);
  for (const { name, options } of question.explainers ?? []) {
    query.append('explainer', name);
    for (const [option, value] of Object.entries(options))
      query.append(`${name}.${option}`, JSON.stringify(value));
  }
  if (question.seed) query.append('seed', question.seed);
  if (question.best === false) query.append('best', 'no');
  if (question.target !== null && question.target !== undefined)
    query.append('target', question.target);
  if (question.players && question.players !== 'nodes') query.append('players', question.players);
  if (sparsity !== null) query.append('sparsity', sparsity);
  if (own.length) query.append('own', [...own].sort((a, b) => a - b).join('.'));
  return `#ask?${query}`;
}

/** The address of a page of the table. */
export function browseLink(table) {
  const query = new URLSearchParams(
    Object.entries(table).filter(
      ([, value]) => value !== null && value !== undefined && value !== '',
    ),
  );
  return query.size ? `#browse?${query}` : '#browse';
}

/** The view of an address; invalid parts are ignored. */
export function readLink(hash) {
  const [view, query = ''] = hash.replace(/^#/, '').split(/\?(.*)/s);
  const given = new URLSearchParams(query);
  if (view === 'summary') return { view: 'summary' };
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
      players: given.get('players') ?? 'nodes',
    },
    sparsity: share(given.get('sparsity')),
    own: (given.get('own') ?? '')
      .split('.')
      .map(natural)
      .filter((node) => node !== null),
  };
}

/** Whether two requests are the same. */
export const sameQuestion = (one, other) => askLink(one) === askLink(other);

function inputOf(given) {
  const name = INPUTS.find((input) => given.has(input));
  if (!name) return null;
  const value = NUMBERED.has(name) ? natural(given.get(name)) : given.get(name);
  return value === null ? null : { [name]: value };
}

function optionsOf(given, explainer) {
  const options = {};
  for (const [key, text] of given) {
    if (!key.startsWith(`${explainer}.`)) continue;
    try {
      options[key.slice(explainer.length + 1)] = JSON.parse(text);
    } catch {
      /* ignored */
    }
  }
  return options;
}

const natural = (text) => (/^\d{1,15}$/.test(text ?? '') ? Number(text) : null);

function share(text) {
  const value = Number.parseFloat(text ?? '');
  return value >= 0 && value <= 1 ? value : null;
}
