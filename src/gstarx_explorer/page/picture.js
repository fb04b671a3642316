// A drawing of one graph: scores as colors, the selection outlined, every node interactive.

import { svg } from './dom.js';
import { FONT, WORDS, placed } from './layout.js';

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const BRIDGE = 15;
/** The dashed outline of a node with the score at the cut, as in gstarx.drawing. */
export const TIE = '3.5 2.5';
/** Valid paths and colors; anything else is not drawn. */
const PATH = /^\s*[Mm][\sMmLlHhVvCcSsQqTtAaZz\d.,eE+-]*$/;
const COLOR = /^#[\da-f]{3,8}$/i;

/**
 * @typedef {object} Look
 * @property {number[]|null} scores
 * @property {number} limit      the score at which colors end
 * @property {Set<number>} selected
 * @property {Set<number>|null} unsure   nodes whose scores may be 0: they are hatched
 * @property {Set<number>} [tied]   nodes with the score at the cut, of which some are kept: they are dashed
 * @property {boolean} truth     whether to mark the true nodes
 */

export class Picture {
  /**
   * @param {object} subject
   * @param {object} palette   PAGE or PAPER of colors.js
   * @param {object} options   `label`; `width` of a sentence; for interactive pictures: `say(node)` -> text of a
   *   node, `onPoint(node|null, element)`, `onToggle(node)`, `onRestore()`
   */
  constructor(
    subject,
    palette,
    { label, width = 480, say = null, onPoint = null, onToggle = null, onRestore = null },
  ) {
    Object.assign(this, { subject, palette, say, onPoint, onToggle, onRestore });
    this.interactive = onPoint !== null;
    this.current = 0;
    this.look = { scores: null, limit: 1, selected: new Set(), truth: false };
    this.element = svg('svg', {
      xmlns: 'http://www.w3.org/2000/svg',
      role: this.interactive ? 'group' : 'img',
      'aria-label': label,
      class: 'graph',
    });
    if (this.interactive) this.element.addEventListener('keydown', (event) => this.#key(event));
    this.fit(width);
  }

  /** Lay out for a width, which matters only for sentences. */
  fit(width) {
    if (this.width === width) return;
    this.width = width;
    this.place = this.layout(width);
    const { x, y, height } = this.place;
    this.element.setAttribute(
      'viewBox',
      [x, y, this.place.width, height].map((v) => +v.toFixed(2)).join(' '),
    );
    this.build();
    this.paint(this.look);
  }

  layout(width) {
    return placed(this.subject, width);
  }

  build() {
    const { arcs, nodes } = this.place;
    this.rims = svg('g');
    this.arcs = arcs.map(({ d }) => svg('path', { d, fill: 'none', 'stroke-linecap': 'round' }));
    this.nodes = nodes.map((node, i) => this.#node(node, i));
    this.element.replaceChildren(
      this.rims,
      svg('g', { class: 'edges' }, this.arcs),
      svg('g', {}, this.nodes),
      svg('g', { 'pointer-events': 'none' }, this.shapes()),
    );
  }

  /** Lines and letters of a molecule, or the lines of a graph. */
  shapes() {
    // the arcs of a sentence depend on its line breaks, so they are drawn here
    const shapes =
      this.subject.kind === 'sentence'
        ? []
        : (this.subject.shapes ?? []).filter(({ d }) => PATH.test(d));
    return shapes.map(({ d, fill, stroke, width }) =>
      svg('path', {
        d,
        fill: this.#inked(fill),
        stroke: this.#inked(stroke),
        'stroke-width': stroke ? width : null,
        'stroke-linecap': 'round',
        'stroke-linejoin': 'round',
      }),
    );
  }

  #inked(color) {
    if (!color) return 'none';
    return COLOR.test(color) && !/^#0{3,8}$/.test(color) ? color : this.palette.ink;
  }

  #node(node, i) {
    const body = this.outline(node, 0);
    const parts = [this.outline(node, 4), body];
    parts[0].setAttribute('class', 'ring');
    parts[0].setAttribute('fill', 'none');
    const mark = this.outline(node, 7);
    mark.setAttribute('class', 'truth');
    mark.setAttribute('fill', 'none');
    mark.setAttribute('stroke-width', 2);
    mark.setAttribute('stroke-dasharray', '2 4');
    mark.setAttribute('stroke-linecap', 'round');
    mark.setAttribute('pointer-events', 'none');
    const doubt = this.hatching(node);
    const tie = this.outline(node, 2.5);
    const dashed = { class: 'tie', fill: 'none', 'stroke-width': 2.2, 'stroke-dasharray': TIE };
    for (const [name, value] of Object.entries({ ...dashed, 'pointer-events': 'none' }))
      tie.setAttribute(name, value);
    parts.push(doubt, tie);
    if (this.subject.text) parts.push(this.label(node));
    parts.push(mark);
    const group = svg('g', { class: 'node', 'data-node': i }, parts);
    Object.assign(group, { body, mark, doubt, tie });
    this.enliven(group, i);
    return group;
  }

