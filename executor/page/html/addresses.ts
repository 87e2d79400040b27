import { html } from 'hono/html';
import type { AddressClassView, AddressesView, AddressTroubleView, AddressUsageView } from '../model.ts';
import { type Html, scrolling, symbol, told } from './parts.ts';

const bad: ReadonlySet<string> = new Set(['Conflict', 'Lost']);

const usage = (
  { family, taken, size, percent }: AddressUsageView,
  name: string,
): Html => html`<span class="num">${family}
  ${taken} of ${size} taken</span> <progress max="100" value="${percent}" aria-label="Addresses of ${name} that are taken, ${family}">${percent} %</progress>`;

const row = ({ name, provisioner, addresses, claims, usage: all, outside }: AddressClassView): Html => html`<tr>
  <th scope="row">${name === '' ? 'no class yet' : name}${name !== '' && provisioner === '' ? html` <span class="told broken">${symbol('broken')} the class is gone</span>` : ''}</th>
  ${addresses.map(({ word, count }) =>
    bad.has(word) && count > 0
      ? html`<td class="num">${told({ mark: 'broken', word: String(count) })}</td>`
      : html`<td class="num">${count}</td>`,
  )}
  <td class="num">${claims.map(({ word, count }) => `${count} ${word}`).join(' · ')}</td>
  <td>${all.length === 0 ? html`<span class="quiet">not told</span>` : all.map((one) => usage(one, name))}${outside > 0 ? html`<span class="note">${outside} outside of its ranges</span>` : ''}</td>
</tr>`;

const trouble = ({ object, what, ...view }: AddressTroubleView): Html => html`<li>
  ${told(view)} <strong>${object}</strong> <span class="note">${what}</span>
</li>`;

/** The address ledger: what is wrong first, then classes in numbers. */
export function addresses(view: AddressesView): Html {
  const phases = view.classes[0]?.addresses.map(({ word }) => word) ?? [];
  const table = html`<table>
    <thead><tr><th scope="col">Class</th>${phases.map((word) => html`<th scope="col" class="num">${word}</th>`)}<th scope="col" class="num">Claims</th><th scope="col">Ranges</th></tr></thead>
    <tbody>${view.classes.map(row)}</tbody>
  </table>`;
  return html`<section class="panel full" aria-labelledby="addresses">
    <h2 id="addresses">Addresses</h2>
    ${view.troubles.length === 0 ? '' : html`<ul aria-label="Addresses to look at">${view.troubles.map(trouble)}</ul>`}
    ${view.troublesMore > 0 ? html`<p class="quiet">and ${view.troublesMore} more that are in conflict or lost</p>` : ''}
    ${scrolling('Classes of addresses', table)}
    ${view.classesMore > 0 ? html`<p class="quiet">and ${view.classesMore} more classes</p>` : ''}
  </section>`;
}
