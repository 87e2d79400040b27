import { html } from 'hono/html';
import type { AddressClassView, AddressesView, AddressTroubleView, AddressUsageView, CountView } from '../model.ts';
import { type Html, symbol, told } from './parts.ts';

const bad: ReadonlySet<string> = new Set(['Conflict', 'Lost']);

/** What there is of each phase; what there is none of is not said. */
const counts = (all: readonly CountView[], none: string): Html => {
  const some = all.filter(({ count }) => count > 0);
  if (some.length === 0) return html`${none}`;
  return html`${some.map(({ word, count }, n) =>
    bad.has(word)
      ? html`${n === 0 ? '' : ' · '}${told({ mark: 'broken', word: `${count} ${word}` })}`
      : html`${n === 0 ? '' : ' · '}${count} ${word}`,
  )}`;
};

const usage = (
  { family, taken, size, percent }: AddressUsageView,
  name: string,
): Html => html`<p class="quiet num">${family}: ${taken} of ${size} taken</p>
  <progress max="100" value="${percent}" aria-label="Addresses of ${name} that are taken, ${family}">${percent} %</progress>`;

const isBad = ({ addresses, claims }: AddressClassView): boolean =>
  [...addresses, ...claims].some(({ word, count }) => bad.has(word) && count > 0);

const addressClass = (view: AddressClassView): Html => html`<li class="phase ${isBad(view) ? 'broken' : 'well'}">
  <p class="phase-head"><strong>${view.name === '' ? 'no class yet' : view.name}</strong> ${view.name !== '' && view.provisioner === '' ? html`<span class="told broken">${symbol('broken')} the class is gone</span>` : ''}</p>
  <p class="num">${counts(view.addresses, 'no address')}</p>
  <p class="quiet num">claims: ${counts(view.claims, 'none')}</p>
  ${view.usage.map((one) => usage(one, view.name))}
  ${view.outside > 0 ? html`<p class="note">${view.outside} outside of its ranges</p>` : ''}
</li>`;

const trouble = ({ object, what, ...view }: AddressTroubleView): Html => html`<li>
  ${told(view)} <strong>${object}</strong> <span class="note">${what}</span>
</li>`;

/** The address ledger: what is wrong first, then classes in numbers. */
export const addresses = (view: AddressesView): Html => html`<section class="panel full" aria-labelledby="addresses">
  <h2 id="addresses">Addresses</h2>
  ${view.troubles.length === 0 ? '' : html`<ul aria-label="Addresses to look at">${view.troubles.map(trouble)}</ul>`}
  ${view.troublesMore > 0 ? html`<p class="quiet">and ${view.troublesMore} more that are in conflict or lost</p>` : ''}
  <ul class="phases" aria-label="Classes of addresses">${view.classes.map(addressClass)}</ul>
  ${view.classesMore > 0 ? html`<p class="quiet">and ${view.classesMore} more classes</p>` : ''}
</section>`;
