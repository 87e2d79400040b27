import { html, raw } from 'hono/html';
import type { PageModel } from '../model.ts';
import { addresses } from './addresses.ts';
import { installation } from './installation.ts';
import { age, type Html, symbol } from './parts.ts';
import { release } from './release.ts';

function standing({ standing: now, planOnly }: PageModel, at: number): Html {
  if (now.type === 'standby') return html`<span>stands by</span>`;
  return html`<span>leads since ${age(now.since, at)}${planOnly ? ', and only plans' : ''}</span>`;
}

function empty(model: PageModel): Html {
  if (model.standing.type === 'standby')
    return html`<p class="callout working">${symbol('idle')} This replica stands by: another one leads and shows what it sees.
      <code>kubectl -n ${model.namespace} get lease keelson-executor</code> names it.</p>`;
  return html`<p class="callout working">Nothing was delivered yet: there is no Release and no installation.</p>`;
}

/** The part that changes. `digest` is that of the model, by which the page knows whether it is behind. */
export function mainPart(model: PageModel, digest: string, now: number): Html {
  const bare = model.installations.length === 0 && model.releases.length === 0;
  return html`<main id="main" data-digest="${digest}" tabindex="-1">
    ${bare ? empty(model) : ''}
    ${model.installations.map((one) => installation(one, now))}
    ${model.addresses === undefined ? '' : addresses(model.addresses)}
    ${model.releases.length === 0 ? '' : html`<section aria-labelledby="releases"><h2 id="releases">Releases</h2>${model.releases.map((one) => release(one, now))}</section>`}
    ${model.more > 0 ? html`<p class="quiet">and ${model.more} more that are not shown</p>` : ''}
  </main>`;
}

/** The whole document. */
export const page = (model: PageModel, digest: string, now: number): Html => html`${raw('<!doctype html>')}
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <meta name="robots" content="noindex">
  <noscript><meta http-equiv="refresh" content="10"></noscript>
  <title>keelson · ${model.namespace}</title>
  <link rel="icon" href="/icon.svg" type="image/svg+xml">
  <link rel="stylesheet" href="/page.css">
  <script src="/page.js" defer></script>
</head>
<body>
  <a class="skip" href="#main">To the content</a>
  <header class="bar">
    <h1>keelson</h1>
    <p class="quiet">${model.namespace} · ${model.identity} · ${standing(model, now)}</p>
    <p class="quiet" id="live" role="status"><noscript>loads anew every 10 s</noscript></p>
  </header>
  ${mainPart(model, digest, now)}
  <footer class="quiet">Read-only. <span>${symbol('well')} well</span> <span>${symbol('broken')} broken</span> <span>${symbol('unknown')} not known</span> <span>${symbol('working')} at work</span> <span>${symbol('idle')} not wanted here</span></footer>
</body>
</html>`;
