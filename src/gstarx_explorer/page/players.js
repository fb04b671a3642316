// Drawings of players that are not nodes: tinted edges, outlined groups, bars of features.

import { svg } from './dom.js';
import { FONT, placed } from './layout.js';
import { Picture, TIE } from './picture.js';

/** Outlines of groups, told apart by color-blind readers (Okabe and Ito). */
const RIMS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#8a8000', '#767676'];
const ROW = 22;
const LETTER = 12;
const MARGIN = 6;
/** The part of a bond that a bar leaves free at each end, for the letters of atoms. */
const SHORTER = 0.2;

/** A line from one node to another, shorter at both ends by a share of it. */
const between = (from, to, shorter) => {
  const at = (share) =>
    ['x', 'y'].map((side) => +(from[side] + share * (to[side] - from[side])).toFixed(2)).join(' ');
  return `M${at(shorter)}L${at(1 - shorter)}`;
};

/** Rings of a group: its own color, the paper, the score. */
const LAYERS = ['own', 'paper', 'score'];

/** The picture of a subject, by who plays. */
export const pictureOf = (subject, palette, options) =>
  subject.players
    ? new PlayersPicture(subject, palette, options)
    : new Picture(subject, palette, options);

// no private members: the constructor of Picture draws before they would exist
class PlayersPicture extends Picture {
  get entries() {
    return this.subject.players.entries;
  }

  get playerKind() {
    return this.subject.players.kind;
  }

  layout(width) {
    if (this.playerKind !== 'features') return placed(this.subject, width);
    const height = this.entries.length * ROW + 2 * MARGIN;
    return { x: 0, y: 0, width, height, nodes: [], arcs: [] };
  }

  build() {
    this.nodes = this.entries.map((_, i) => {
      const group = svg('g', { class: 'node player', 'data-node': i });
      this.enliven(group, i);
      return group;
    });
    if (this.playerKind === 'features') {
      this.element.replaceChildren(svg('g', {}, this.nodes));
      return;
    }
    const words = this.subject.kind === 'sentence';
    const arcs = this.place.arcs.map(({ d }) =>
      svg('path', { d, fill: 'none', stroke: this.palette.edge, 'stroke-width': 1.1 }),
    );
    // where groups play, letters go over them; where edges play, their nodes do
    const drawn = this.playerKind === 'edges' ? this.place.nodes.map((node) => this.plainNode(node)) : [];
    const labels = this.subject.text ? this.place.nodes.map((node) => this.label(node)) : [];
    this.element.replaceChildren(
      svg('g', { 'pointer-events': 'none' }, this.playerKind === 'edges' && words ? [] : arcs),
      svg('g', {}, this.nodes),
      svg('g', { 'pointer-events': 'none' }, this.subject.text ? drawn : [], labels),
      svg('g', { 'pointer-events': 'none' }, this.shapes()),
    );
  }

  plainNode(node) {
    const body = this.outline(node, node.r ? -node.r * 0.2 : 0);
    body.setAttribute('fill', this.palette.paper);
    body.setAttribute('stroke', this.palette.rim);
    body.setAttribute('stroke-width', 0.8);
    return body;
  }

  paint(look) {
    this.look = look;
    const { scores, limit, selected, unsure, tied } = look;
    this.nodes.forEach((group, i) => {
      const inside = selected.has(i);
      const plain = inside ? this.palette.chosen : this.palette.paper;
      const color = scores ? this.palette.score(scores[i], limit) : plain;
      const parts = {
        edges: () => this.paintEdge(i, color, inside, unsure?.has(i), tied?.has(i)),
        groups: () => this.paintGroup(i, color, inside, unsure?.has(i)),
        features: () => this.paintFeature(i, color, inside),
      }[this.playerKind]();
      group.replaceChildren(...parts);
      this.describe(group, i, inside);
    });
  }

  /** A bar along the edge; in a sentence, along its arc. */
  paintEdge(i, color, inside, doubtful, tied) {
    const [a, b] = this.entries[i].nodes;
    const { nodes, arcs } = this.place;
    const words = this.subject.kind === 'sentence';
    const paths = words
      ? arcs.filter(({ ends }) => ends.includes(a) && ends.includes(b)).map(({ d }) => d)
      : [between(nodes[a], nodes[b], this.subject.text ? 0 : SHORTER)];
    const wide = words ? 4 : Math.min(11, 1.1 * (nodes[a].r ?? 11));
    const { ink, edge, rim } = this.palette;
    const stroke = (d, paint, width, more = {}) =>
      svg('path', {
        d,
        fill: 'none',
        stroke: paint,
        'stroke-width': width,
        'stroke-linecap': 'round',
        ...more,
      });
    return [
      ...paths.map((d) => stroke(d, 'transparent', wide + 8, { class: 'ring' })),
      ...paths.map((d) =>
        tied
          ? stroke(d, ink, wide + 4, { 'stroke-dasharray': TIE, 'stroke-linecap': 'butt' })
          : stroke(d, inside ? ink : edge, wide + (inside ? 4 : 1.4)),
      ),
      ...paths.map((d) => stroke(d, color, wide)),
      // lines across the bar, which is too thin for slanted ones
      ...(doubtful
        ? paths.map((d) =>
            stroke(d, rim, wide, { 'stroke-dasharray': '0.9 4', 'stroke-linecap': 'butt' }),
          )
        : []),
    ];
  }

