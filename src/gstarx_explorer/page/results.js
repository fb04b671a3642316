// The results: the prediction, a card for each explainer, and one slider for all.

import { byId, h, say } from './dom.js';
import { PAGE } from './colors.js';
import { BestCard, ExplainerCard } from './card.js';
import { OwnCard } from './own.js';
import { curves } from './curves.js';
import { legend } from './legend.js';
import { predictionHead } from './prediction.js';
import { downloads } from './download.js';
import { hideTooltip, showTooltip } from './tooltip.js';
import { metricsAt } from './metrics.js';
import { METRICS, counted, decimal, nodesOf, unitOf } from './words.js';

const OWN_LINE = 6;
/** Pictures larger than this get wider cards. */
const LARGE = 500;
/** Tolerance for rounding errors. */
const ROUNDING = 1e-9;

/** How many nodes are kept at a sparsity. */
export const sizeAt = (count, sparsity) => Math.floor((1 - sparsity) * count + ROUNDING);

/** Nodes without a name get one from their number: "node 7". */
const named = (subject) => {
  const nodes = subject.nodes.map((node) =>
    /^\d+$/.test(node.name) ? { ...node, name: `${nodesOf(subject.kind, 1)} ${node.name}` } : node,
  );
  const unit = unitOf(subject);
  const units =
    subject.players?.entries.map((player) =>
      /^\d+$/.test(player.name) ? { ...player, name: `${nodesOf(unit, 1)} ${player.name}` } : player,
    ) ?? nodes;
  return { ...subject, nodes, unit, units };
};

