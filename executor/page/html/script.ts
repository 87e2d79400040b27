/**
 * What the browser runs: it takes over a new main part when the server says that there is one, and keeps ages true. What was
 * open stays open, and what had the focus keeps it. Without it the page loads anew by itself.
 */
export const script = `'use strict';
(() => {
  const live = document.getElementById('live');
  const say = (text) => { if (live.textContent !== text) live.textContent = text; };
  const unit = (s) => s < 60 ? s + 's' : s < 3600 ? Math.floor(s / 60) + 'm' : s < 86400 ? Math.floor(s / 3600) + 'h' : Math.floor(s / 86400) + 'd';
  // By the clock of the server, as far as the answer told it.
  let ahead = 0;
  const ages = () => {
    for (const time of document.querySelectorAll('time[data-age]')) {
      const text = unit(Math.max(0, Math.round((Date.now() - ahead - Date.parse(time.dateTime)) / 1000)));
      if (time.textContent !== text) time.textContent = text;
    }
  };
  const refresh = async () => {
    const answer = await fetch('/main', { cache: 'no-store' });
    if (!answer.ok) return;
    ahead = Date.now() - Date.parse(answer.headers.get('date'));
    const next = new DOMParser().parseFromString(await answer.text(), 'text/html').getElementById('main');
    const main = document.getElementById('main');
    if (next === null) return;
    for (const details of main.querySelectorAll('details[open]')) {
      const same = next.querySelector('#' + CSS.escape(details.id));
      if (same !== null) same.open = true;
    }
    const regions = (within) => [...within.querySelectorAll('.scroll')];
    const scrolled = regions(main).map((one) => [one.getAttribute('aria-label'), one.scrollLeft, one.scrollTop]);
    const places = (within) => [...within.querySelectorAll('summary, .scroll, a')];
    const had = main.contains(document.activeElement) ? places(main).indexOf(document.activeElement) : -1;
    const whole = document.activeElement === main;
    main.replaceWith(next);
    for (const [label, left, top] of scrolled)
      for (const one of regions(next)) if (one.getAttribute('aria-label') === label) one.scrollTo(left, top);
    if (whole) next.focus({ preventScroll: true });
    else if (had >= 0) places(next)[had]?.focus({ preventScroll: true });
    ages();
  };
  let busy = Promise.resolve();
  const source = new EventSource('/events');
  source.addEventListener('open', () => say('live'));
  source.addEventListener('error', () => say('connection lost, trying again'));
  source.addEventListener('page', ({ data }) => {
    busy = busy.then(() => document.getElementById('main').dataset.digest === data ? undefined : refresh()).catch(() => undefined);
  });
  setInterval(ages, 1000);
})();
`;
