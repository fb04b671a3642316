{
  const $ = (id) => document.getElementById(id);

  // The table: every header is a button that sorts by its column.
  const table = $('explainers');
  const body = table.tBodies[0];
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
  };
  for (const button of table.tHead.querySelectorAll('button')) {
    button.addEventListener('click', () => {
      const header = button.closest('th');
      const column = header.cellIndex;
      const down = header.getAttribute('aria-sort') !== 'descending';
      for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
      header.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [value(a, column), value(b, column)];
        const order = typeof x === 'string' ? y.localeCompare(x)
          : (Number.isNaN(x) ? -Infinity : x) - (Number.isNaN(y) ? -Infinity : y);
        return (down ? -order : order) || a.dataset.place - b.dataset.place;
      });
      body.append(...rows);
    });
  }

  // The gallery: hidden or shown, and in which order.
  const gallery = $('gallery');
  if (gallery) {
    const cards = [...gallery.children].map((card) => ({
      card,
      text: card.dataset.text.toLowerCase(),
      metrics: JSON.parse(card.dataset.metrics),
    }));
    // a regression has neither classes nor wrong predictions
    const names = ['search', 'verdict', 'class', 'explainer', 'metric', 'least', 'order'];
    const found = names.map($);
    const controls = found.filter((control) => control);
    const [search, verdict, kind, explainer, metric, least, order] = found;
    const chosen = (control) => control ? control.value : '';
    const measured = (item) => {
      const own = item.metrics[explainer.value];
      return own ? own[metric.value] : undefined;
    };
    const keys = {
      given: (item) => Number(item.card.dataset.place),
      high: (item) => -(measured(item) ?? -Infinity),
      low: (item) => measured(item) ?? Infinity,
      sure: (item) => -Number(item.card.dataset.probability),
      unsure: (item) => Number(item.card.dataset.probability),
      large: (item) => -Number(item.card.dataset.nodes),
    };
    const update = () => {
      const wanted = search.value.trim().toLowerCase();
      const floor = least.value === '' ? -Infinity : Number(least.value);
      let shown = 0;
      for (const item of cards) {
        const data = item.card.dataset;
        const fits = item.text.includes(wanted)
          && (chosen(verdict) === '' || data.verdict === verdict.value)
          && (chosen(kind) === '' || data.predicted === kind.value || data.label === kind.value)
          && (floor === -Infinity || (measured(item) ?? -Infinity) >= floor);
        item.card.hidden = !fits;
        shown += fits;
      }
      const key = keys[order.value];
      const sorted = [...cards].sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        return x === y ? keys.given(a) - keys.given(b) : x < y ? -1 : 1;
      });
      gallery.append(...sorted.map((item) => item.card));
      $('count').textContent = shown === cards.length
        ? `All ${cards.length} graphs` : `${shown} of ${cards.length} graphs`;
    };
    for (const control of controls) control.addEventListener('input', update);
    $('reset').addEventListener('click', () => {
      for (const control of controls) {
        if (control.tagName === 'SELECT') control.selectedIndex = 0; else control.value = '';
      }
      update();
      search.focus();
    });

    // A picture in large; Escape closes it, and the focus goes back.
    const dialog = $('large');
    gallery.addEventListener('click', (event) => {
      const tag = event.target.closest('.tag');
      if (tag) {
        search.value = tag.textContent;
        update();
        search.scrollIntoView({ block: 'center' });
        search.focus();
      }
      const button = event.target.closest('.open');
      if (!button) return;
      $('large-name').textContent = button.dataset.name;
      $('large-picture').replaceChildren(button.querySelector('svg').cloneNode(true));
      const caption = button.closest('figure').querySelector('figcaption');
      $('large-caption').replaceChildren(...[...caption.children].map((part) => part.cloneNode(true)));
      dialog.showModal();
    });
    dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
    $('close').addEventListener('click', () => dialog.close());
    update();
  }
}
