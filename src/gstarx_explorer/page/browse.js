// The Browse view: the graphs of a run in a table, and the curves of its explainers.

import { byId, debounced, h } from './dom.js';
import { get } from './api.js';
import { PAGE } from './colors.js';
import { curves } from './curves.js';
import { askLink, browseLink } from './link.js';
import { thumbnail } from './thumbnail.js';
import {
  METRICS,
  className,
  decimal,
  formatInteger,
  formatValue,
  labelWords,
  outputName,
  percent,
  seconds,
  sentence,
} from './words.js';

const ROWS = 25;
const FILTERS = { all: 'All', wrong: 'Wrong predictions', failed: 'Failed' };
const NATURAL = {
  graph: 'asc',
  nodes: 'desc',
  fidelity: 'asc',
  inverse_fidelity: 'desc',
  harmonic_fidelity: 'asc',
};

export class Browse {
  constructor(about, { onError }) {
    Object.assign(this, { about, run: about.run, onError });
    this.root = byId('browse');
    if (this.run) this.#build();
    else this.#without(about.run_problem);
  }

  /** Show the part of the table in an address, and check whether the run has grown. */
  async open(given) {
    this.given = given;
    if (this.run) this.#show(given);
    try {
      const run = await get('/run');
      if (JSON.stringify(run) === JSON.stringify(this.run)) return;
      this.run = run;
      this.about.run = run;
      this.#build();
      this.#show(this.given);
    } catch (error) {
      if (!this.run) this.#without(error.message);
      this.onError(error);
    }
  }

