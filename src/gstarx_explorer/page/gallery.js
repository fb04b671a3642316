// The graphs of a model's dataset or of one's own table: pictures, names, and a search.

import { byId, debounced, h } from './dom.js';
import { get } from './api.js';
import { askLink, browseLink } from './link.js';
import { thumbnail } from './thumbnail.js';
import { counted, formatInteger, labelWords } from './words.js';

const PAGE = 24;

export class Gallery {
  constructor(about, { onError }) {
    this.models = about.models.filter((model) => model.graphs && !model.problem);
    this.onError = onError;
    this.search = h('input', {
      type: 'search',
      id: 'gallery-search',
      autocomplete: 'off',
      spellcheck: 'false',
      placeholder: 'name, SMILES or number',
    });
    this.search.addEventListener(
      'input',
      debounced(200, () => this.#go({ search: this.search.value.trim() })),
    );
    this.count = h('span', { class: 'muted', role: 'status', id: 'gallery-count' });
    this.unreadable = h('details', { class: 'about', hidden: true });
    this.failure = h('p', { class: 'error', role: 'alert', hidden: true });
    this.list = h('ul', { class: 'gallery', 'aria-label': 'Graphs' });
    const step = (label, sign, by) =>
      h(
        'button',
        {
          type: 'button',
          class: 'small',
          'aria-label': label,
          onclick: () => this.#go({ page: this.view.page + by }),
        },
        sign,
      );
    this.back = step('Previous graphs', '←', -1);
    this.on = step('Next graphs', '→', 1);
    byId('gallery').replaceChildren(
      h('div', { class: 'panel filters' }, this.#head(), this.#field(), this.count, this.unreadable),
      this.failure,
      this.list,
      h('div', { class: 'pager' }, this.back, this.on),
    );
  }

  #head() {
    this.title = h('h2', {});
    return this.title;
  }

  #field() {
    return h('label', { class: 'field search' }, 'Search', this.search);
  }

  /** Show the graphs of an address. */
  open(given) {
    this.model = this.models.find(({ name }) => name === given.model) ?? this.models[0];
    this.view = {
      model: this.model.name,
      search: given.search ?? '',
      page: /^\d{1,6}$/.test(given.page ?? '') ? Math.max(1, Number(given.page)) : 1,
    };
    if (this.search.value.trim() !== this.view.search) this.search.value = this.view.search;
    this.title.textContent = `${this.model.dataset}: ${formatInteger(this.model.graphs)} graphs`;
    this.#listUnreadable();
    document.title = `${this.model.dataset} · GStarX explorer`;
    this.#load();
  }

  /** The first rows of the table that could not be read, and why. */
  #listUnreadable() {
    const { skipped, unreadable } = this.model;
    this.unreadable.hidden = !skipped;
    const more = skipped > unreadable.length ? [h('li', {}, '…')] : [];
    this.unreadable.replaceChildren(
      h('summary', {}, `${formatInteger(skipped)} row${skipped === 1 ? '' : 's'} could not be read`),
      h('ul', {}, [...unreadable.map((row) => h('li', {}, row)), ...more]),
    );
  }

  #go(changes) {
    const next = { ...this.view, page: 1, ...changes };
    history.pushState(null, '', browseLink({ ...next, page: next.page === 1 ? null : next.page }));
    this.open({ ...next, page: String(next.page) });
  }

  async #load() {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    const { search, page } = this.view;
    const offset = (page - 1) * PAGE;
    try {
      const { total, graphs } = await get(
        `/models/${encodeURIComponent(this.model.name)}/graphs`,
        { offset, limit: PAGE, search },
        request,
      );
      if (request.signal.aborted) return;
      this.failure.hidden = true;
      this.list.replaceChildren(...graphs.map((graph) => this.#item(graph)));
      this.count.textContent = total
        ? `${formatInteger(offset + 1)}–${formatInteger(offset + graphs.length)} of ${formatInteger(total)}`
        : 'no matches';
      this.back.disabled = page <= 1;
      this.on.disabled = offset + graphs.length >= total;
    } catch (error) {
      if (error.name === 'AbortError') return;
      this.failure.textContent = error.message;
      this.failure.hidden = false;
      this.onError(error);
    }
  }

  #item(graph) {
    const { kind, classes, task } = this.model;
    const facts = [counted(kind, graph.nodes)];
    const label = labelWords({ task, classes, ...graph });
    if (label) facts.push(label);
    if (graph.split) facts.push(graph.split);
    const named = graph.smiles && graph.smiles !== graph.title;
    const input = { graph: graph.position };
    return h(
      'li',
      {},
      h(
        'a',
        { class: 'panel', href: askLink({ model: this.model.name, input }) },
        graph.picture ? thumbnail(graph.picture) : null,
        h('b', { class: kind === 'molecule' && !named ? 'mono' : null }, graph.title),
        named ? h('span', { class: 'mono muted' }, graph.smiles) : null,
        h('small', { class: 'muted' }, `${graph.position} · ${facts.join(' · ')}`),
      ),
    );
  }
}
