// The colors of gstarx.drawing: orange supports the explained class, blue counts against it, white is 0.

const POSITIVE = '#ee7326';
const NEGATIVE = '#4a90e2';
const LINES = ['#d55e00', '#0072b2', '#009e73', '#cc79a7', '#56b4e9', '#e69f00', '#000000'];

/** Colors of the style sheet, which follow the theme. */
export const PAGE = {
  ink: 'var(--ink)',
  paper: 'var(--paper)',
  edge: 'var(--edge)',
  rim: 'var(--rim)',
  muted: 'var(--muted)',
  grid: 'var(--line)',
  chosen: 'var(--chosen)',
  truth: 'var(--good)',
  line: (place) => `var(--line-${place % LINES.length})`,
  score(score, limit) {
    const share = shareOf(score, limit);
    const end = score > 0 ? 'var(--for)' : 'var(--against)';
    // mixed by the browser in the same space, so that a change of theme needs no repainting
    return `color-mix(in oklab, ${end} ${(100 * share).toFixed(1)}%, var(--paper))`;
  },
};

/** The colors on white, for exports. */
export const PAPER = {
  ink: '#1b1f24',
  paper: '#ffffff',
  edge: '#a7b0ba',
  rim: '#7b858f',
  muted: '#5c6670',
  grid: '#d5dae0',
  chosen: '#e9dff5',
  truth: '#116b3c',
  line: (place) => LINES[place % LINES.length],
  score: scoreColor,
};

/** White at 0 and the full color at the limit, interpolated linearly in OKLab. */
export function scoreColor(score, limit) {
  const share = shareOf(score, limit);
  const [white, full] = [toOklab('#ffffff'), toOklab(score > 0 ? POSITIVE : NEGATIVE)];
  return fromOklab(white.map((part, i) => (1 - share) * part + share * full[i]));
}

const shareOf = (score, limit) => (limit > 0 ? Math.min(1, Math.abs(score) / limit) : 0);

function toOklab(color) {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const c = parseInt(color.slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function fromOklab([lightness, a, b]) {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return `#${linear
    .map((c) => {
      const clipped = Math.min(1, Math.max(0, c));
      const seen = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055;
      return Math.round(255 * seen)
        .toString(16)
        .padStart(2, '0');
    })
    .join('')}`;
}
