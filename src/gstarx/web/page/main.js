// The page: wait for the models, then show the view of the address.

import { byId, h } from './dom.js';
import { ServerGone, get } from './api.js';
import { Ask } from './ask.js';
import { Browse } from './browse.js';
import { readLink } from './link.js';

const POLL = 300;
const AGAIN = 3;

let ask = null;
let browse = null;

async function begin() {
  const about = await ready();
  byId('version').textContent = about.version;
  ask = new Ask(about, {
    onGone: gone,
    neighbors: (graph) =>
      browse?.neighbors(graph) ?? { table: '#browse', before: null, after: null },
  });
  const runs = Boolean(about.run ?? about.run_problem);
  byId('tabs').hidden = !runs;
  if (runs)
    browse = new Browse(about, {
      onError: (error) => {
        if (error instanceof ServerGone) gone();
      },
    });
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

/** Show the view of the address. */
function show() {
  const wanted = readLink(location.hash);
  const view = wanted.view === 'browse' && browse ? 'browse' : 'ask';
  byId('ask').hidden = view !== 'ask';
  byId('browse').hidden = view !== 'browse';
  const tab = wanted.question?.input && 'run_graph' in wanted.question.input ? 'browse' : view;
  for (const name of ['ask', 'browse']) {
    if (name === tab) byId(`tab-${name}`).setAttribute('aria-current', 'page');
    else byId(`tab-${name}`).removeAttribute('aria-current');
  }
  if (view === 'browse') {
    ask.hide();
    browse.open(wanted.table);
  } else {
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