export class Results {
  /**
   * @param {object} options   `explainers`: [{key, name, title}]; `best`: whether it was requested; `keyOf(result)`;
   *   `score(nodes, signal)`; `onLook({sparsity, own})`; `sparsity` and `own` to begin with; `link()`
   */
  constructor(options) {
    Object.assign(this, {
      sparsity: options.sparsity ?? 0.7,
      options,
      subject: null,
      common: false, // methods differ in scale
      truth: false,
      metric: 'harmonic_fidelity',
    });
    this.cards = new Map();
    this.head = h('div', { class: 'head-box' });
    this.tools = h('div', { class: 'panel tools empty-tools' });
    this.grid = h('div', { class: 'cards', 'data-kind': options.kind });
    this.best = null;
    for (const explainer of options.explainers) this.#card(explainer);
    if (options.best)
      this.best = this.#placed(
        new BestCard({ title: 'Best found', color: 'var(--muted)', dashed: true, name: 'best' }),
      );
    this.own = this.#placed(
      new OwnCard({
        color: PAGE.line(OWN_LINE),
        score: options.score,
        point: (...where) => this.point(...where),
        compared: () => this.#compared(),
        onChange: () => {
          this.#plot();
          this.#look();
        },
      }),
    );
    this.plot = h('article', { class: 'panel card plot-card', 'aria-label': 'Curves' });
    this.grid.append(this.plot);
    byId('results').replaceChildren(this.head, this.tools, this.grid);
    byId('results').hidden = false;
    this.watch = new ResizeObserver(() => {
      for (const card of this.all()) card.fit();
    });
    this.watch.observe(this.grid);
  }

  close() {
    this.watch.disconnect();
    this.own.request?.abort();
    this.own.rate.cancel();
    hideTooltip();
  }

  all() {
    return [...this.cards.values(), ...(this.best ? [this.best] : []), this.own];
  }

  #card({ key, title, name }) {
    const card = new ExplainerCard({ title, color: PAGE.line(this.cards.size % OWN_LINE), name });
    card.line = this.cards.size % OWN_LINE;
    this.cards.set(key, card);
    const after = this.best?.element ?? this.own?.element ?? null;
    this.grid.insertBefore(card.element, after);
    return card;
  }

  #placed(card) {
    this.grid.append(card.element);
    return card;
  }

  /** Show which explainer is running. */
  working(name) {
    for (const card of this.all()) {
      if (card.picture || card.failed) continue;
      const works =
        card.element.dataset.card === name ||
        card.title === name ||
        (card === this.best && /\bbest\b/.test(name));
      if (card !== this.own)
        card.say(works ? 'working …' : 'waiting …', works ? 'working' : 'waiting');
    }
  }

  setSubject(subject) {
    if (this.subject) return;
    this.subject = named(subject);
    this.grid.dataset.kind = subject.kind;
    this.grid.dataset.players = subject.players?.kind ?? 'nodes';
    this.grid.classList.toggle('large', Math.max(subject.width, subject.height) > LARGE);
    document.title = `${subject.title} · GStarX explorer`;
    this.head.replaceChildren(predictionHead(this.subject, this.options.target));
    this.#setTools();
    this.own.begin(this.subject, this.size);
    if (this.options.own?.length) this.own.set(this.options.own, { quiet: true });
    this.show();
  }

  setResult(result) {
    const key = this.options.keyOf(result);
    const card =
      this.cards.get(key) ??
      this.#card({ key, title: result.title ?? result.explainer, name: result.explainer });
    if (card.picture) return;
    card.answer(this.subject, result, (...where) => this.point(...where));
    card.failed = Boolean(result.error);
    this.show();
    const figures = card.figures
      ? `H-fidelity ${decimal(card.figures.harmonic_fidelity)}`
      : (result.error ?? 'done');
    say(`${card.title}: ${figures}`);
  }

  setBest(best) {
    if (!this.best || this.best.picture) return;
    if (!best) {
      this.best.element.remove();
      this.best = null;
      return;
    }
    this.best.answer(this.subject, best, (...where) => this.point(...where));
    this.show();
  }

  /** The job has ended: say so on the cards without a result. */
  end(words) {
    for (const card of this.all()) {
      if (!card.picture && !card.failed) card.say(words, 'empty');
    }
  }

  get size() {
    const { units } = this.subject;
    const size = sizeAt(units.length, this.sparsity);
    // of few, one is left at the least: nothing has no metrics
    return this.sparsity < 1 ? Math.max(1, size) : size;
  }

  /** Paint everything at the current sparsity. */
  show() {
    if (!this.subject) return;
    const answered = [...this.cards.values()].filter((card) => card.picture);
    this.limit = Math.max(0, ...answered.map((card) => card.limit)) || 1;
    const common = { size: this.size, truth: this.truth };
    const axes = answered.map((card) => card.axis);
    const axis = {
      low: Math.min(0, ...axes.map(({ low }) => low)),
      high: Math.max(0, ...axes.map(({ high }) => high)),
    };
    for (const card of answered) {
      card.show({
        ...common,
        ...(this.common
          ? { limit: this.limit, axis }
          : { limit: card.limit || 1, axis: card.axis }),
      });
    }
    if (this.best?.picture) this.best.show(common);
    this.own.show(common);
    this.#words();
    this.legendBox.replaceChildren(
      legend(PAGE, this.common ? this.limit : null, this.subject.task),
    );
    this.#plot();
  }

  setSparsity(sparsity, { quiet = false } = {}) {
    // rounded down, so that a link restores the same number of nodes
    this.sparsity = Math.floor(sparsity * 1e4 + ROUNDING) / 1e4;
    this.slider.value = this.subject.units.length - this.size;
    this.show();
    if (!quiet) this.#look();
  }

  #look() {
    this.options.onLook({ sparsity: this.sparsity, own: [...this.own.nodes] });
  }

  /** Highlight a node in all cards. */
  point(node, element, card) {
    for (const other of this.all()) other.light(node);
    if (node === null) hideTooltip();
    else showTooltip(element, this.subject.units[node].name, card.describe(node));
  }

  #setTools() {
    const n = this.subject.units.length;
    this.slider = h('input', {
      type: 'range',
      id: 'sparsity',
      min: 0,
      max: n,
      step: 1,
      value: n - this.size,
    });
    this.slider.addEventListener('input', () => {
      this.setSparsity(Number(this.slider.value) / n);
      this.#sayFigures();
    });
    this.kept = h('output', { for: 'sparsity', class: 'kept' });
    this.legendBox = h('span', { class: 'legend-box' });
    const scale = h(
      'select',
      { id: 'scale', 'aria-label': 'Scale of colors' },
      h('option', { value: 'own' }, 'own scales'),
      h('option', { value: 'common' }, 'one scale'),
    );
    scale.addEventListener('change', () => {
      this.common = scale.value === 'common';
      this.show();
    });
    const truth = h('input', { type: 'checkbox', id: 'truth' });
    truth.addEventListener('change', () => {
      this.truth = truth.checked;
      this.show();
    });
    this.tools.replaceChildren(
      h(
        'div',
        { class: 'sparsity' },
        h('label', { for: 'sparsity' }, 'Sparsity'),
        this.slider,
        this.kept,
      ),
      h(
        'div',
        { class: 'rest' },
        h('div', { class: 'scale' }, this.legendBox, scale),
        this.subject.truth?.some(Boolean) && !this.subject.players
          ? h(
              'label',
              { class: 'check' },
              truth,
              h('span', {}, 'mark the true ', nodesOf(this.subject.kind, 2)),
            )
          : null,
        downloads(this),
      ),
    );
    this.tools.classList.remove('empty-tools');
  }

  #words() {
    const n = this.subject.units.length;
    const words = `keeps ${this.size} of ${counted(this.subject.unit, n)}`;
    this.kept.textContent = words;
    this.slider.setAttribute(
      'aria-valuetext',
      `${words}, sparsity ${decimal((n - this.size) / n, 2)}`,
    );
  }

  #sayFigures() {
    const figures = [...this.cards.values()]
      .filter((card) => card.figures)
      .map((card) => `${card.title} ${decimal(card.figures.harmonic_fidelity)}`);
    say(`H-fidelity: ${figures.join(', ')}`);
  }

  #compared() {
    const made = (card, selections, metrics) => ({
      title: card.title,
      selection: (size) => selections[size],
      figures: (size) => metricsAt(metrics, size),
    });
    return [
      ...[...this.cards.values()]
        .filter((card) => card.picture)
        .map((card) => made(card, card.result.selections, card.result.metrics)),
      ...(this.best?.picture
        ? [made(this.best, this.best.best.selections, this.best.best.metrics)]
        : []),
    ];
  }

  /** The lines of the plot. */
  lines(palette) {
    const n = this.subject.units.length;
    const points = (metrics) => (metrics[this.metric] ?? []).map((y, k) => [(n - k) / n, y]);
    return [
      ...[...this.cards.values()]
        .filter((card) => card.picture)
        .map((card) => ({
          name: card.title,
          color: palette.line(card.line),
          points: points(card.result.metrics),
        })),
      ...(this.best?.picture
        ? [
            {
              name: 'best found',
              color: palette.muted,
              dashed: true,
              points: points(this.best.best.metrics),
            },
          ]
        : []),
    ];
  }

  #plot() {
    if (!this.subject || !this.limit) return;
    const n = this.subject.units.length;
    const { figures, nodes } = this.own;
    const own = figures
      ? { x: (n - nodes.size) / n, y: figures[this.metric], name: 'yours' }
      : null;
    const { title } = METRICS[this.metric];
    const drawn = curves({
      lines: this.lines(PAGE),
      own,
      cursor: (n - this.size) / n,
      palette: PAGE,
      name: title,
      label: `${title} against sparsity`,
      unit: nodesOf(this.subject.unit, 2),
    });
    drawn.addEventListener('click', (event) => {
      const box = drawn.getBoundingClientRect();
      const wanted = drawn.sparsityAt((event.clientX - box.left) / box.width);
      this.setSparsity(Math.round(wanted * n) / n);
    });
    if (!this.metricChoice) {
      this.metricChoice = h(
        'select',
        { 'aria-label': 'Metric of the curves' },
        Object.entries(METRICS).map(([name, metric]) => h('option', { value: name }, metric.title)),
      );
      this.metricChoice.addEventListener('change', () => {
        this.metric = this.metricChoice.value;
        this.#plot();
      });
      this.plotBox = h('div', { class: 'plot-box' });
      this.key = h('ul', { class: 'key' });
      this.plot.replaceChildren(
        h('header', {}, this.metricChoice, h('span', { class: 'muted' }, 'against sparsity')),
        this.plotBox,
        this.key,
      );
    }
    this.plot.hidden = Boolean(this.subject.remark); // nothing was evaluated
    this.plotBox.replaceChildren(drawn);
    this.key.replaceChildren(
      ...this.lines(PAGE).map(({ name, color, dashed }) => {
        const swatch = h('span', {
          class: dashed ? 'swatch dashed' : 'swatch',
          'aria-hidden': 'true',
        });
        swatch.style.setProperty('--swatch', color);
        return h('li', {}, swatch, name);
      }),
      ...(own
        ? [h('li', {}, h('span', { class: 'diamond', 'aria-hidden': 'true' }, '◆'), 'yours')]
        : []),
    );
  }
}
