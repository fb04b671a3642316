// Curves of a metric against sparsity.

import { svg } from './dom.js';
import { FONT } from './layout.js';
import { decimal } from './words.js';

const [WIDTH, HEIGHT] = [360, 310];
const MARGIN = { left: 42, right: 12, top: 10, bottom: 42 };

/**
 * @param {object} options
 * @param {{name: string, color: string, dashed?: boolean, points: [number, number|null][]}[]} options.lines
 * @param {{x: number, y: number, name: string}|null} options.own   one more point
 * @param {number|null} options.cursor   the current sparsity
 */
export function curves({
  lines,
  own = null,
  cursor = null,
  range = [0, 1],
  name,
  palette,
  label,
  unit = 'nodes',
}) {
  const values = lines
    .flatMap((line) => line.points.map(([, y]) => y))
    .concat(own ? [own.y] : [])
    .filter((y) => y !== null && Number.isFinite(y));
  const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
  const margin = Math.max(high - low, 0.02) * 0.08;
  const x = scale(range[0], range[1], MARGIN.left, WIDTH - MARGIN.right);
  const y = scale(low - margin, high + margin, HEIGHT - MARGIN.bottom, MARGIN.top);
  const solid = lines.filter((line) => !line.dashed).length;
  const heights = ticks(low - margin, high + margin, 5);
  const digits = Math.max(2, Math.ceil(-Math.log10(heights[1] - heights[0] || 1) - 1e-9));
  const frame = [
    ...heights.flatMap((tick) => [
      svg('line', {
        x1: MARGIN.left,
        x2: WIDTH - MARGIN.right,
        y1: y(tick),
        y2: y(tick),
        stroke: palette.grid,
      }),
      text(MARGIN.left - 8, y(tick) + 4, decimal(tick, digits), {
        'text-anchor': 'end',
        fill: palette.muted,
      }),
    ]),
    ...ticks(range[0], range[1], 5).map((tick) =>
      text(x(tick), HEIGHT - MARGIN.bottom + 18, decimal(tick, 2).replace(/0$/, ''), {
        'text-anchor': 'middle',
        fill: palette.muted,
      }),
    ),
    text((MARGIN.left + WIDTH - MARGIN.right) / 2, HEIGHT - 4, `sparsity: share of ${unit} left out`, {
      'text-anchor': 'middle',
      fill: palette.muted,
    }),
  ];
  // the first lines are wider, so that coinciding lines are all visible
  const drawn = lines.flatMap((line, i) => [
    svg('path', {
      d: path(line.points, x, y),
      fill: 'none',
      stroke: line.color,
      'stroke-width': line.dashed ? 1.6 : 2 + 1.3 * Math.min(4, Math.max(0, solid - 1 - i)),
      'stroke-dasharray': line.dashed ? '5 4' : null,
      'stroke-linejoin': 'round',
      'stroke-linecap': 'round',
    }),
    ...at(line.points, cursor).map(([px, py]) =>
      svg('circle', {
        cx: x(px),
        cy: y(py),
        r: 4,
        fill: line.color,
        stroke: palette.paper,
        'stroke-width': 1.5,
      }),
    ),
  ]);
  const bar =
    cursor === null
      ? []
      : [
          svg('line', {
            x1: x(cursor),
            x2: x(cursor),
            y1: MARGIN.top,
            y2: HEIGHT - MARGIN.bottom,
            stroke: palette.muted,
            'stroke-dasharray': '2 3',
          }),
        ];
  const star =
    own === null
      ? []
      : [
          svg('path', {
            class: 'own-point',
            d: diamond(x(own.x), y(own.y), 7),
            fill: palette.ink,
            stroke: palette.paper,
            'stroke-width': 1.5,
          }),
        ];
  const made = svg(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: 'img',
      'aria-label': label ?? name,
      class: 'plot',
    },
    frame,
    bar,
    drawn,
    star,
  );
  made.sparsityAt = (share) => {
    const px = share * WIDTH;
    return Math.min(
      1,
      Math.max(
        0,
        range[0] + ((px - MARGIN.left) / (WIDTH - MARGIN.left - MARGIN.right)) * (range[1] - range[0]),
      ),
    );
  };
  return made;
}

const scale = (low, high, start, end) => (value) =>
  +(start + ((value - low) / (high - low || 1)) * (end - start)).toFixed(2);

const text = (x, y, words, attributes) =>
  svg('text', { x, y, 'font-size': 11.5, 'font-family': FONT, ...attributes }, words);

const path = (points, x, y) => {
  let open = false;
  return points
    .map(([px, py]) => {
      if (py === null || !Number.isFinite(py)) {
        open = false;
        return '';
      }
      const step = `${open ? 'L' : 'M'}${x(px)} ${y(py)}`;
      open = true;
      return step;
    })
    .join('');
};

const at = (points, cursor) =>
  cursor === null ? [] : points.filter(([px, py]) => py !== null && Math.abs(px - cursor) < 1e-9);

const diamond = (x, y, r) => `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}Z`;

function ticks(low, high, about) {
  const wanted = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= wanted * 0.999);
  const steps = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + 1e-9; tick += step)
    steps.push(+tick.toFixed(9));
  return steps;
}
