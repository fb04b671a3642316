// Exports the current view as SVG, PNG, JSON, CSV, or a link.

import { h, roving, say, svg } from './dom.js';
import { FONT } from './layout.js';
import { PAPER } from './colors.js';
import { pictureOf } from './players.js';
import { legend } from './legend.js';
import { METRICS, className, counted, decimal, formatValue, outputName, percent } from './words.js';

const [CARD, GAP, TALL] = [340, 16, 250];

/** The export buttons. @param {import('./results.js').Results} results */
export function downloads(results) {
  const file = (label, make) =>
    h(
      'button',
      {
        type: 'button',
        class: 'small',
        'data-download': label.toLowerCase(),
        'aria-label': `Download as ${label}`,
        onclick: async () => {
          const { text, blob, type } = await make(results);
          save(
            blob ?? new Blob([text], { type }),
            `${nameOf(results.subject)}.${label.toLowerCase()}`,
          );
        },
      },
      label,
    );
  const link = h('button', { type: 'button', class: 'small', id: 'copy-link' }, 'Copy link');
  link.addEventListener('click', () => copy(results.options.link(), link));
  const row = h(
    'div',
    { class: 'downloads', role: 'toolbar', 'aria-label': 'Export' },
    file('SVG', asSvg),
    file('PNG', asPng),
    file('JSON', asJson),
    file('CSV', asCsv),
    link,
  );
  roving(row);
  return row;
}

async function copy(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // there is no clipboard over plain HTTP from another machine: let the user copy it
    done = false;
    prompt('Copy this link:', text);
  }
  button.textContent = done ? 'Copied' : 'Copy link';
  if (done) say('Link copied.');
  setTimeout(() => {
    button.textContent = 'Copy link';
  }, 2000);
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  h('a', { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

const nameOf = ({ title }) =>
  title
    .normalize('NFKD')
    .replace(/[^\w-]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 60) || 'graph';

/** All cards with a picture, with their scores and selections. */
const shown = (results) =>
  results
    .all()
    .filter((card) => card.picture && (card !== results.own || card.nodes.size))
    .map((card) => ({
      card,
      scores: card.result?.scores ?? null,
      selected: card.selected ?? card.nodes,
    }));

/** One picture of all cards on white paper. */
export function drawing(results) {
  const { subject } = results;
  const parts = shown(results);
  const lines = subject.kind === 'sentence' || subject.players?.kind === 'features';
  const width = lines ? 520 : CARD;
  const tall = lines ? null : TALL;
  const columns = Math.min(parts.length, lines ? 2 : 3) || 1;
  const pictures = parts.map(({ card, scores, selected }) => {
    const picture = pictureOf(subject, PAPER, { label: card.title, width });
    picture.paint({
      scores,
      selected,
      limit: results.common ? results.limit : card.limit || 1,
      unsure: card.unsure,
      tied: card.tied,
      truth: results.truth,
    });
    return picture;
  });
  const height = Math.max(...pictures.map((picture) => tall ?? picture.place.height), 0) + 46;
  const rows = Math.ceil(parts.length / columns);
  const full = [columns * (width + GAP) + GAP, 92 + rows * (height + GAP)];
  const made = svg(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      width: full[0],
      height: full[1],
      viewBox: `0 0 ${full[0]} ${full[1]}`,
      'font-family': FONT,
      role: 'img',
      'aria-label': subject.title,
    },
    svg('title', {}, subject.title),
    svg('rect', { width: full[0], height: full[1], fill: PAPER.paper }),
    svg(
      'text',
      { x: GAP, y: 30, 'font-size': 15, 'font-weight': 600, fill: PAPER.ink },
      cut(subject.title, full[0] / 9),
    ),
    svg(
      'text',
      { x: GAP, y: 50, 'font-size': 12, fill: PAPER.muted },
      `${predicted(subject)}; keeps ${results.size} of ${counted(subject.unit, subject.units.length)}`,
    ),
  );
  const scale = legend(PAPER, results.common ? results.limit : null, subject.task);
  scale.setAttribute('x', GAP - 10);
  scale.setAttribute('y', 60);
  made.append(
    scale,
    ...parts.map(({ card }, i) => {
      const picture = pictures[i].element;
      const [x, y] = [
        GAP + (i % columns) * (width + GAP),
        92 + Math.floor(i / columns) * (height + GAP),
      ];
      picture.setAttribute('width', width);
      picture.setAttribute('height', tall ?? pictures[i].place.height);
      picture.setAttribute('y', 38);
      const words = card.figures
        ? Object.entries(METRICS)
            .map(([name, { title }]) => `${title} ${decimal(card.figures[name])}`)
            .join(' · ')
        : '';
      return svg(
        'g',
        { transform: `translate(${x} ${y})` },
        svg('text', { y: 14, 'font-size': 13, 'font-weight': 600, fill: PAPER.ink }, card.title),
        svg('text', { y: 31, 'font-size': 11, fill: PAPER.muted }, words),
        picture,
      );
    }),
  );
  return { svg: made, width: full[0], height: full[1] };
}

const predicted = ({ task, prediction, classes, target }) => {
  const name = outputName(task, classes, target);
  if (task === 'regression') return `predicted ${name} ${formatValue(prediction.values[target])}`;
  if (task === 'multilabel') return `${name}: ${percent(prediction.probabilities[target])}`;
  const share = percent(prediction.probabilities[prediction.class]);
  return `predicted ${prediction.name ?? className(classes, prediction.class)}, ${share}`;
};
const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

const asSvg = (results) => ({
  text: new XMLSerializer().serializeToString(drawing(results).svg),
  type: 'image/svg+xml',
});

async function asPng(results) {
  const { svg: made, width, height } = drawing(results);
  const address = URL.createObjectURL(
    new Blob([new XMLSerializer().serializeToString(made)], { type: 'image/svg+xml' }),
  );
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = h('canvas', { width: 2 * width, height: 2 * height });
    canvas.getContext('2d').drawImage(image, 0, 0, 2 * width, 2 * height);
    return {
      blob: await new Promise((done) => {
        canvas.toBlob(done, 'image/png');
      }),
    };
  } finally {
    URL.revokeObjectURL(address);
  }
}

