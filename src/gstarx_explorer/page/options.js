// One explainer in the form: a checkbox and its collapsed options.

import { h } from './dom.js';

/** Shown for an option without a default. */
const UNSET = 'chosen automatically';

/**
 * @returns {object} `element`, the checkbox `ticked`, `read()`, `write(options)`, and `fail(text)`, where null clears the error
 */
export function explainerChoice(explainer) {
  const { name, title, about, options, trains } = explainer;
  const ticked = h('input', {
    type: 'checkbox',
    name: 'explainer',
    value: name,
    checked: explainer.default,
  });
  const inputs = options.map((option) => ({ option, ...field(name, option) }));
  const error = h('p', { class: 'error', hidden: true });
  const folded = h(
    'details',
    {},
    h(
      'summary',
      { 'aria-label': `About ${title}${options.length ? ' and its options' : ''}` },
      options.length ? 'options' : 'about',
    ),
    h(
      'div',
      { class: 'options' },
      h('p', { class: 'muted' }, about, trains ? ' It has to be trained first, which takes a while.' : ''),
      inputs.map((made) => made.element),
    ),
  );
  return {
    explainer,
    ticked,
    element: h(
      'div',
      { class: 'explainer', 'data-explainer': name },
      h('label', { class: 'check' }, ticked, h('span', {}, title)),
      folded,
      error,
    ),
    /** Only what differs from the default. */
    read: () =>
      Object.fromEntries(
        inputs
          .map(({ option, read }) => [option.name, read()])
          .filter(([, value], i) => value !== undefined && value !== inputs[i].option.default),
      ),
    write(given) {
      for (const { option, write } of inputs) write(given[option.name] ?? option.default);
      if (Object.keys(given).length) folded.open = true;
    },
    fail(text) {
      error.hidden = !text;
      error.textContent = text ?? '';
      if (!text) return;
      folded.open = true;
      error.scrollIntoView({ block: 'nearest' });
    },
  };
}

function field(explainer, option) {
  const { name, about, type, choices, minimum, maximum } = option;
  const id = `option-${explainer}-${name}`;
  const known = { id, name: `${explainer}.${name}`, 'aria-describedby': `${id}-about` };
  const words = h('small', { id: `${id}-about` }, about);
  const label = h('label', { for: id }, name.replaceAll('_', ' '));
  const initial = option.default;
  if (type === 'boolean' && initial !== null) {
    const input = h('input', { ...known, type: 'checkbox', checked: Boolean(initial) });
    return {
      element: h('div', { class: 'option' }, h('span', { class: 'check' }, input, label), words),
      read: () => input.checked,
      write: (value) => {
        input.checked = Boolean(value);
      },
    };
  }
  if (type === 'choice' || type === 'boolean') {
    const valid = type === 'boolean' ? [true, false] : (choices ?? []);
    const textOf = (choice) => ({ true: 'yes', false: 'no' })[choice] ?? String(choice);
    const input = h(
      'select',
      known,
      initial === null ? h('option', { value: '' }, UNSET) : null,
      valid.map((choice, i) =>
        h('option', { value: i, selected: choice === initial }, textOf(choice)),
      ),
    );
    return {
      element: h('div', { class: 'option' }, label, input, words),
      read: () => (input.value === '' ? undefined : valid[Number(input.value)]),
      write: (value) => {
        input.value = valid.includes(value) ? valid.indexOf(value) : '';
      },
    };
  }
  const input = h('input', {
    ...known,
    type: 'number',
    min: minimum,
    max: maximum,
    step: type === 'integer' ? 1 : 'any',
    value: initial,
    placeholder: initial === null ? UNSET : null,
  });
  return {
    element: h('div', { class: 'option' }, label, input, words),
    read: () => (input.value === '' ? undefined : Number(input.value)),
    write: (value) => {
      input.value = value ?? '';
    },
  };
}
