// Scores of functional groups: sums over their atoms.

import { h } from './dom.js';
import { aligned, counted } from './words.js';

/** A collapsed list of the groups of a molecule, highest sum first; empty if there are none. */
export function groupList(subject, scores) {
  const groups = (subject.groups ?? [])
    .map(({ name, nodes }) => ({
      name,
      nodes,
      sum: nodes.reduce((sum, node) => sum + scores[node], 0),
    }))
    .sort((a, b) => b.sum - a.sum);
  if (!groups.length) return [];
  const largest = Math.max(...groups.map(({ sum }) => Math.abs(sum)));
  return [
    h(
      'details',
      { class: 'groups' },
      h('summary', {}, counted('group', groups.length)),
      h('p', { class: 'muted' }, 'Each score is the sum of the scores of the atoms; groups may share atoms.'),
      h(
        'table',
        { class: 'group-table' },
        h(
          'tbody',
          {},
          groups.map(({ name, nodes, sum }) =>
            h(
              'tr',
              { title: nodes.map((node) => subject.nodes[node].name).join(', ') },
              h('th', { scope: 'row' }, name),
              h('td', { class: 'muted' }, counted(subject.kind, nodes.length)),
              h('td', {}, aligned(sum, largest)),
            ),
          ),
        ),
      ),
    ),
  ];
}
