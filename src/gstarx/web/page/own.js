// Your own selection: click nodes, and see what it is worth beside the explainers.

import { debounced, h, say } from './dom.js';
import { Card } from './card.js';
import { counted, decimal, nodesOf } from './words.js';

export class OwnCard extends Card {
  /**
   * @param {object} options   `score(nodes, signal)` -> metrics, `onChange(nodes)`, `point`,
   *   `rivals()` -> [{title, color, selection(size), figures(size)}]
   */
  constructor({ score, onChange, point, rivals, color }) {
    super({ title: 'Your selection', color, name: 'own' });
    Object.assign(this, { score, onChange, point, rivals });
    this.nodes = new Set();
    this.from = h('select', { 'aria-label': 'Take over the selection of' });
    this.from.addEventListener('change', () => this.#take());
    this.clear = h(
      'button',
      { type: 'button', class: 'small', onclick: () => this.set([]) },
      'Clear',
    );
    this.table = h('table', { class: 'rivals' });
    this.error = h('p', { class: 'error', role: 'alert', hidden: true });
    this.body.append(h('div', { class: 'row' }, this.from, this.clear), this.error, this.table);
    this.rate = debounced(150, () => this.#rate());
    this.say('waiting for the picture …');
  }

  begin(subject, size) {
    this.subject = subject;
    this.size = size;
    this.draw(subject, {
      label: `Your selection: ${subject.title}. Enter or space selects, escape goes back.`,
      say: (node) => subject.nodes[node].name,
      onPoint: (node, element) => this.point(node, element, this),
      onToggle: (node) => this.toggle(node),
      onRestore: () => this.#restore(),
    });
    // escape goes back to what it was when the picture got the focus
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

  /** Another selection; nodes that the graph does not have are left out. */
  set(nodes, { quiet = false } = {}) {
    const known = this.subject.nodes.length;
    const next = new Set([...nodes].filter((node) => node < known));
    const same = next.size === this.nodes.size && [...next].every((node) => this.nodes.has(node));
    if (same && !quiet) return;
    this.nodes = next;
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

  told(node) {
    return [this.nodes.has(node) ? 'selected: click to leave out' : 'click to select'];
  }

  #take() {
    const rival = this.rivals()[Number(this.from.value)];
    this.from.value = '';
    const found = rival?.selection(this.size);
    if (found) this.set(found);
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
    this.asked?.abort();
    this.error.hidden = true;
    if (!this.nodes.size) {
      this.figures = null;
      this.#paint();
      this.onChange([], { rated: true });
      return;
    }
    const asked = new AbortController();
    this.asked = asked;
    try {
      const found = await this.score(
        [...this.nodes].sort((a, b) => a - b),
        asked.signal,
      );
      if (asked.signal.aborted) return;
      this.figures = found;
      this.#paint();
      this.onChange([...this.nodes], { rated: true });
      say(
        `Your selection of ${counted(this.subject.kind, this.nodes.size)}: H-fidelity ${decimal(found.harmonic_fidelity)}`,
      );
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
    const kind = this.subject.kind;
    this.foot.textContent = this.nodes.size
      ? `${counted(kind, this.nodes.size)} of ${this.subject.nodes.length} selected`
      : `Click ${nodesOf(kind, 2)} to select them.`;
    this.compare();
  }

  /** The others at the size of this selection, best first. */
  compare() {
    const rivals = this.rivals();
    this.from.replaceChildren(
      h('option', { value: '' }, 'Take over from …'),
      ...rivals.map((rival, i) => h('option', { value: i }, rival.title)),
    );
    this.from.disabled = !rivals.length;
    const size = this.nodes.size;
    const rows = !size
      ? []
      : [
          { title: 'yours', own: true, value: this.figures?.harmonic_fidelity ?? null },
          ...rivals.map((rival) => ({
            ...rival,
            value: rival.figures(size)?.harmonic_fidelity ?? null,
          })),
        ].sort((a, b) => (b.value ?? -1) - (a.value ?? -1));
    this.table.replaceChildren(
      ...(rows.length
        ? [h('caption', {}, `H-fidelity with ${counted(this.subject.kind, size)}`)]
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
