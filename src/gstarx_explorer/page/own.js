// Your own selection: click nodes, and compare its metrics with those of the explainers.

import { debounced, h, say } from './dom.js';
import { Card } from './card.js';
import { counted, decimal, nodesOf } from './words.js';

export class OwnCard extends Card {
  /**
   * @param {object} options   `score(nodes, signal)` -> metrics, `onChange(nodes)`, `point`,
   *   `compared()` -> [{title, color, selection(size), figures(size)}]
   */
  constructor({ score, onChange, point, compared, color }) {
    super({ title: 'Your selection', color, name: 'own' });
    Object.assign(this, { score, onChange, point, compared });
    this.nodes = new Set();
    this.from = h('select', { 'aria-label': 'Copy the selection of' });
    this.from.addEventListener('change', () => this.#take());
    this.clear = h(
      'button',
      { type: 'button', class: 'small', onclick: () => this.set([]) },
      'Clear',
    );
    this.table = h('table', { class: 'compared' });
    this.error = h('p', { class: 'error', role: 'alert', hidden: true });
    this.body.append(h('div', { class: 'row' }, this.from, this.clear), this.error, this.table);
    this.rate = debounced(150, () => this.#rate());
    this.say('waiting for the picture …');
  }

  begin(subject, size) {
    this.subject = subject;
    this.size = size;
    this.draw(subject, {
      label: `Your selection: ${subject.title}. Enter or Space selects, Escape reverts.`,
      say: (node) => subject.units[node].name,
      onPoint: (node, element) => this.point(node, element, this),
      onToggle: (node) => this.toggle(node),
      onRestore: () => this.#restore(),
    });
    // Escape reverts to the selection at the time the picture got the focus
    this.paper.addEventListener('focusin', (event) => {
      if (!this.paper.contains(event.relatedTarget)) this.before = new Set(this.nodes);
    });
    this.#paint();
  }

  toggle(node) {
    const next = new Set(this.nodes);
    if (!next.delete(node)) next.add(node);
    this.set(next);
  }

  /** Set the selection; nodes that the graph does not have are ignored. */
  set(nodes, { quiet = false } = {}) {
    const known = this.subject.units.length;
    const next = new Set([...nodes].filter((node) => node < known));
    const same = next.size === this.nodes.size && [...next].every((node) => this.nodes.has(node));
    if (same && !quiet) return;
    this.nodes = next;
    // metrics that are on their way belong to the selection before
    this.request?.abort();
    this.figures = null;
    this.#paint();
    if (!quiet) this.onChange([...this.nodes]);
    this.rate();
  }

  show({ truth, size }) {
    this.truth = truth;
    this.size = size;
    if (this.picture) this.#paint();
  }

  describe(node) {
    return [this.nodes.has(node) ? 'selected: click to remove' : 'click to select'];
  }

  #take() {
    const other = this.compared()[Number(this.from.value)];
    this.from.value = '';
    const selection = other?.selection(this.size);
    if (selection) this.set(selection);
  }

  #restore() {
    if (
      !this.before ||
      (this.before.size === this.nodes.size &&
        [...this.before].every((node) => this.nodes.has(node)))
    )
      return false;
    this.set(this.before);
    return true;
  }

  async #rate() {
    this.request?.abort();
    this.error.hidden = true;
    if (!this.nodes.size) {
      this.figures = null;
      this.#paint();
      this.onChange([], { rated: true });
      return;
    }
    const request = new AbortController();
    this.request = request;
    try {
      const figures = await this.score(
        [...this.nodes].sort((a, b) => a - b),
        request.signal,
      );
      if (request.signal.aborted) return;
      this.figures = figures;
      this.#paint();
      this.onChange([...this.nodes], { rated: true });
      const words = `Your selection of ${counted(this.subject.unit, this.nodes.size)}`;
      const known = figures.harmonic_fidelity !== null;
      say(known ? `${words}: H-fidelity ${decimal(figures.harmonic_fidelity)}` : words);
    } catch (error) {
      if (error.name === 'AbortError') return;
      this.error.textContent = error.message;
      this.error.hidden = false;
    }
  }

  #paint() {
    this.picture.paint({
      scores: null,
      limit: 1,
      selected: this.nodes,
      truth: this.truth ?? false,
    });
    this.metrics.show(this.figures);
    this.clear.disabled = !this.nodes.size;
    const kind = this.subject.unit;
    this.foot.textContent = this.nodes.size
      ? `${counted(kind, this.nodes.size)} of ${this.subject.units.length} selected`
      : `Click ${nodesOf(kind, 2)} to select them.`;
    this.compare();
  }

  /** The explainers at the size of this selection, best first. */
  compare() {
    const compared = this.compared();
    this.from.replaceChildren(
      h('option', { value: '' }, 'Copy from …'),
      ...compared.map((other, i) => h('option', { value: i }, other.title)),
    );
    this.from.disabled = !compared.length;
    const size = this.nodes.size;
    const rows = !size
      ? []
      : [
          { title: 'yours', own: true, value: this.figures?.harmonic_fidelity ?? null },
          ...compared.map((other) => ({
            ...other,
            value: other.figures(size)?.harmonic_fidelity ?? null,
          })),
        ].sort((a, b) => (b.value ?? -1) - (a.value ?? -1));
    this.table.replaceChildren(
      ...(rows.length
        ? [h('caption', {}, `H-fidelity with ${counted(this.subject.unit, size)}`)]
        : []),
      h(
        'tbody',
        {},
        rows.map(({ title, own, value }) =>
          h(
            'tr',
            { class: own ? 'own' : null },
            h('th', { scope: 'row' }, title),
            h('td', {}, decimal(value)),
          ),
        ),
      ),
    );
  }
}
