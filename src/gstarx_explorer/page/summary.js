// The Summary view: which functional groups, words or node types drive each class, over a run.

import { byId, h, svg } from './dom.js';
import { get } from './api.js';
import { formatInteger, signed } from './words.js';

const DIVISIONS = {
  functional_groups: 'functional groups',
  rings: 'rings',
  brics: 'BRICS fragments',
  words: 'words',
  node_types: 'types of nodes',
};
/** Colors of what groups do for a class, or to a value. */
const SIGNS = {
  for: 'var(--for)',
  raises: 'var(--for)',
  against: 'var(--against)',
  lowers: 'var(--against)',
  unclear: 'var(--muted)',
};
/** Rows of a class that are shown at first. */
const FEW = 12;

export class Summary {
  constructor(about, { onError }) {
    Object.assign(this, { about, onError });
    this.run = this.#select('Explainer', [], (run) => this.#load(run, null));
    this.by = this.#select('Divided into', [], (by) => this.#load(this.shown.run, by));
    this.count = h('span', { class: 'muted', role: 'status' });
    this.failure = h('p', { class: 'error', role: 'alert', hidden: true });
    this.tables = h('div', { class: 'summaries' });
    byId('summary').replaceChildren(
      h(
        'div',
        { class: 'panel filters' },
        h('h2', {}, `What drives the predictions on ${about.run.dataset}`),
        this.run.element,
        this.by.element,
        this.count,
        h(
          'p',
          { class: 'muted about' },
          'The score of a group is the sum of the scores of its atoms. Bars show its mean over the graphs that contain ' +
            'it, with a 95% bootstrap interval over graphs. Groups may overlap.',
        ),
      ),
      this.failure,
      this.tables,
    );
  }

  open() {
    this.#load(this.shown?.run ?? null, this.shown?.by ?? null);
  }

  #select(words, choices, onChange) {
    const input = h('select', {});
    input.addEventListener('change', () => onChange(input.value));
    return { input, element: h('label', { class: 'field' }, words, input) };
  }

  async #load(run, by) {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    this.tables.setAttribute('aria-busy', 'true');
    if (!this.shown) this.count.textContent = 'summarizing …';
    try {
      const content = await get('/run/groups', { run, by }, request);
      if (request.signal.aborted) return;
      this.shown = content;
      this.failure.hidden = true;
      this.#show();
    } catch (error) {
      if (error.name === 'AbortError') return;
      this.count.textContent = '';
      this.failure.textContent = error.message;
      this.failure.hidden = false;
      this.onError(error);
    } finally {
      if (!request.signal.aborted) this.tables.setAttribute('aria-busy', 'false');
    }
  }

  #show() {
    const { run, by, divisions, graphs, total, rows } = this.shown;
    const options = (entries, current) =>
      entries.map(([value, words]) => h('option', { value, selected: value === current }, words));
    this.run.input.replaceChildren(
      ...options(
        this.about.run.runs.map(({ id, title }) => [id, title]),
        run,
      ),
    );
    this.by.input.replaceChildren(
      ...options(
        divisions.map((name) => [name, DIVISIONS[name] ?? name]),
        by,
      ),
    );
    const all = total > graphs ? `the first ${formatInteger(graphs)} of ` : '';
    this.count.textContent = `${all}${formatInteger(total)} explained graphs`;
    const classes = new Map();
    for (const row of rows) classes.set(row.explained, [...(classes.get(row.explained) ?? []), row]);
    const reach = Math.max(...rows.flatMap(({ low, high }) => [Math.abs(low), Math.abs(high)]), 1e-12);
    this.tables.replaceChildren(
      ...[...classes].map(([name, listed]) => this.#table(name, listed, reach)),
      ...(rows.length ? [] : [h('p', { class: 'panel notice' }, 'No graph has such groups.')]),
    );
  }

  #table(name, rows, reach) {
    const id = `summary-${rows[0].target ?? 'all'}`;
    const body = h('tbody', {});
    const fill = (count) => body.replaceChildren(...rows.slice(0, count).map((row) => line(row, reach)));
    // strongest on either side first: what is unclear stands between the two in the answer
    rows.sort((a, b) => (a.sign === 'unclear') - (b.sign === 'unclear') || Math.abs(b.mean) - Math.abs(a.mean));
    fill(FEW);
    const all = h('button', { type: 'button', class: 'link' }, `All ${rows.length}`);
    all.addEventListener('click', () => {
      fill(rows.length);
      all.remove();
    });
    const heads = ['Group', 'Mean score', '', 'Graphs', 'Sign', 'Examples'];
    return h(
      'section',
      { class: 'panel summary-class', 'aria-labelledby': id },
      h('h3', { id }, name),
      h(
        'div',
        { class: 'scroll', tabindex: 0, role: 'region', 'aria-labelledby': id },
        h(
          'table',
          { class: 'rows plain-rows' },
          h(
            'thead',
            {},
            h(
              'tr',
              {},
              heads.map((words) =>
                words
                  ? h('th', { scope: 'col', class: words === 'Graphs' ? 'number' : null }, words)
                  : h('td', {}),
              ),
            ),
          ),
          body,
        ),
      ),
      rows.length > FEW ? all : null,
    );
  }
}

function line({ name, mean, low, high, graphs, sign, examples }, reach) {
  const at = (value) => +(50 + (50 * value) / reach).toFixed(2);
  const color = SIGNS[sign];
  const still = { 'vector-effect': 'non-scaling-stroke' };
  return h(
    'tr',
    {},
    h('th', { scope: 'row' }, name),
    h('td', { class: 'number' }, signed(mean)),
    h(
      'td',
      {},
      svg(
        'svg',
        {
          viewBox: '0 0 100 12',
          preserveAspectRatio: 'none',
          class: 'interval',
          role: 'img',
          'aria-label': `95% interval from ${signed(low)} to ${signed(high)}`,
        },
        svg('path', { d: 'M50 0V12', stroke: 'var(--edge)', ...still }),
        svg('path', { d: `M${at(low)} 6H${at(high)}`, stroke: color, 'stroke-width': 3, ...still }),
        svg('path', { d: `M${at(mean)} 1V11`, stroke: 'var(--ink)', 'stroke-width': 2, ...still }),
      ),
    ),
    h('td', { class: 'number' }, formatInteger(graphs)),
    h('td', {}, h('span', { class: `sign ${sign}` }, sign)),
    h('td', { class: 'examples' }, examples.join(', ')),
  );
}
