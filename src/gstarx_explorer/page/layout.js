// The positions of the nodes. Molecules and graphs come with coordinates; sentences are broken into
// lines as wide as the card, so that words stay readable on a phone.

export const FONT =
  "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";
/** The size of words. */
export const WORDS = 15;

const SPACE = 8;
const LEVEL = 11;
const HIGHEST = 6;
const BETWEEN_LINES = 14;
const MARGIN = 4;
const PADDING = 7;
const SMALLEST = { width: 230, height: 150 };

/**
 * @returns {{x: number, y: number, width: number, height: number, nodes: object[],
 *            arcs: {d: string, ends: number[]}[]}} the box of the picture, its nodes, and edges as paths.
 */
export function placed(subject, width) {
  return subject.kind === 'sentence' && subject.nodes.every((node) => node.w)
    ? sentence(subject, width)
    : asGiven(subject);
}

/** The layout of the server, in a box of at least a minimum size. */
function asGiven(subject) {
  const width = Math.max(subject.width + 2 * MARGIN, SMALLEST.width);
  const height = Math.max(subject.height + 2 * MARGIN, SMALLEST.height);
  const drawn = subject.text ? subject.edges : [];
  return {
    x: (subject.width - width) / 2,
    y: (subject.height - height) / 2,
    width,
    height,
    nodes: subject.nodes,
    arcs: drawn.map(([a, b]) => {
      const [from, to] = [subject.nodes[a], subject.nodes[b]];
      return { d: `M${from.x} ${from.y}L${to.x} ${to.y}`, ends: [a, b] };
    }),
  };
}

function sentence(subject, width) {
  const { edges } = subject;
  const nodes = subject.nodes.map((node) => ({
    ...node,
    w: Math.min(width - 2 * MARGIN, textWidth(node.label) + 2 * PADDING),
  }));
  const lines = inLines(nodes, width - 2 * MARGIN);
  const lineOf = new Map(lines.flatMap((line, i) => line.map(({ node }) => [node, i])));
  const box = new Map(lines.flat().map((word) => [word.node, word]));
  const parts = edges.flatMap(([a, b]) =>
    pieces(Math.min(a, b), Math.max(a, b), lineOf, box, width),
  );
  raise(parts);
  const places = [];
  let top = MARGIN;
  lines.forEach((line, i) => {
    const own = parts.filter((part) => part.line === i);
    const high = Math.max(0, ...own.map((part) => Math.min(part.level, HIGHEST)));
    top += high * LEVEL + 6;
    for (const part of own) part.base = top;
    for (const { node, left } of line) {
      const { w, h: tall } = nodes[node];
      places[node] = { ...nodes[node], x: left + w / 2, y: top + tall / 2 };
    }
    top += Math.max(...line.map(({ node }) => nodes[node].h)) + BETWEEN_LINES;
  });
  return {
    x: 0,
    y: 0,
    width,
    height: top - BETWEEN_LINES + MARGIN,
    nodes: places,
    arcs: parts.map((part) => ({ d: arc(part), ends: part.ends })),
  };
}

let canvas = null;

/** The width of a word in the browser. */
function textWidth(text) {
  canvas ??= document.createElement('canvas').getContext('2d');
  canvas.font = `${WORDS}px ${FONT}`;
  return canvas.measureText(text).width;
}

function inLines(nodes, available) {
  const lines = [[]];
  let left = MARGIN;
  nodes.forEach(({ w }, node) => {
    if (left + w > available + MARGIN && lines.at(-1).length) {
      lines.push([]);
      left = MARGIN;
    }
    lines.at(-1).push({ node, left, width: w });
    left += w + SPACE;
  });
  return lines;
}

/** One arc on one line, or two that leave to the right and come in from the left. */
function pieces(a, b, lineOf, box, width) {
  const middle = (node) => box.get(node).left + box.get(node).width / 2;
  const [from, to] = [lineOf.get(a), lineOf.get(b)];
  const common = { ends: [a, b], level: 0 };
  if (from === to) return [{ ...common, line: from, start: middle(a), end: middle(b) }];
  return [
    { ...common, line: from, start: middle(a), end: width, openRight: true },
    { ...common, line: to, start: 0, end: middle(b), openLeft: true },
  ];
}

/** Shorter arcs below longer ones that span them. */
function raise(parts) {
  for (const part of [...parts].sort((a, b) => a.end - a.start - (b.end - b.start))) {
    const below = parts.filter(
      (other) =>
        other !== part &&
        other.line === part.line &&
        other.level &&
        other.start < part.end &&
        other.end > part.start,
    );
    part.level = 1 + Math.max(0, ...below.map((other) => other.level));
  }
}

function arc({ start, end, base, level, openLeft, openRight }) {
  const top = base - 2 - Math.min(level, HIGHEST) * LEVEL;
  const bend = Math.min(12, (end - start) / 2);
  const rise = openLeft
    ? `M${start} ${top}`
    : `M${start} ${base - 1}Q${start} ${top} ${start + bend} ${top}`;
  return openRight ? `${rise}H${end}` : `${rise}H${end - bend}Q${end} ${top} ${end} ${base - 1}`;
}
