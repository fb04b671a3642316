// A small picture of a graph, for lists.

import { h } from './dom.js';
import { PAGE } from './colors.js';
import { Picture } from './picture.js';

/** The drawing without scores; an empty box for a graph without a drawing. */
export function thumbnail(drawing) {
  const box = h('span', { class: `thumb ${drawing?.kind ?? ''}`, 'aria-hidden': 'true' });
  if (!drawing) return box;
  const picture = new Picture(drawing, PAGE, { label: '' });
  const scores = drawing.nodes.map(() => 0);
  picture.paint({ scores, limit: 1, selected: new Set(), unsure: null, truth: false });
  box.append(picture.element);
  return box;
}
