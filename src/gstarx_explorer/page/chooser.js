// The graphs of a model's dataset, searched by name or number, a page at a time.

import { byId, debounced, h } from './dom.js';
import { get } from './api.js';
import { thumbnail } from './thumbnail.js';
import { counted, formatInteger, labelWords } from './words.js';

const PAGE = 8;

export class Chooser {
  /** @param {(position: number) => void} onChoose */
  constructor(onChoose, onError) {
    Object.assign(this, { onChoose, onError, offset: 0, chosen: null, model: null });
    const search = debounced(200, () => this.#load(0));
    byId('search').addEventListener('input', search);
    byId('graphs-back').addEventListener('click', () =>
      this.#load(Math.max(0, this.offset - PAGE)),
    );
    byId('graphs-on').addEventListener('click', () => this.#load(this.offset + PAGE));
  }

  /** Graphs of this model, with one of them chosen. */
  show(model, chosen = null) {
    const same = this.model === model;
    this.model = model;
    if (chosen !== null) this.chosen = chosen;
    else if (!same) this.chosen = null;
    if (!same) byId('search').value = '';
    if (same && this.loaded) this.#mark();
    else
      this.#load(
        byId('search').value || this.chosen === null ? 0 : Math.floor(this.chosen / PAGE) * PAGE,
      );
  }

  async #load(offset) {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    const { model } = this;
    try {
      const content = await get(
        `/models/${encodeURIComponent(model.name)}/graphs`,
        { offset, limit: PAGE, search: byId('search').value.trim() },
        request,
      );
      if (request.signal.aborted) return;
      this.offset = offset;
      this.loaded = true;
      this.#list(content);
    } catch (error) {
      if (error.name !== 'AbortError') this.onError(error);
    }
  }

  #list({ total, graphs }) {
    byId('graph-list').replaceChildren(
      ...graphs.map((graph) => {
        const radio = h('input', { type: 'radio', name: 'graph', value: graph.position });
        radio.addEventListener('change', () => {
          this.chosen = graph.position;
          this.onChoose(graph.position);
        });
        const facts = [counted(this.model.kind, graph.nodes)];
        const label = labelWords({ ...this.model, ...graph });
        if (label) facts.push(label);
        if (graph.split) facts.push(graph.split);
        return h(
          'label',
          {},
          radio,
          graph.picture ? thumbnail(graph.picture) : null,
          h('span', { class: 'number' }, graph.position),
          h(
            'span',
            { class: 'graph-name' },
            h('b', { class: graph.smiles === graph.title ? 'mono' : null }, graph.title),
            h('small', {}, facts.join(' · ')),
          ),
        );
      }),
    );
    this.#mark();
    byId('graphs-count').textContent = total
      ? `${formatInteger(this.offset + 1)}–${formatInteger(this.offset + graphs.length)} of ${formatInteger(total)}`
      : 'no matches';
    byId('graphs-back').disabled = this.offset === 0;
    byId('graphs-on').disabled = this.offset + graphs.length >= total;
  }

  #mark() {
    for (const radio of byId('graph-list').querySelectorAll('input'))
      radio.checked = Number(radio.value) === this.chosen;
  }
}
