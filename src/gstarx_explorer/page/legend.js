// The color scale, for the page and for exports.

import { svg } from './dom.js';
import { FONT } from './layout.js';
import { signed } from './words.js';

const STEPS = 33;
const [WIDTH, HEIGHT] = [132, 10];

/** A bar from "against" to "for", or from lower to higher values; without a limit, its ends are labeled max. */
export function legend(palette, limit, task) {
  const half = (STEPS - 1) / 2;
  const step = WIDTH / STEPS;
  const value = task === 'regression';
  const [down, up] = value ? ['lowers', 'raises'] : ['against', 'for'];
  const words = value
    ? ['blue lowers the value', 'orange raises it']
    : ['blue counts against the explained class', 'orange supports it'];
  const [low, high] = limit === null ? ['−max', '+max'] : [signed(-limit), signed(limit)];
  const small = (x, y, text, anchor) =>
    svg(
      'text',
      {
        x,
        y,
        'font-size': 11,
        'font-family': FONT,
        fill: palette.muted,
        'text-anchor': anchor,
      },
      text,
    );
  return svg(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      viewBox: '0 0 240 28',
      width: 240,
      height: 28,
      class: 'legend',
      role: 'img',
      'aria-label': `Colors: ${words[0]}, down to ${low}; ${words[1]}, up to ${high}; white is 0`,
    },
    // slightly wider than a step, to avoid hairlines between them
    Array.from({ length: STEPS }, (_, i) =>
      svg('rect', {
        x: +(54 + i * step).toFixed(2),
        y: 2,
        width: +(step + (i < STEPS - 1 ? 0.4 : 0)).toFixed(2),
        height: HEIGHT,
        fill: palette.score(i - half, half),
      }),
    ),
    svg('rect', {
      x: 54,
      y: 2,
      width: WIDTH,
      height: HEIGHT,
      fill: 'none',
      stroke: palette.muted,
      'stroke-width': 0.6,
    }),
    small(48, 11, low, 'end'),
    small(54 + WIDTH + 6, 11, high, 'start'),
    small(54, 25, down, 'start'),
    small(54 + WIDTH / 2, 25, '0', 'middle'),
    small(54 + WIDTH, 25, up, 'end'),
  );
}
