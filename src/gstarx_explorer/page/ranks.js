// Ranks of scores, with ties, and scores that may be 0.

/** Standard errors of a 95% interval. */
const INTERVAL = 1.96;
/** Scores closer than this share of the largest are equal: they differ by rounding alone. */
const EQUAL = 1e-9;

/** Nodes by score, highest first; ties go to the smaller number. */
export const ranked = (scores) =>
  scores.map((_, node) => node).sort((a, b) => scores[b] - scores[a] || a - b);

/** By node: its rank, and how many nodes share it. */
export function ranksOf(scores) {
  const order = ranked(scores);
  const near = EQUAL * Math.max(0, ...scores.map(Math.abs));
  const ranks = [];
  for (let start = 0; start < order.length; ) {
    let end = start + 1;
    while (end < order.length && scores[order[end - 1]] - scores[order[end]] <= near) end += 1;
    for (const node of order.slice(start, end)) ranks[node] = { rank: start + 1, ties: end - start };
    start = end;
  }
  return ranks;
}

/** ", tied with 2 others". */
export const tieWords = ({ ties }) =>
  ties > 1 ? `, tied with ${ties - 1} other${ties > 2 ? 's' : ''}` : '';

/** The nodes that tie at the end of a selection, and how many of them are kept; null without such a tie. */
export function tieAtTheCut(ranks, selected) {
  const last = Math.max(0, ...[...selected].map((node) => ranks[node].rank));
  const tied = ranks.map(({ rank }, node) => [rank, node]).filter(([rank]) => rank === last);
  const kept = tied.filter(([, node]) => selected.has(node)).length;
  return kept && kept < tied.length ? { kept, nodes: tied.map(([, node]) => node) } : null;
}

/** Nodes whose interval includes 0. */
export function unsureOf({ scores, std_errors: errors }) {
  if (!scores || !errors) return new Set();
  return new Set(
    scores
      .map((score, node) => [Math.abs(score), errors[node], node])
      .filter(([size, error]) => error > 0 && size <= INTERVAL * error)
      .map(([, , node]) => node),
  );
}