function asJson(results) {
  const { subject, options, size, sparsity } = results;
  const content = {
    title: subject.title,
    smiles: subject.smiles,
    input: subject.input,
    model: options.model,
    task: subject.task,
    prediction: subject.prediction,
    classes: subject.classes,
    target: subject.target,
    label: subject.label,
    measured: subject.measured,
    sparsity,
    size,
    nodes: subject.nodes.map(({ label, name }, index) => ({ index, label, name })),
    edges: subject.edges,
    players: subject.players,
    explainers: [...results.cards.values()]
      .filter((card) => card.result)
      .map(({ result, selected, figures }) => ({
        explainer: result.explainer,
        title: result.title,
        options: result.options,
        scores: result.scores,
        std_errors: result.std_errors,
        selected: selected ? [...selected] : null,
        metrics: figures ?? null,
        explanation: result.explanation,
        seconds: result.seconds,
        error: result.error,
      })),
    best: results.best?.figures
      ? {
          selected: [...results.best.selected],
          metrics: results.best.figures,
          optimal: results.best.best.optimal[size],
        }
      : null,
    own: results.own.nodes.size
      ? {
          selected: [...results.own.nodes].sort((a, b) => a - b),
          metrics: results.own.figures ?? null,
        }
      : null,
    link: options.link(),
  };
  return { text: `${JSON.stringify(content, null, 2)}\n`, type: 'application/json' };
}

function asCsv(results) {
  const { subject } = results;
  const columns = shown(results).map(({ card, scores, selected }) => ({
    card,
    scores,
    selected,
    errors: card.result?.std_errors,
    ranks: card.ranks?.map(({ rank }) => rank),
  }));
  const head = [
    ...(subject.players ? ['player', 'name', 'nodes'] : ['node', 'label', 'name']),
    ...columns.flatMap(({ card, scores, errors }) => [
      ...(scores ? [`${card.title} score`] : []),
      ...(errors ? [`${card.title} standard error`] : []),
      ...(scores ? [`${card.title} rank`] : []),
      `${card.title} kept`,
    ]),
  ];
  const rows = subject.units.map(({ label, name, nodes }, node) => [
    node,
    ...(subject.players ? [name, nodes.join(' ')] : [label, name]),
    ...columns.flatMap(({ scores, selected, errors, ranks }) => [
      ...(scores ? [scores[node]] : []),
      ...(errors ? [errors[node]] : []),
      ...(scores ? [ranks[node]] : []),
      selected.has(node) ? 1 : 0,
    ]),
  ]);
  return {
    text: `${[head, ...rows].map((row) => row.map(quoted).join(',')).join('\r\n')}\r\n`,
    type: 'text/csv',
  };
}

/** A cell; an apostrophe marks text that a spreadsheet would take for a formula. */
function quoted(value) {
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
