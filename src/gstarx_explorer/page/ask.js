// The Ask view: send a request, follow its job, and show the results.

import { byId, debounced, h } from './dom.js';
import { ServerGone, follow, post, remove } from './api.js';
import { Form } from './form.js';
import { Results } from './results.js';
import { askLink, sameQuestion } from './link.js';
import { seconds, sentence } from './words.js';

const narrow = matchMedia('(max-width: 1000px)');
const still = matchMedia('(prefers-reduced-motion: reduce)');

/** Cancel a job that is not needed any more. */
const drop = (job) => remove(`/jobs/${encodeURIComponent(job)}`).catch(() => {});

export class Ask {
  /**
   * @param {object} about   the response of /about
   * @param {object} calls   `onGone()`: the server does not respond; `neighbors(graph)`: the rows next to it in the table
   */
  constructor(about, { onGone, neighbors }) {
    Object.assign(this, { about, onGone, neighbors, sparsity: 0.7, own: [] });
    this.form = new Form(about, (question) => this.ask(question, { fresh: true }));
    byId('cancel').addEventListener('click', () => this.cancel());
    byId('to-results').addEventListener('click', () => byId('answer').focus());
    addEventListener('keydown', (event) => {
      const stoppable = !byId('progress').hidden && !byId('cancel').hidden;
      if (event.key === 'Escape' && stoppable && !event.defaultPrevented) this.cancel();
    });
    this.remember = debounced(150, () => {
      if (!this.question || !this.shown) return;
      history.replaceState(null, '', this.#address());
      this.#keepTab();
    });
    this.#empty();
  }

  /** Show the view of an address. */
  open({ question, sparsity, own }) {
    this.shown = true;
    const fromRun = question.input && 'run_graph' in question.input;
    this.#runBar(fromRun ? question.input.run_graph : null);
    if (sparsity !== null) this.sparsity = sparsity;
    if (this.question && question.input && sameQuestion(this.#completed(question), this.question)) {
      if (this.results?.subject) {
        this.results.setSparsity(this.sparsity, { quiet: true });
        this.results.own.set(own, { quiet: true });
      }
      return;
    }
    byId('form').hidden = Boolean(fromRun);
    byId('ask').classList.toggle('alone', Boolean(fromRun));
    if (fromRun) {
      this.ask(this.#completed(question), { own });
      return;
    }
    // an invalid address must not show the results of another one
    this.#stop();
    this.#forget();
    if (!question.model && !question.input) {
      if (!this.form.model) this.form.begin();
    } else if (this.form.write(question))
      this.ask({ ...this.form.read(), input: question.input }, { own });
  }

  hide() {
    this.shown = false;
    this.remember.cancel();
  }

  /** The complete request; for a graph of the run, only the graph varies. */
  #completed(question) {
    return question.input && 'run_graph' in question.input
      ? {
          model: this.about.run?.model ?? null,
          input: question.input,
          explainers: [],
          seed: 0,
          best: true,
          target: null,
          players: 'nodes',
        }
      : question;
  }

  /** Links to the table and to the previous and next graphs. */
  #runBar(graph) {
    const bar = byId('run-bar');
    bar.hidden = graph === null;
    if (graph === null) return;
    const { table, before, after } = this.neighbors(graph);
    const step = (words, to) =>
      to === null
        ? null
        : h(
            'a',
            { href: askLink({ input: { run_graph: to } }, { sparsity: this.sparsity }) },
            words,
          );
    bar.replaceChildren(
      h('a', { href: table }, '← All graphs of the run'),
      h('span', { class: 'grow' }),
      ...[step('Previous', before), step('Next', after)].filter(Boolean),
    );
  }

  #forget() {
    this.question = null;
    byId('tab-ask').setAttribute('href', '#ask');
    this.results?.close();
    this.results = null;
    byId('results').hidden = true;
    byId('to-results').hidden = true;
    byId('empty').hidden = false;
  }