  /** Disks and bars around the nodes of a group, one soft shape in its own color. */
  paintGroup(i, color, inside, doubtful) {
    const rim = inside ? 4 : 2;
    const paints = { own: RIMS[i % RIMS.length], paper: this.palette.paper, score: color };
    const parts = LAYERS.flatMap((layer) =>
      this.blob(this.entries[i].nodes, paints[layer], layer === 'own' ? rim : 0),
    );
    const ring = this.blob(this.entries[i].nodes, 'transparent', rim + 3);
    for (const part of ring) part.setAttribute('class', 'halo');
    if (doubtful)
      for (const node of this.entries[i].nodes) {
        const { r, ...place } = this.place.nodes[node];
        const mark = this.hatching({ ...place, r: r && Math.min(r, 13) });
        mark.setAttribute('stroke', this.palette.rim);
        parts.push(mark);
      }
    return [...ring, ...parts];
  }

  blob(members, color, grown) {
    const { nodes } = this.place;
    const inside = new Set(members);
    const words = this.subject.kind === 'sentence';
    const joints = words
      ? members
          .filter((n) => inside.has(n + 1) && nodes[n].y === nodes[n + 1].y)
          .map((n) => [nodes[n], nodes[n + 1]])
          .map(([one, next]) =>
            svg('rect', {
              x: one.x,
              y: one.y - one.h / 2 - grown,
              width: next.x - one.x,
              height: one.h + 2 * grown,
              fill: color,
            }),
          )
      : this.subject.edges
          .filter(([a, b]) => inside.has(a) && inside.has(b))
          .map(([a, b]) =>
            svg('path', {
              d: `M${nodes[a].x} ${nodes[a].y}L${nodes[b].x} ${nodes[b].y}`,
              stroke: color,
              'stroke-width': 2 * (Math.min(nodes[a].r, 13) + grown),
            }),
          );
    const disks = members.map((n) => {
      const node = nodes[n];
      const made = this.outline(node.r ? { ...node, r: Math.min(node.r, 13) } : node, grown);
      made.setAttribute('fill', color);
      return made;
    });
    return [...joints, ...disks];
  }

  /** A row with its name, and a bar from the middle. */
  paintFeature(i, color, inside) {
    const { scores, limit } = this.look;
    const { ink, rim, edge } = this.palette;
    const top = MARGIN + i * ROW;
    const name = Math.min(0.42 * this.width, 150);
    const [left, right] = [name + 10, this.width - 4];
    const middle = (left + right) / 2;
    const long = scores ? (Math.min(1, Math.abs(scores[i]) / limit) * (right - left)) / 2 : 0;
    const negative = scores && scores[i] < 0;
    const letters = Math.floor(name / (0.6 * LETTER));
    const called = this.entries[i].name;
    const shown = called.length > letters ? `${called.slice(0, letters - 1)}…` : called;
    return [
      svg('rect', {
        class: 'ring',
        x: 1,
        y: top,
        width: this.width - 2,
        height: ROW - 2,
        rx: 4,
        fill: inside ? this.palette.chosen : 'transparent',
      }),
      svg(
        'text',
        {
          x: name,
          y: top + ROW / 2 + 3,
          'font-size': LETTER,
          'font-family': FONT,
          'font-weight': inside ? 600 : 400,
          'text-anchor': 'end',
          fill: ink,
        },
        shown,
      ),
      ...(scores
        ? [
            svg('path', { d: `M${middle} ${top}v${ROW - 2}`, stroke: edge }),
            svg('rect', {
              x: negative ? middle - long : middle,
              y: top + 4,
              width: Math.max(long, 0.8),
              height: ROW - 10,
              fill: color,
              stroke: inside ? ink : rim,
              'stroke-width': inside ? 1.8 : 0.7,
            }),
          ]
        : [
            svg('rect', {
              x: left,
              y: top + 4,
              width: ROW - 10,
              height: ROW - 10,
              rx: 3,
              fill: inside ? ink : 'none',
              stroke: rim,
            }),
          ]),
    ];
  }

  centers() {
    return this.entries.map(({ nodes }, i) => {
      if (this.playerKind === 'features') return { x: 0, y: i * ROW };
      const mean = (side) =>
        nodes.reduce((sum, node) => sum + this.place.nodes[node][side], 0) / nodes.length;
      return { x: mean('x'), y: mean('y') };
    });
  }
}


