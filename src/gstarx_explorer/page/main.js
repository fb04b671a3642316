// The page: wait for the models, then show the view of the address.

import { byId, h } from './dom.js';
import { ServerGone, get } from './api.js';
import { Ask } from './ask.js';
import { Browse } from './browse.js';
import { Gallery } from './gallery.js';
import { Summary } from './summary.js';
import { browseLink, readLink } from './link.js';

const POLL = 300;
const AGAIN = 3;
/** The views and the titles of their pages. */
const VIEWS = {
  ask: 'GStarX explorer',
  browse: 'Browse · GStarX explorer',
  gallery: 'Browse · GStarX explorer',
  summary: 'Summary · GStarX explorer',
};

let ask = null;
let browse = null;
let gallery = null;
let summary = null;

async function begin() {
  const about = await ready();
  byId('version').textContent = about.version;
  ask = new Ask(about, {
    onGone: gone,
    neighbors: (graph) =>
      browse?.neighbors(graph) ?? { table: '#browse', before: null, after: null },
  });
  const calls = {
    onError: (error) => {
      if (error instanceof ServerGone) gone();
    },
  };
  if (about.run ?? about.run_problem) browse = new Browse(about, calls);
  if (about.models.some((model) => model.graphs && !model.problem))
    gallery = new Gallery(about, calls);
  if (about.run) summary = new Summary(about, calls);
  byId('tabs').hidden = !browse && !gallery;
  byId('tab-summary').hidden = !summary;
  byId('loading').hidden = true;
  show();
  addEventListener('hashchange', show);
}

async function ready() {
  for (;;) {
    try {
      const about = await get('/about');
      if (about.ready) return about;
    } catch (error) {
      if (!(error instanceof ServerGone)) throw error;
      await gone();
    }
    await later(POLL);
  }
}

/** The links to the run and to the graphs of every model, where there are several. */
function listSources(current) {
  const sources = [
    ...(browse ? [[null, 'Run']] : []),
    ...(gallery?.models ?? []).map(({ name, title }) => [name, `Graphs of ${title}`]),
  ];
  byId('sources').replaceChildren(
    ...sources.map(([name, words]) =>
      h(
        'a',
        { href: browseLink({ model: name }), 'aria-current': name === current ? 'page' : null },
        words,
      ),
    ),
  );
  byId('sources').hidden = current === undefined || sources.length < 2;
}

/** Show the view of the address. */
function show() {
  const wanted = readLink(location.hash);
  const ofModel = !browse || (gallery && wanted.table?.model);
  const view =
    wanted.view === 'summary' && summary
      ? 'summary'
      : wanted.view !== 'browse' || !(browse ?? gallery)
        ? 'ask'
        : ofModel
          ? 'gallery'
          : 'browse';
  for (const name of Object.keys(VIEWS)) byId(name).hidden = view !== name;
  const fromRun = wanted.question?.input && 'run_graph' in wanted.question.input;
  const tab = fromRun || view === 'gallery' ? 'browse' : view;
  for (const name of ['ask', 'browse', 'summary']) {
    if (name === tab) byId(`tab-${name}`).setAttribute('aria-current', 'page');
    else byId(`tab-${name}`).removeAttribute('aria-current');
  }
  document.title = VIEWS[view];
  if (view !== 'ask') {
    ask.hide();
    ({ gallery, browse, summary })[view].open(wanted.table);
    listSources({ gallery: gallery?.model?.name, browse: null }[view]);
  } else {
    listSources(undefined);
    ask.open(wanted.view === 'ask' ? wanted : readLink(''));
  }
}

let waiting = null;

/** The server does not respond: say so, and try again every few seconds until it does. */
function gone() {
  waiting ??= (async () => {
    const banner = byId('banner');
    for (let tried = false; ; tried = true) {
      for (let left = tried ? AGAIN : 1; left > 0; left -= 1) {
        banner.replaceChildren(
          h('span', {}, `The server does not respond. Trying again in ${left} s …`),
        );
        banner.hidden = !tried && left > 0 ? banner.hidden : false;
        await later(1000);
      }
      try {
        await get('/about');
        break;
      } catch (error) {
        if (!(error instanceof ServerGone)) break;
        banner.hidden = false;
      }
    }
    banner.hidden = true;
    waiting = null;
  })();
  return waiting;
}

const later = (time) =>
  new Promise((done) => {
    setTimeout(done, time);
  });

byId('skip').addEventListener('click', (event) => {
  event.preventDefault();
  byId('content').focus();
});

begin().catch((error) => {
  byId('loading').replaceChildren(h('p', { class: 'error', role: 'alert' }, error.message));
});
