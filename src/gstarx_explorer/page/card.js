// A card: the picture and the metrics of one explainer, or of the best selection.

import { h } from './dom.js';
import { PAGE } from './colors.js';
import { pictureOf } from './players.js';
import { barList } from './bars.js';
import { groupList } from './groups.js';
import { ranksOf, tieAtTheCut, tieWords, unsureOf } from './ranks.js';
import { metricsAt, metricsList } from './metrics.js';
import { term } from './tooltip.js';
import { about, counted, evaluated, nodesOf, seconds, signed } from './words.js';

const EXACT = 'Exact, not estimated: the scores do not depend on the seed.';
const SAMPLED = 'Estimated from samples: whiskers and ± show one standard error.';

/** What all cards have: a heading, a picture, metrics, and a place for text. */
export class Card {
  constructor({ title, color, dashed = false, name }) {
    this.title = title;
    this.color = color;
    this.heading = h('h3', {}, title);
    this.badge = h('span', { class: 'badges' });
    this.paper = h('div', { class: 'paper waiting' }, h('p', { class: 'muted' }, 'waiting …'));
    this.metrics = metricsList();
    this.body = h('div', { class: 'card-body' });
    this.foot = h('p', { class: 'foot muted' });
    const swatch = h('span', { class: dashed ? 'swatch dashed' : 'swatch', 'aria-hidden': 'true' });
    swatch.style.setProperty('--swatch', color);
    this.element = h(
      'article',
      { class: 'panel card', 'aria-label': title, 'data-card': name, 'aria-busy': 'true' },
      h('header', {}, swatch, this.heading, this.badge),
      this.paper,
      this.metrics.element,
      this.body,
      this.foot,
    );
  }

  /** A text in place of the picture. */
  say(text, state = 'waiting') {
    this.paper.className = `paper ${state}`;
    this.paper.replaceChildren(h('p', { class: state === 'failed' ? 'error' : 'muted' }, text));
    this.element.setAttribute('aria-busy', state === 'working' || state === 'waiting');
  }

  draw(subject, options) {
    this.picture = pictureOf(subject, PAGE, { width: widthOf(this.paper), ...options });
    const kind = subject.players?.kind === 'features' ? 'sentence features' : subject.kind;
    this.paper.className = `paper ${kind}`;
    this.paper.replaceChildren(this.picture.element);
    this.element.setAttribute('aria-busy', 'false');
  }

  /** After a change of the window: break the lines of a sentence again. */
  fit() {
    const { kind, players } = this.picture?.subject ?? {};
    if (kind === 'sentence' || players?.kind === 'features') this.picture.fit(widthOf(this.paper));
  }

  light(node) {
    this.picture?.light(node);
    this.bars?.light(node);
  }

  fail(text) {
    this.say(text, 'failed');
    this.metrics.show(null);
  }
}

const widthOf = (paper) => Math.max(200, Math.round(paper.clientWidth) - 24);

