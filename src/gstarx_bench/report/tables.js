'use strict';
{
  // Tables that are wider than their panel say so.
  const sideways = () => {
    for (const panel of document.querySelectorAll('.scroll')) {
      panel.nextElementSibling.hidden = panel.scrollWidth <= panel.clientWidth + 1;
    }
  };
  addEventListener('resize', sideways);
  for (const part of document.querySelectorAll('details')) part.addEventListener('toggle', sideways);
  sideways();
}
