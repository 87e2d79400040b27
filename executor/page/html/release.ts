import { html } from 'hono/html';
import type { GateView, HistoryView, PhaseView, ReleaseView } from '../model.ts';
import { age, digest, type Html, scrolling, symbol, told } from './parts.ts';

const calm = ({ mark }: GateView): boolean => mark === 'well' || mark === 'idle';

/** A gate that is open needs no more than its name; another one says why, unless the Release says it already. */
const gate = (view: GateView, said: string, now: number): Html => html`<li class="gate">
  <span class="gate-name">${symbol(view.mark)} ${view.name}${view.mark === 'well' ? html`<span class="unseen"> ${view.word}</span>` : html` <span class="quiet">${view.word}</span>`}</span>
  ${calm(view) ? '' : html`<span class="quiet">${view.reason} · ${age(view.since, now)}</span>`}
  ${calm(view) || view.message === said ? '' : html`<span class="note">${view.message}</span>`}
</li>`;

const phase = (view: PhaseView, said: string, now: number): Html => html`<li class="phase ${view.mark}">
  <p class="phase-head"><strong>${view.name}</strong> ${told(view)}</p>
  <p class="quiet num">${view.applied}/${view.total} objects · ${age(view.since, now)}</p>
  ${view.gates.length === 0 ? '' : html`<ul class="gates">${view.gates.map((one) => gate(one, said, now))}</ul>`}
</li>`;

const entry = (view: HistoryView, risks: boolean, now: number): Html => html`<tr>
  <td>${told(view)}</td>
  <td>${digest(view.digest)}</td>
  <td class="num">${age(view.startedAt, now)} ago</td>
  <td class="num">${view.completedAt === undefined ? html`<span class="quiet">not yet</span>` : html`${age(view.completedAt, now)} ago`}</td>
  ${risks ? html`<td class="wide">${view.acceptedRisks ?? ''}</td>` : ''}
</tr>`;

function history(view: ReleaseView, now: number): Html {
  if (view.history.length === 0) return html``;
  const { ledger } = view;
  const risks = view.history.some(({ acceptedRisks }) => acceptedRisks !== undefined);
  const table = html`<table>
    <thead><tr><th scope="col">State</th><th scope="col">Payload</th><th scope="col">Begun</th><th scope="col">Completed</th>${risks ? html`<th scope="col">Accepted risks</th>` : ''}</tr></thead>
    <tbody>${view.history.map((one) => entry(one, risks, now))}</tbody>
  </table>`;
  const held =
    ledger === undefined
      ? ''
      : html` · ledger of ${ledger.count} objects ${digest(ledger.digest)} in ${ledger.configMaps} ConfigMaps`;
  return html`<details id="history-${view.name}">
    <summary>History <span class="quiet">${view.history.length + view.historyMore} payloads${held}</span></summary>
    ${scrolling(`History of ${view.name}`, table)}
    ${view.historyMore > 0 ? html`<p class="quiet">and ${view.historyMore} older</p>` : ''}
  </details>`;
}

function blocker({ blocker: found }: ReleaseView, now: number): Html {
  if (found === undefined) return html``;
  const limits = [
    found.softLimit === undefined ? '' : `soft limit ${found.softLimit}`,
    found.limit === undefined ? '' : `limit ${found.limit}`,
  ].filter((text) => text !== '');
  return html`<p class="callout unknown"><strong>Waits ${age(found.since, now)}</strong> for ${found.what}: ${found.message}
    <span class="quiet">${[found.reason, ...limits].join(' · ')}</span></p>`;
}

/** A Release: where it is, what it waits for, its phases and gates, what it was before. */
export function release(view: ReleaseView, now: number): Html {
  const { ready, plan } = view;
  const moving = view.desired !== undefined && view.desired !== view.actual;
  return html`<article class="release" aria-labelledby="release-${view.name}">
    <header>
      <h3 id="release-${view.name}">${symbol(ready.mark)} ${view.name}</h3>
      <p><span class="told ${ready.mark}">Ready ${ready.word}</span> <span class="quiet">${ready.reason}</span></p>
      <p class="facts num">
        <span>${view.state}${view.step === '' ? '' : html` · ${view.step} ${view.done}/${view.total}`}</span>
        <span>enforced ${digest(view.actual)}</span>
        ${moving ? html`<span>wanted ${digest(view.desired)}</span>` : ''}
        ${plan === undefined ? '' : html`<span>plan ${plan.changeClass}: ${plan.counts}</span>`}
      </p>
      ${view.done < view.total ? html`<progress max="${view.total}" value="${view.done}" aria-label="Objects of ${view.name} in place">${view.done}/${view.total}</progress>` : ''}
    </header>
    ${view.loud.map((text) => html`<p class="callout unknown"><strong>Set by hand</strong> ${text}</p>`)}
    ${blocker(view, now)}
    ${ready.mark === 'well' || ready.message === '' || view.blocker !== undefined ? '' : html`<p class="note">${ready.message}</p>`}
    ${view.failures.map((one) => html`<p class="callout broken"><strong>${symbol('broken')} ${one.reason}</strong> ${one.object} ${one.message}</p>`)}
    ${view.phases.length === 0 ? '' : html`<ol class="phases">${view.phases.map((one) => phase(one, view.blocker?.message ?? '', now))}</ol>`}
    ${history(view, now)}
  </article>`;
}
