'use strict';
// Light, dark, or as the system has it. No module, so that it runs before anything is painted.
{
  const KEY = 'gstarx.theme';
  const NEXT = { auto: 'dark', dark: 'light', light: 'auto' };
  const NAMES = { auto: 'Auto', dark: 'Dark', light: 'Light' };

  const kept = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  };
  let current = kept() in NEXT ? kept() : 'auto';

  const paint = () => {
    if (current === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = current;
  };
  const name = () => {
    const said = current === 'auto' ? 'as the system has them' : current;
    document.getElementById('theme-name').textContent = NAMES[current];
    document.getElementById('theme').setAttribute('aria-label', `Colors: ${said}`);
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
        /* a private window forgets it */
      }
    });
  });
}