  /** Let a node, or another player, be pointed at, focused and clicked. */
  enliven(group, i) {
    if (!this.interactive) return;
    group.setAttribute('tabindex', i === this.current ? 0 : -1);
    group.setAttribute('role', this.onToggle ? 'checkbox' : 'img');
    group.addEventListener('pointerenter', () => this.onPoint(i, group));
    group.addEventListener('pointerleave', () => this.onPoint(null, group));
    group.addEventListener('focus', () => {
      this.#roam(i);
      this.onPoint(i, group);
    });
    group.addEventListener('blur', () => this.onPoint(null, group));
    group.addEventListener('click', () => {
      this.#roam(i);
      if (this.onToggle) this.onToggle(i);
      this.onPoint(i, group);
    });
  }

  outline({ x, y, r, w, h }, grown) {
    return w
      ? svg('rect', {
          x: x - w / 2 - grown,
          y: y - h / 2 - grown,
          width: w + 2 * grown,
          height: h + 2 * grown,
          rx: 5 + grown,
        })
      : svg('circle', { cx: x, cy: y, r: r + grown });
  }

  /** Slanted lines across a node whose score may be 0. */
  hatching({ x, y, r, w, h }) {
    const lines = [];
    const [reach, step] = w ? [w + h, 8] : [2 * r, 5];
    for (let at = step; at < reach; at += step) {
      if (w) {
        const [down, across] = [Math.min(at, h), Math.min(at, w)];
        lines.push([at - down - w / 2, down - h / 2, across - w / 2, at - across - h / 2]);
      } else {
        const shift = (at - r) / Math.SQRT2;
        const half = Math.sqrt((r * r - (at - r) ** 2) / 2);
        lines.push([shift - half, shift + half, shift + half, shift - half]);
      }
    }
    const path = lines.map(([a, b, c, d]) => `M${x + a} ${y + b}L${x + c} ${y + d}`).join('');
    return svg('path', { class: 'doubt', d: path, 'stroke-width': 0.9, 'pointer-events': 'none' });
  }

  label({ label, x, y, r, w }) {
    const size = w ? WORDS : Math.min(13, r * 1.05);
    // labels that do not fit into the circle appear only in the tooltip
    const shown = w || (r >= 8 && 0.62 * size * label.length <= 2 * r) ? label : '';
    return svg(
      'text',
      {
        x,
        y: y + size * 0.35,
        'font-size': size,
        'font-family': FONT,
        'text-anchor': 'middle',
        fill: this.palette.ink,
        'pointer-events': 'none',
      },
      shown,
    );
  }