  #empty() {
    const kinds = new Set(this.about.models.map((model) => model.kind));
    const named = Object.entries({ molecule: 'atoms', sentence: 'words', graph: 'nodes' })
      .filter(([kind]) => kinds.has(kind))
      .map(([, words]) => words);
    const what =
      [named.slice(0, -1).join(', '), ...named.slice(-1)].filter(Boolean).join(' or ') || 'nodes';
    const examples = new Map(
      this.about.models
        .filter((model) => !model.problem && model.examples.length)
        .map(({ name, examples: [first] }) => [first.title, { model: name, input: first.input }])
        .reverse(),
    );
    byId('empty').replaceChildren(
      h('img', { src: '/page/favicon.svg', alt: '', width: 56, height: 56 }),
      h('h2', {}, `Which ${what} led to the prediction?`),
      h(
        'p',
        {},
        'Choose a model, enter an input, and press Explain. Each explainer has its own card; orange ' +
          'supports the explained class or raises the value, blue counts against it or lowers it, and ' +
          'the kept nodes are outlined.',
      ),
      h(
        'p',
        { class: 'muted' },
        'Every explanation is tested on the model: how much the prediction changes without the kept ' +
          'nodes, and with only these nodes.',
      ),
      h(
        'div',
        { class: 'chips' },
        [...examples].reverse().map(([title, example]) =>
          h(
            'button',
            {
              type: 'button',
              class: 'chip',
              onclick: () => {
                if (this.form.write({ ...this.form.read(), ...example })) this.form.ask();
              },
            },
            `Try ${title}`,
          ),
        ),
      ),
    );
  }

  /**
   * The previous results stay until the server has accepted the request.
   * @param {import('./link.js').Question} question
   */
  async ask(question, { fresh = false, own = [] } = {}) {
    this.#stop();
    const turn = new AbortController();
    this.turn = turn;
    this.began = performance.now();
    this.form.fail(null);
    this.#progress('sending …');
    if (!fresh) this.#forget();
    try {
      const { model, input, explainers, best, seed, target, players } = question;
      const job = await post('/jobs', { model, input, explainers, best, seed, target, players });
      if (turn.signal.aborted) {
        drop(job.id);
        return;
      }
      this.job = job.id;
      Object.assign(this, { question, own });
      if (fresh) history.pushState(null, '', this.#address());
      this.#keepTab();
      this.#begin(question);
      // whoever asked goes on with the results, not with the rest of the form
      if (fresh) byId('answer').focus({ preventScroll: !narrow.matches });
      byId('cancel').hidden = false;
      this.stopFollowing = follow(job.id, {
        onPart: (part) => this.#part(part),
        onEnd: () => this.#end(),
        onBroken: () => this.onGone(),
        onLost: () =>
          this.#fail({ message: 'The server has deleted this job. Press Explain again.' }),
      });
    } catch (error) {
      if (turn.signal.aborted) return;
      if (error instanceof ServerGone) this.onGone();
      if (error.retryAfter) this.#wait(error, question, { fresh, own });
      else this.#fail(error);
    }
  }

  #address() {
    return askLink(this.question, { sparsity: this.sparsity, own: this.own });
  }

  /** The tab links to the last request; graphs of the run belong to the other tab. */
  #keepTab() {
    if (!('run_graph' in this.question.input))
      byId('tab-ask').setAttribute('href', this.#address());
  }

  #begin(question) {
    this.results?.close();
    const titles = new Map(this.about.explainers.map(({ name, title }) => [name, title]));
    const fromRun = 'run_graph' in question.input;
    byId('empty').hidden = true;
    byId('to-results').hidden = false;
    this.results = new Results({
      model: question.model,
      target: question.target,
      explainers: question.explainers.map(({ name }) => ({
        key: name,
        name,
        title: titles.get(name) ?? name,
      })),
      best: question.best,
      kind: this.about.models.find(({ name }) => name === question.model)?.kind ?? 'graph',
      keyOf: (result) => (fromRun ? result.title : result.explainer),
      sparsity: this.sparsity,
      own: this.own,
      score: (nodes, signal) => {
        const { model, input, target } = question;
        const players = this.results.subject.players?.name ?? 'nodes';
        return post('/score', { model, input, target, players, nodes }, { signal });
      },
      onLook: ({ sparsity, own }) => {
        Object.assign(this, { sparsity, own });
        this.remember();
      },
      link: () => new URL(this.#address(), location.href).href,
    });
    if (narrow.matches && !fromRun)
      byId('answer').scrollIntoView({ behavior: still.matches ? 'auto' : 'smooth' });
  }

  #part({ state, position, progress, subject, result, best, error }) {
    if (subject) this.results.setSubject(subject);
    if (result) this.results.setResult(result);
    if (best) this.results.setBest(best);
    if (error) this.#fail(error);
    else if (typeof position === 'number')
      this.#progress(position ? `in the queue behind ${position}` : 'next in the queue');
    else if (progress) {
      const { done, total, doing } = progress;
      this.results.working(doing);
      this.#progress(doing ? `${this.#titleOf(doing)} …` : '', total ? done / total : null);
    }
    if (state) this.state = state;
  }

  #titleOf(doing) {
    return this.about.explainers.find(({ name }) => name === doing)?.title ?? doing;
  }

  #progress(text, share = null) {
    byId('progress').hidden = false;
    byId('progress-bar').hidden = false;
    byId('progress-text').textContent = text;
    if (share === null) byId('progress-bar').removeAttribute('value');
    else byId('progress-bar').value = share;
  }

  #end() {
    this.job = null;
    const canceled = this.state === 'canceled';
    if (!canceled) this.results.setBest(null);
    this.results.end(canceled ? 'Canceled.' : 'No result.');
    this.#note(
      canceled ? 'Canceled.' : `Finished in ${seconds((performance.now() - this.began) / 1000)}.`,
    );
    this.state = null;
  }

  /** Show why the request failed. */
  #fail(error) {
    const taken = this.job !== null;
    this.job = null;
    this.#stop();
    if (!this.results?.subject) this.#forget();
    else if (taken) this.results.end('No result.');
    if (this.results) this.#note('');
    if (byId('form').hidden) this.#note(error.message);
    else this.form.fail(error);
  }

  #note(text) {
    byId('progress').hidden = false;
    byId('progress-bar').hidden = true;
    byId('cancel').hidden = true;
    byId('progress-text').textContent = text;
  }

  /** The server is busy: send the request again later, now, or not at all. */
  #wait(error, question, options) {
    let left = Math.ceil(error.retryAfter);
    const place = byId('form-error');
    const words = h('span', {});
    const again = () => {
      this.#stop();
      this.ask(question, options);
    };
    const show = () => {
      words.textContent = `${sentence(error.message)} Trying again in ${left} s. `;
      this.#progress(`busy, trying again in ${left} s`);
    };
    place.replaceChildren(
      words,
      h('button', { type: 'button', class: 'small', onclick: again }, 'Try now'),
      ' ',
      h('button', { type: 'button', class: 'small', onclick: () => this.cancel() }, 'Stop'),
    );
    place.hidden = false;
    show();
    this.countdown = setInterval(() => {
      left -= 1;
      if (left > 0) show();
      else again();
    }, 1000);
  }

  /** Cancel the job, also on the server. */
  async cancel() {
    const { job } = this;
    if (!job) {
      this.#stop();
      this.form.fail(null);
      if (this.results) this.#note('');
      return;
    }
    byId('progress-text').textContent = 'canceling …';
    byId('cancel').hidden = true;
    try {
      await remove(`/jobs/${encodeURIComponent(job)}`);
    } catch (error) {
      if (error instanceof ServerGone) this.onGone();
    }
  }

  #stop() {
    this.turn?.abort();
    this.stopFollowing?.();
    clearInterval(this.countdown);
    if (this.job) drop(this.job);
    Object.assign(this, { job: null, turn: null, stopFollowing: null, state: null });
    byId('progress').hidden = true;
    byId('cancel').hidden = false;
  }
}
