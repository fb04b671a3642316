// What accessibility checkers would find: names, headings, lists, alternatives and contrast.
() => {
  const wrong = [];
  const seen = (element) => element.checkVisibility({ checkOpacity: false });
  const textOf = (element) => element.textContent.trim();
  const named = (element) =>
    element.getAttribute('aria-label')
      || (element.getAttribute('aria-labelledby') ?? '')
        .split(' ')
        .map((id) => document.getElementById(id)?.textContent ?? '')
        .join('')
      || [...(element.labels ?? [])].map(textOf).join('')
      || (element.tagName === 'IMG' ? element.alt : '')
      || (['BUTTON', 'A', 'SUMMARY'].includes(element.tagName) ? textOf(element) : '');
  if (document.querySelectorAll('h1').length !== 1) wrong.push('one h1');
  if (document.querySelectorAll('main').length !== 1) wrong.push('one main');
  if (!document.title || !document.documentElement.lang) wrong.push('title and language');
  let level = 1;
  for (const heading of [...document.querySelectorAll('h1, h2, h3, h4')].filter(seen)) {
    const own = Number(heading.tagName[1]);
    if (own > level + 1) wrong.push(`heading ${heading.textContent} after level ${level}`);
    if (!textOf(heading)) wrong.push('empty heading');
    level = own;
  }
  const ids = [...document.querySelectorAll('[id]')].map(({ id }) => id);
  for (const id of new Set(ids))
    if (ids.filter((other) => other === id).length > 1) wrong.push(`id ${id} twice`);
  const roles = ['img', 'checkbox', 'group', 'region', 'toolbar', 'radiogroup'];
  const toName = ['button', 'a[href]', 'input', 'select', 'textarea', 'summary', 'nav', 'section'];
  const nameable = [...toName, ...roles.map((role) => `[role=${role}]`)].join();
  for (const element of document.querySelectorAll(nameable))
    if (seen(element) && !element.closest('[aria-hidden=true]') && !named(element))
      wrong.push(`no name: ${element.outerHTML.slice(0, 90)}`);
  for (const element of document.querySelectorAll('button[aria-label], a[aria-label]')) {
    const words = textOf(element).toLowerCase();
    if (seen(element) && /[a-z]/.test(words) && !element.getAttribute('aria-label').toLowerCase().includes(words))
      wrong.push(`name without the visible words: ${words}`);
  }
  for (const image of document.querySelectorAll('img')) if (!image.hasAttribute('alt')) wrong.push('alt');
  for (const element of document.querySelectorAll('[aria-hidden=true] :is(button, a, input, [tabindex="0"])'))
    wrong.push(`hidden but focusable: ${element.outerHTML.slice(0, 90)}`);
  for (const cell of document.querySelectorAll('th')) if (seen(cell) && !textOf(cell)) wrong.push('empty th');
  for (const list of document.querySelectorAll('ul, ol'))
    if ([...list.children].some(({ tagName }) => tagName !== 'LI')) wrong.push('list');
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const painted = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (color) => {
    const [r, g, b] = color.map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = painted(getComputedStyle(at).backgroundColor);
      if (color[3] === 255) return color.slice(0, 3);
    }
    return [255, 255, 255];
  };
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !seen(element) || element.closest('svg, :disabled, .hidden, option, .tooltip')) continue;
    const [front, back] = [light(painted(getComputedStyle(element).color).slice(0, 3)), light(behind(element))];
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    if (ratio < 4.5) wrong.push(`contrast ${ratio.toFixed(1)}: ${textOf(element).slice(0, 40)}`);
  }
  return [...new Set(wrong)];
}
