'use strict';
// Light, dark, or the system setting. Not a module, so that it runs before the first paint.
{
  const KEY = 'gstarx.theme';
  const NEXT = { auto: 'dark', dark: 'light', light: 'auto' };
  const NAMES = { auto: 'Auto', dark: 'Dark', light: 'Light' };

  const stored = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  };
  let current = stored() in NEXT ? stored() : 'auto';

  const paint = () => {
    if (current === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = current;
  };
  const name = () => {
    document.getElementById('theme-name').textContent = NAMES[current];
    // begins with the visible words, for those who speak to their browser
    document.getElementById('theme').setAttribute('aria-label', `${NAMES[current]}: colors of the page`);
  };

  paint();
  addEventListener('DOMContentLoaded', () => {
    name();
    document.getElementById('theme').addEventListener('click', () => {
      current = NEXT[current];
      paint();
      name();
      try {
        localStorage.setItem(KEY, current);
      } catch {
        /* not available in private windows */
      }
    });
  });
}
