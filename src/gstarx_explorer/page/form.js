// The form: which model, which input, which explainers.

import { byId, h, roving } from './dom.js';
import { Chooser } from './chooser.js';
import { explainerChoice } from './options.js';
import { formatInteger, outputNames } from './words.js';

const KINDS = { smiles: 'SMILES', sentence: 'Sentence', graph: 'From the dataset' };
const FIELDS = ['model', 'input', 'players', 'explainers', 'target', 'seed'];
/** Names of players that are not groups of nodes. */
const SINGLE = ['nodes', 'edges', 'features'];
const FACTS = ['network', 'test accuracy', 'test R2', 'test RMSE', 'test AUROC'];
const KIND_WORDS = { molecule: 'molecules', sentence: 'sentences', graph: 'graphs' };

export class Form {
  constructor({ models, explainers, limits }, onAsk) {
    Object.assign(this, { models, limits, onAsk });
    this.choices = explainers.map(explainerChoice);
    this.#listExplainers();
    this.chooser = new Chooser(
      () => this.fail(null),
      (error) => this.fail(error),
    );
    this.#listModels();
    byId('form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.ask();
    });
    byId('sentence').addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && !event.shiftKey) {
        event.preventDefault();
        this.ask();
      }
    });
    byId('explainer-list').addEventListener('change', () => this.#countTicked());
    byId('players').addEventListener('change', () => this.#fitPlayers());
  }

  /** The default explainers, and the others in a collapsed section. */
  #listExplainers() {
    const usual = this.choices.filter((choice) => choice.explainer.default);
    const others = this.choices.filter((choice) => !choice.explainer.default);
    this.others = h(
      'details',
      { id: 'others' },
      h('summary', {}, `${others.length} more`),
      others.map((choice) => choice.element),
    );
    byId('explainer-list').replaceChildren(
      ...usual.map((choice) => choice.element),
      ...(others.length ? [this.others] : []),
    );
  }

  #listModels() {
    byId('model-list').replaceChildren(
      ...this.models.map((model) => {
        const radio = h('input', {
          type: 'radio',
          name: 'model',
          value: model.name,
          disabled: Boolean(model.problem),
        });
        radio.addEventListener('change', () => this.#choose(model, null));
        const listed = (names) =>
          names
            .filter((name) => name in model.facts)
            .map((name) => `${name} ${model.facts[name]}`)
            .join(' · ');
        const facts = listed(FACTS);
        return h(
          'label',
          { class: 'choice', title: listed(Object.keys(model.facts)) },
          radio,
          h(
            'span',
            {},
            h('b', {}, model.title),
            model.problem
              ? h('small', { class: 'error' }, model.problem)
              : h('small', { class: 'facts-of' }, facts),
            model.skipped && !model.problem
              ? h(
                  'small',
                  { class: 'facts-of' },
                  `${formatInteger(model.skipped)} row${model.skipped === 1 ? '' : 's'} of the table could not be read`,
                )
              : null,
          ),
          h('small', { class: 'kind' }, KIND_WORDS[model.kind] ?? model.kind),
        );
      }),
    );
  }

  /** Choose the first usable model and its first example. */
  begin() {
    const model = this.models.find((known) => !known.problem);
    if (model) this.#choose(model, model.examples[0]?.input ?? null);
  }

  #choose(model, input) {
    this.model = model;
    this.fail(null);
    for (const radio of byId('model-list').querySelectorAll('input'))
      radio.checked = radio.value === model.name;
    byId('input-kinds').replaceChildren(
      ...(model.inputs.length < 2
        ? []
        : model.inputs.map((kind) => {
            const radio = h('input', { type: 'radio', name: 'kind', value: kind });
            radio.addEventListener('change', () => this.#kind(kind));
            return h('label', {}, radio, h('span', {}, KINDS[kind] ?? kind));
          })),
    );
    byId('examples').replaceChildren(
      ...model.examples.map((example) =>
        h(
          'button',
          {
            type: 'button',
            class: 'chip',
            onclick: () => {
              this.write({ ...this.read(), model: model.name, input: example.input });
              this.ask();
            },
          },
          example.title,
        ),
      ),
    );
    this.#listTargets(model);
    const before = byId('players').value;
    byId('players').replaceChildren(
      ...model.players.map(({ name, title }) => h('option', { value: name }, title)),
    );
    byId('players').value = before;
    if (byId('players').selectedIndex < 0) byId('players').value = 'nodes';
    this.#fitPlayers();
    byId('smiles').value = input?.smiles ?? '';
    byId('sentence').value = input?.sentence ?? '';
    roving(byId('examples'));
    const kind = input ? Object.keys(input)[0] : model.inputs[0];
    this.#kind(model.inputs.includes(kind) ? kind : model.inputs[0], input?.graph ?? null);
  }

  /** Classes, with the predicted one by default; or targets, of which one has to be chosen. */
  #listTargets(model) {
    const several = model.task === 'multilabel' || model.task === 'regression';
    const names = outputNames(model);
    byId('target').replaceChildren(
      ...(several ? [] : [h('option', { value: '' }, 'the predicted class')]),
      ...names.map((name, i) => h('option', { value: i }, name)),
    );
    byId('target-label').textContent = several ? 'Target to explain' : 'Class to explain';
    // the choice between targets is a part of the question, and not a detail of it
    const place = several && names.length > 1 ? byId('target-place') : byId('target-details');
    place.append(byId('target-box'));
    byId('target-place').hidden = !byId('target-place').childElementCount;
    byId('target-box').hidden = several && names.length < 2;
    byId('more-title').textContent =
      place.id === 'target-details' && !byId('target-box').hidden
        ? 'Class, seed, best selection'
        : 'Seed, best selection';
  }

  #kind(kind, graph = null) {
    this.kind = kind;
    for (const name of Object.keys(KINDS)) byId(`input-${name}`).hidden = name !== kind;
    for (const radio of byId('input-kinds').querySelectorAll('input'))
      radio.checked = radio.value === kind;
    if (kind === 'graph') this.chooser.show(this.model, graph);
  }

  /** @returns {import('./link.js').Question} */
  read() {
    const { kind } = this;
    const input =
      kind === 'graph'
        ? this.chooser.chosen === null
          ? null
          : { graph: this.chooser.chosen }
        : byId(kind).value.trim()
          ? { [kind]: byId(kind).value.trim() }
          : null;
    const target = byId('target').value;
    return {
      model: this.model?.name ?? null,
      input,
      explainers: this.choices
        .filter((choice) => choice.ticked.checked)
        .map((choice) => ({ name: choice.explainer.name, options: choice.read() })),
      seed: byId('seed').value === '' ? 0 : Number(byId('seed').value),
      best: byId('best').checked,
      target: target === '' ? null : Number(target),
      players: byId('players').value || 'nodes',
    };
  }

  /** Fill the form from a request. @returns {boolean} whether it is complete. */
  write(question) {
    const model = this.models.find((known) => known.name === question.model && !known.problem);
    if (!model) {
      this.begin();
      if (question.model)
        this.fail({ field: 'model', message: `This server has no model “${question.model}”.` });
      return false;
    }
    if (model !== this.model || question.input) this.#choose(model, question.input);
    byId('players').value = question.players ?? 'nodes';
    if (byId('players').selectedIndex < 0) byId('players').value = 'nodes';
    const usual = this.choices
      .filter(({ explainer }) => explainer.default)
      .map(({ explainer }) => ({ name: explainer.name, options: {} }));
    for (const choice of this.choices) {
      const given = (question.explainers ?? usual).find(
        (one) => one.name === choice.explainer.name,
      );
      choice.ticked.checked = Boolean(given);
      choice.write(given?.options ?? {});
      if (given && !choice.explainer.default) this.others.open = true;
    }
    this.#fitPlayers();
    byId('seed').value = question.seed;
    byId('best').checked = question.best;
    const first = byId('target').options[0]?.value ?? '';
    byId('target').value = question.target ?? first;
    if (byId('target').selectedIndex < 0) byId('target').value = first;
    const detail = byId('target-details').contains(byId('target-box')) && question.target !== null;
    if (question.seed || !question.best || detail) byId('more').open = true;
    return question.input !== null;
  }

  /** Untick explainers that cannot score these players. */
  #fitPlayers() {
    const name = byId('players').value;
    const kind = SINGLE.includes(name) ? name : 'groups';
    for (const choice of this.choices) {
      choice.unfit = !choice.explainer.players.includes(kind);
      if (choice.unfit) choice.ticked.checked = false;
      choice.element.classList.toggle('unfit', choice.unfit);
      choice.ticked.title = choice.unfit ? `does not score ${byId('players').selectedOptions[0].text}` : '';
    }
    this.#countTicked();
  }

  #countTicked() {
    const ticked = this.choices.filter((choice) => choice.ticked.checked).length;
    const most = this.limits.explainers ?? Infinity;
    for (const choice of this.choices)
      choice.ticked.disabled = choice.unfit || (!choice.ticked.checked && ticked >= most);
  }

  ask() {
    this.fail(null);
    const question = this.read();
    const missing = {
      smiles: 'Enter a molecule as SMILES, for example c1ccccc1[N+](=O)[O-].',
      sentence: 'Enter a sentence.',
      graph: 'Choose a graph.',
    };
    const length = this.kind === 'graph' ? 0 : (question.input?.[this.kind].length ?? 0);
    if (!question.input) this.fail({ field: 'input', message: missing[this.kind] });
    else if (length > this.limits.text)
      this.fail({
        field: 'input',
        message: `A ${KINDS[this.kind]} may have at most ${formatInteger(this.limits.text)} characters (got ${formatInteger(length)}).`,
      });
    else if (!question.explainers.length)
      this.fail({ field: 'explainers', message: 'Choose at least one explainer.' });
    else if (!Number.isSafeInteger(question.seed) || question.seed < 0)
      this.fail({ field: 'seed', message: 'The seed must be a nonnegative integer.' });
    else this.onAsk(question);
  }

  /** Show an error next to its field; null clears all errors. */
  fail(error) {
    for (const field of [...FIELDS, 'form']) {
      byId(`${field}-error`).hidden = true;
      byId(`${field}-error`).textContent = '';
    }
    for (const input of this.#inputs()) input.removeAttribute('aria-invalid');
    for (const choice of this.choices) choice.fail(null);
    if (!error) return;
    const path = (error.field ?? '').replace(/^body\./, '').split('.');
    const choice =
      path[0] === 'explainers' &&
      this.choices.filter((known) => known.ticked.checked)[Number(path[1])];
    if (choice) {
      choice.fail(error.message);
      return;
    }
    const field = FIELDS.includes(path[0]) ? path[0] : 'form';
    if (byId('more').contains(byId(field))) byId('more').open = true;
    const place = byId(`${field}-error`);
    place.textContent = error.message;
    place.hidden = false;
    const input =
      field === 'input'
        ? this.#inputs().find(
            (known) => known.id === (this.kind === 'graph' ? 'search' : this.kind),
          )
        : byId(field);
    if (input && 'value' in input) {
      input.setAttribute('aria-invalid', 'true');
      input.focus();
    }
  }

  #inputs() {
    return ['smiles', 'sentence', 'search', 'players', 'seed', 'target'].map(byId);
  }
}