  /** Show why there is nothing to browse. */
  #without(reason) {
    const again = () => this.open(this.given);
    this.root.replaceChildren(
      h(
        'div',
        { class: 'panel filters' },
        h('p', { class: 'error', role: 'alert' }, sentence(reason)),
        h('button', { type: 'button', class: 'small', onclick: again }, 'Try again'),
      ),
    );
  }

  #show(given) {
    this.given = given;
    const { run } = this;
    const among = (value, valid, otherwise) => (valid.includes(value) ? value : otherwise);
    const ids = run.runs.map(({ id }) => String(id));
    const sparsities = run.sparsities.map(String);
    const usual = sparsities.includes('0.7') ? '0.7' : sparsities[0];
    this.table = {
      filter: among(given.filter, Object.keys(FILTERS), 'all'),
      metric: among(given.metric, Object.keys(METRICS), 'harmonic_fidelity'),
      sparsity: among(given.sparsity, sparsities, usual),
      sort: among(given.sort, Object.keys(NATURAL), 'graph'),
      run: among(given.run, ids, ids[0]),
      order: among(given.order, ['asc', 'desc'], null),
      search: given.search ?? '',
      page: /^\d{1,6}$/.test(given.page ?? '') ? Math.max(1, Number(given.page)) : 1,
    };
    this.table.order ??= NATURAL[this.table.sort];
    this.#load();
  }

  /** The link to the last table, and the graphs before and after one in it. */
  neighbors(graph) {
    const order = this.order ?? [];
    const place = order.indexOf(graph);
    const at = (i) => (place >= 0 ? (order[i] ?? null) : null);
    return {
      table: this.table ? browseLink(this.table) : '#browse',
      before: at(place - 1),
      after: at(place + 1),
    };
  }

  /** Show another part of the table, as a step of the browser history. */
  #go(changes) {
    const next = { ...this.table, page: 1, ...changes };
    history.pushState(null, '', browseLink(next));
    this.#show(
      Object.fromEntries(
        Object.entries(next).map(([key, value]) => [key, value === null ? null : String(value)]),
      ),
    );
  }

  async #load() {
    const { filter, metric, sparsity, sort, run, order, search, page } = this.table;
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    this.#controls();
    this.#plot();
    this.body.setAttribute('aria-busy', 'true');
    try {
      const content = await get(
        '/run/rows',
        { filter, sparsity, sort, run, order, search, offset: (page - 1) * ROWS, limit: ROWS },
        request,
      );
      if (request.signal.aborted) return;
      this.failure.hidden = true;
      this.#rows(content, metric);
    } catch (error) {
      if (error.name === 'AbortError') return;
      this.failure.textContent = error.message;
      this.failure.hidden = false;
      this.onError(error);
    } finally {
      if (!request.signal.aborted) this.body.setAttribute('aria-busy', 'false');
    }
  }

  #build() {
    const { run } = this;
    const graphs = Math.max(0, ...run.runs.map((one) => one.graphs));
    const facts = [
      ['graphs', formatInteger(graphs)],
      ['dataset', run.dataset],
      ['model', run.model],
    ];
    if (run.accuracy !== null && run.accuracy !== undefined)
      facts.push(['predicted correctly', percent(run.accuracy)]);
    this.filters = h(
      'div',
      { class: 'segments', role: 'radiogroup', 'aria-label': 'Which graphs' },
      this.#filters().map(([value, words]) => {
        const radio = h('input', { type: 'radio', name: 'filter', value });
        radio.addEventListener('change', () => this.#go({ filter: value }));
        return h('label', {}, radio, h('span', {}, words));
      }),
    );
    this.search = h('input', {
      type: 'search',
      autocomplete: 'off',
      spellcheck: 'false',
      placeholder: 'name, SMILES or number',
    });
    this.search.addEventListener(
      'input',
      debounced(200, () => this.#go({ search: this.search.value.trim() })),
    );
    this.metric = this.#select(
      'Metric',
      Object.entries(METRICS).map(([name, { title }]) => [name, title]),
      (metric) =>
        this.#go(
          METRICS[this.table.sort] ? { metric, sort: metric, order: NATURAL[metric] } : { metric },
        ),
    );
    this.sparsity = this.#select(
      'Sparsity',
      run.sparsities.map((share) => [String(share), decimal(share, 2)]),
      (sparsity) => this.#go({ sparsity }),
    );
    this.lowest = h(
      'button',
      {
        type: 'button',
        class: 'small',
        id: 'lowest',
        onclick: () => this.#go({ sort: this.table.metric, order: NATURAL[this.table.metric] }),
      },
      'Lowest fidelity first',
    );
    this.plotBox = h('div', { class: 'plot-box' });
    this.head = h('tr');
    this.body = h('tbody');
    this.failure = h('p', { class: 'error', role: 'alert', hidden: true });
    this.count = h('span', { class: 'muted', role: 'status', id: 'rows-count' });
    this.back = h(
      'button',
      {
        type: 'button',
        class: 'small',
        'aria-label': 'Previous rows',
        onclick: () => this.#go({ page: this.table.page - 1 }),
      },
      '←',
    );
    this.on = h(
      'button',
      {
        type: 'button',
        class: 'small',
        'aria-label': 'Next rows',
        onclick: () => this.#go({ page: this.table.page + 1 }),
      },
      '→',
    );
    this.root.replaceChildren(
      h(
        'header',
        { class: 'panel run-head' },
        h(
          'div',
          {},
          h('h2', {}, run.title),
          run.remark ? h('p', { class: 'muted' }, run.remark) : null,
          h(
            'dl',
            { class: 'facts' },
            facts.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))),
          ),
          this.#runs(),
        ),
        this.plotBox,
      ),
      h(
        'div',
        { class: 'panel filters' },
        h('label', { class: 'field search' }, 'Search', this.search),
        this.filters,
        this.metric.element,
        this.sparsity.element,
        this.lowest,
      ),
      this.failure,
      h(
        'div',
        { class: 'panel scroll', tabindex: 0, role: 'region', 'aria-label': 'Graphs of the run' },
        h('table', { class: 'rows' }, h('thead', {}, this.head), this.body),
      ),
      h('div', { class: 'pager' }, this.back, this.count, this.on),
    );
  }

  /** Only classes can be wrong. */
  #filters() {
    return Object.entries(FILTERS).filter(([name]) => name !== 'wrong' || this.#byClass);
  }

  get #byClass() {
    return this.run.task !== 'multilabel' && this.run.task !== 'regression';
  }

  #select(words, choices, onChange) {
    const input = h(
      'select',
      {},
      choices.map(([value, text]) => h('option', { value }, text)),
    );
    input.addEventListener('change', () => onChange(input.value));
    return { input, element: h('label', { class: 'field' }, words, input) };
  }

  /** The explainers with the colors of their curves. */
  #runs() {
    return h(
      'ul',
      { class: 'key runs' },
      this.run.runs.map((run, i) => {
        const swatch = h('span', { class: 'swatch', 'aria-hidden': 'true' });
        swatch.style.setProperty('--swatch', PAGE.line(i));
        const failed = run.failed ? `, ${run.failed} failed` : '';
        return h(
          'li',
          {},
          swatch,
          run.title,
          h(
            'small',
            { class: 'muted' },
            ` ${formatInteger(run.graphs)} graphs${failed}, ${seconds(run.seconds)}`,
          ),
        );
      }),
    );
  }

  #plot() {
    const { metric, sparsity } = this.table;
    const lines = this.run.runs
      .filter(({ id }) => this.run.curves[id])
      .map((run) => ({
        name: run.title,
        color: PAGE.line(this.run.runs.indexOf(run)),
        points: this.run.sparsities.map((share, i) => [share, this.run.curves[run.id][metric][i]]),
      }));
    const range = [Math.min(...this.run.sparsities), Math.max(...this.run.sparsities)];
    const { title } = METRICS[metric];
    this.plotBox.replaceChildren(
      h('p', { class: 'plot-title' }, `${title}, mean over the graphs`),
      curves({
        lines,
        cursor: Number(sparsity),
        palette: PAGE,
        name: title,
        range: range[0] < range[1] ? range : [0, 1],
        label: `${title} of each explainer against sparsity`,
      }),
    );
  }

  #controls() {
    const { filter, metric, sparsity, sort, order, run } = this.table;
    for (const radio of this.filters.querySelectorAll('input'))
      radio.checked = radio.value === filter;
    if (this.search.value.trim() !== this.table.search) this.search.value = this.table.search;
    this.metric.input.value = metric;
    this.sparsity.input.value = sparsity;
    const header = (words, key, own = null, kind = own === null ? null : 'number') => {
      const current = sort === key && (own === null || own === run);
      const turned = order === 'asc' ? 'desc' : 'asc';
      const button = h(
        'button',
        {
          type: 'button',
          onclick: () =>
            this.#go({
              sort: key,
              ...(own === null ? {} : { run: own }),
              order: current ? turned : NATURAL[key],
            }),
        },
        words,
      );
      return h(
        'th',
        {
          scope: 'col',
          class: kind,
          'aria-sort': current ? (order === 'asc' ? 'ascending' : 'descending') : null,
        },
        button,
      );
    };
    const focused = this.head.contains(document.activeElement)
      ? [...this.head.querySelectorAll('button')].indexOf(document.activeElement)
      : -1;
    this.head.replaceChildren(
      header('Graph', 'graph'),
      header('Nodes', 'nodes', null, 'number wide'),
      h('th', { scope: 'col' }, 'Prediction'),
      h('th', { scope: 'col', class: 'wide' }, 'Label'),
      ...this.run.runs.map((one) => header(one.title, metric, String(one.id))),
    );
    if (focused >= 0) this.head.querySelectorAll('button')[focused]?.focus();
    this.lowest.textContent =
      metric === 'inverse_fidelity'
        ? 'Worst inverse fidelity first'
        : `Lowest ${METRICS[metric].title} first`;
  }

  /** The class, or what the model says of the targets. */
  #predicted({ prediction, outputs }) {
    const { classes, task, target } = this.run;
    if (this.#byClass) return className(classes, prediction);
    const format = task === 'multilabel' ? percent : formatValue;
    const named = (outputs ?? []).map((value, i) => `${outputName(task, classes, i)} ${format(value)}`);
    return (target === null ? named.join(', ') : named[target]) || '–';
  }

  #rows({ total, rows }, metric) {
    const { page, filter, search } = this.table;
    const { classes } = this.run;
    this.order = rows.map((row) => row.graph);
    this.body.replaceChildren(
      ...rows.map((row) => {
        const address = askLink(
          { input: { run_graph: row.graph } },
          { sparsity: Number(this.table.sparsity) },
        );
        const verdict =
          row.correct === false
            ? h('span', { class: 'badge wrong' }, className(classes, row.prediction))
            : this.#predicted(row);
        const named = row.smiles && row.smiles !== row.title;
        const cells = this.run.runs.map(({ id }) =>
          h('td', { class: 'number' }, decimal(row.metrics[id]?.[metric])),
        );
        const made = h(
          'tr',
          {},
          h(
            'th',
            { scope: 'row' },
            h(
              'a',
              { href: address },
              row.picture ? thumbnail(row.picture) : null,
              h('span', { class: 'position' }, row.graph),
              h(
                'span',
                { class: 'row-title' },
                row.title,
                named ? h('small', { class: 'mono muted' }, row.smiles) : null,
              ),
            ),
            row.error ? h('small', { class: 'error' }, row.error) : null,
          ),
          h('td', { class: 'number wide' }, row.nodes),
          h('td', {}, verdict),
          h('td', { class: 'wide' }, labelWords({ ...this.run, ...row }) || '–'),
          cells,
        );
        made.addEventListener('click', (event) => {
          if (!event.target.closest('a')) location.hash = address;
        });
        return made;
      }),
      ...(rows.length
        ? []
        : [
            h(
              'tr',
              { class: 'none' },
              h(
                'td',
                { colspan: 4 + this.run.runs.length },
                filter === 'all' && !search
                  ? 'The run has no graphs yet.'
                  : 'There are no such graphs.',
              ),
            ),
          ]),
    );
    const first = (page - 1) * ROWS;
    this.count.textContent = total
      ? `${formatInteger(first + 1)}–${formatInteger(first + rows.length)} of ${formatInteger(total)} graphs`
      : 'no graphs';
    this.back.disabled = page <= 1;
    this.on.disabled = first + rows.length >= total;
  }
}