  /** Colors and outlines. @param {Look} look */
  paint(look) {
    this.look = look;
    const { ink, rim, paper, chosen, edge, truth } = this.palette;
    const { scores, limit, selected, unsure, tied } = look;
    const outlined = !this.subject.text;
    const clear = new Set([...selected].filter((i) => !tied?.has(i)));
    this.rims.replaceChildren(...(outlined ? this.#rim(clear) : []));
    this.nodes.forEach((group, i) => {
      const inside = clear.has(i);
      const { body, mark } = group;
      const plain = inside ? chosen : paper;
      body.setAttribute('fill', scores ? this.palette.score(scores[i], limit) : plain);
      const stroke = outlined ? (scores ? 'none' : edge) : inside ? ink : rim;
      body.setAttribute('stroke', outlined && inside ? 'none' : stroke);
      body.setAttribute('stroke-width', inside ? 2.2 : 0.8);
      group.doubt.setAttribute('stroke', unsure?.has(i) ? rim : 'none');
      group.tie.setAttribute('stroke', tied?.has(i) ? ink : 'none');
      const marked = look.truth && this.subject.truth?.[i];
      mark.setAttribute('stroke', marked ? truth : 'none');
      this.describe(group, i, selected.has(i));
    });
    this.arcs.forEach((line, i) => {
      const heavy = this.place.arcs[i].ends.every((end) => selected.has(end));
      line.setAttribute('stroke', heavy ? ink : edge);
      line.setAttribute('stroke-width', heavy ? 2.2 : 1.2);
    });
  }

  /** A node, or another player, in words. */
  describe(group, i, inside) {
    if (!this.interactive) return;
    group.setAttribute('aria-label', this.say(i));
    if (this.onToggle) group.setAttribute('aria-checked', inside);
  }

  /** One outline around connected selected atoms: dark disks and bars with lighter ones on top. */
  #rim(selected) {
    const { nodes } = this.place;
    const bars = this.subject.edges.filter(([a, b]) => selected.has(a) && selected.has(b));
    return [
      [this.palette.ink, 3.6],
      [this.palette.paper, 1.4],
    ].flatMap(([color, grown]) => [
      ...bars.map(([a, b]) =>
        svg('line', {
          x1: nodes[a].x,
          y1: nodes[a].y,
          x2: nodes[b].x,
          y2: nodes[b].y,
          stroke: color,
          'stroke-width': BRIDGE + 2 * grown,
        }),
      ),
      ...[...selected].map((i) =>
        svg('circle', { cx: nodes[i].x, cy: nodes[i].y, r: nodes[i].r + grown, fill: color }),
      ),
    ]);
  }

  /** Highlight one node, or none. */
  light(node) {
    if (this.lit !== undefined && this.lit !== null) this.nodes[this.lit]?.classList.remove('lit');
    this.lit = node;
    if (node !== null) this.nodes[node]?.classList.add('lit');
  }

  #roam(node) {
    this.nodes[this.current].setAttribute('tabindex', -1);
    this.current = node;
    this.nodes[node].setAttribute('tabindex', 0);
  }

  #key(event) {
    const last = this.nodes.length - 1;
    const next =
      event.key === 'Home'
        ? 0
        : event.key === 'End'
          ? last
          : event.key in ARROWS
            ? this.#towards(event.key)
            : null;
    if (next !== null) {
      this.#roam(next);
      this.nodes[next].focus();
    } else if ((event.key === 'Enter' || event.key === ' ') && this.onToggle) {
      this.onToggle(this.current);
    } else if (event.key === 'Escape' && this.onRestore?.()) {
      event.stopPropagation();
      return;
    } else {
      return;
    }
    event.preventDefault();
  }

  /** Where nodes, or other players, are. */
  centers() {
    return this.place.nodes;
  }

  /** The nearest node in a direction; along a sentence, the next word. */
  #towards(key) {
    const [dx, dy] = ARROWS[key];
    const nodes = this.centers();
    const here = nodes[this.current];
    if (here.w && dx) return Math.min(Math.max(this.current + dx, 0), nodes.length - 1);
    let [best, cost] = [this.current, Infinity];
    nodes.forEach((node, i) => {
      const along = (node.x - here.x) * dx + (node.y - here.y) * dy;
      const aside = Math.abs((node.x - here.x) * dy) + Math.abs((node.y - here.y) * dx);
      if (i !== this.current && along > 1 && along + 2 * aside < cost)
        [best, cost] = [i, along + 2 * aside];
    });
    return best;
  }
}