export class ExplainerCard extends Card {
  /** Show the result of the explainer; calls `point(node, element, card)` when a node is pointed at. */
  answer(subject, result, point) {
    this.subject = subject;
    this.result = result;
    this.heading.textContent = result.title ?? this.title;
    this.foot.textContent = this.#cost();
    if (result.error) {
      this.fail(result.error);
      return;
    }
    const { scores } = result;
    this.ranks = scores && ranksOf(scores);
    this.unsure = unsureOf(result);
    this.badge.replaceChildren(...this.#badges());
    this.draw(subject, {
      label: `${this.title}: ${subject.title}`,
      say: (node) => [subject.units[node].name, ...this.describe(node)].join(', '),
      onPoint: (node, element) => point(node, element, this),
    });
    this.body.replaceChildren();
    this.bars = null;
    if (scores) {
      this.bars = barList(subject, result, (node, element) => point(node, element, this));
      this.note = h('p', { class: 'muted note' });
      const groups = subject.players ? [] : groupList(subject, scores);
      this.body.append(this.bars.element, ...groups, this.note);
    } else {
      this.note = h('p', { class: 'muted note' });
      this.body.append(
        h('p', { class: 'muted' }, 'This method selects sets of nodes and does not score them.'),
      );
    }
  }

  /** At `size` nodes kept. */
  show({ size, limit, axis, truth }) {
    if (!this.picture) return;
    const { selections, metrics, scores } = this.result;
    this.selected = new Set(selections[size] ?? []);
    const { unsure } = this;
    this.tie = this.ranks ? tieAtTheCut(this.ranks, this.selected) : null;
    this.tied = new Set(this.tie?.nodes);
    this.picture.paint({ scores, limit, selected: this.selected, unsure, tied: this.tied, truth });
    this.figures = metricsAt(metrics, size);
    this.metrics.show(this.figures);
    this.bars?.show(axis, this.selected);
    this.note.textContent = this.#notes().join(' ');
    this.foot.textContent = [this.#cost(), scores ? `colors up to ±${signed(limit).slice(1)}` : '']
      .filter(Boolean)
      .join(' · ');
  }

  /** What a reader should know about the scores: what the server noted, those that may be 0, a tie at the cut. */
  #notes() {
    const notes = [...this.result.notes];
    const kind = this.subject.unit;
    if (this.unsure.size)
      notes.push(
        `The scores of ${counted(kind, this.unsure.size)} may be 0 (hatched): 1.96 standard errors reach it.`,
      );
    if (this.tie) {
      const { kept, nodes } = this.tie;
      notes.push(
        `A tie at the cut (dashed): ${kept} of ${counted(kind, nodes.length)} with the same score ${kept === 1 ? 'is' : 'are'} kept.`,
      );
    }
    return notes;
  }

  /** A description of a node. */
  describe(node) {
    const { scores, std_errors: errors } = this.result;
    const kept = this.selected?.has(node) ? 'kept' : 'left out';
    if (!scores) return [kept];
    const error = errors?.[node] ? ` ± ${about(errors[node])}` : '';
    return [
      `score ${signed(scores[node])}${error}${this.unsure.has(node) ? ', may be 0' : ''}`,
      `rank ${this.ranks[node].rank} of ${scores.length}${tieWords(this.ranks[node])}`,
      kept,
    ];
  }

  /** The score at which colors end, which the server knows; 0 without any score. */
  get limit() {
    return this.result?.scores?.some(Boolean) ? this.result.limit : 0;
  }

  /** The ends of an axis that has all scores and 0. */
  get axis() {
    const { scores, std_errors: errors } = this.result;
    const reach = (scores ?? []).flatMap((score, i) => [
      score - (errors?.[i] ?? 0),
      score + (errors?.[i] ?? 0),
    ]);
    return { low: Math.min(0, ...reach), high: Math.max(0, ...reach) };
  }

  #badges() {
    const { exact, estimator } = this.result.explanation ?? {};
    if (exact === null || exact === undefined) return [];
    const how = estimator ? ` (${estimator})` : '';
    return [term(exact ? 'exact' : 'sampled', (exact ? EXACT : SAMPLED) + how)];
  }

  #cost() {
    const { seconds: time } = this.result;
    const evaluations = this.result.explanation?.evaluations;
    const parts = [];
    if (evaluations !== null && evaluations !== undefined)
      parts.push(evaluated(evaluations));
    if (time !== null && time !== undefined) parts.push(seconds(time));
    return parts.join(' · ');
  }
}

/** The oracle: a search that optimizes the metric itself. */
export class BestCard extends Card {
  answer(subject, best, point) {
    this.subject = subject;
    this.best = best;
    this.draw(subject, {
      label: `Best found: ${subject.title}`,
      say: (node) => [subject.units[node].name, ...this.describe(node)].join(', '),
      onPoint: (node, element) => point(node, element, this),
    });
    this.foot.textContent = evaluated(best.evaluations);
  }

  show({ size, truth }) {
    if (!this.best) return;
    const selection = this.best.selections[size];
    this.selected = new Set(selection ?? []);
    this.picture.paint({ scores: null, limit: 1, selected: this.selected, truth });
    this.figures = selection ? metricsAt(this.best.metrics, size) : null;
    this.metrics.show(this.figures);
    this.badge.replaceChildren(
      ...(selection
        ? [
            this.best.optimal[size]
              ? term(
                  'optimal',
                  `Every selection of at most this many ${nodesOf(this.subject.unit, 2)} was tried: none scores higher.`,
                )
              : term('best found', 'The best selection that the search found. There may be a better one.'),
          ]
        : []),
    );
    this.body.replaceChildren(h('p', { class: 'muted' }, this.#note(selection)));
  }

  describe(node) {
    return [this.selected?.has(node) ? 'kept' : 'left out'];
  }

  #note(selection) {
    if (!selection)
      return `Not searched for at this size. Keep fewer ${nodesOf(this.subject.unit, 2)}.`;
    const used = counted(this.subject.unit, selection.length);
    return `A reference, not an explanation: the search optimizes the metric itself. It uses ${used}.`;
  }
}
