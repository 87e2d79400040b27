import { html } from 'hono/html';
import type {
  ConditionView,
  DatabaseView,
  DrainView,
  InstallationView,
  MatrixCell,
  MatrixView,
  MemberView,
} from '../model.ts';
import { age, type Html, scrolling, symbol, told } from './parts.ts';

/** A condition that somebody has to read. What the verdict says already is not said again. */
const open = (view: ConditionView, said: string, now: number): Html => html`<li class="condition">
  <p><span class="told ${view.mark}">${symbol(view.mark)} ${view.type}</span> <span class="quiet num">${view.status} · ${age(view.since, now)}</span></p>
  <p><span class="quiet">${view.reason}</span> ${said.includes(view.message) ? '' : view.message}</p>
</li>`;

/** Of those that are well while they are False that is said. */
const calm = (view: ConditionView): Html => {
  const status = view.status === 'True' ? '' : ` ${view.status}`;
  return html`<li>${symbol(view.mark)} ${view.type}${status} <span class="quiet">${view.reason}</span></li>`;
};

const needsReading = ({ mark }: ConditionView): boolean => mark === 'broken' || mark === 'unknown';

/** Those to be read first, one a line; the others beside one another. */
function conditions({ conditions: all, ready }: InstallationView, now: number): Html {
  const bad = all.filter(({ mark }) => mark === 'broken');
  const rest = all.filter((one) => needsReading(one) && one.mark !== 'broken');
  return html`${bad.length + rest.length === 0 ? '' : html`<ul class="conditions" aria-label="Conditions to look at">${[...bad, ...rest].map((one) => open(one, ready.message, now))}</ul>`}
    <ul class="inline calm" aria-label="Other conditions">${all.filter((one) => !needsReading(one)).map(calm)}</ul>`;
}

const member = (view: MemberView): Html => html`<tr>
  <th scope="row">${view.node}</th>
  <td>${told(view)}</td>
  <td class="extra"><code>${view.serverID}</code></td>
  <td class="num">${view.index}</td>
  <td class="num extra">${view.unapplied}</td>
  <td class="num">${view.links}</td>
</tr>`;

function database(view: DatabaseView): Html {
  const lead = view.leader === '' ? 'no leader seen' : `leader ${view.leader}`;
  const about = view.model === 'standalone' ? 'standalone' : `${lead} · term ${view.term === '' ? '?' : view.term}`;
  const table = html`<table>
    <thead><tr><th scope="col">Node</th><th scope="col">Member</th><th scope="col" class="extra">Id</th><th scope="col" class="num">Index</th><th scope="col" class="num extra">Unapplied</th><th scope="col" class="num">Links up</th></tr></thead>
    <tbody>${view.members.map(member)}</tbody>
  </table>`;
  return html`<section class="panel" aria-label="${view.name}">
    <h4>${view.name} <span class="quiet">${about}</span></h4>
    ${view.members.length === 0 ? '' : scrolling(`Members of ${view.name}`, table)}
  </section>`;
}

function northd({ northd: rows, progress }: InstallationView): Html {
  if (rows.length === 0) return html``;
  return html`<section class="panel" aria-label="northd">
    <h4>northd</h4>
    <ul class="inline">${rows.map((row) => html`<li>${symbol(row.mark)} <strong>${row.node}</strong> <span class="quiet">${row.word}</span></li>`)}</ul>
    ${progress === undefined ? '' : html`<p class="quiet num">changes: NB ${progress.nbCfg} → SB ${progress.sbCfg} → chassis ${progress.hvCfg}</p>`}
  </section>`;
}

function network({ network: seen }: InstallationView): Html {
  if (seen === undefined) return html``;
  const mark = seen.checks > 0 && seen.passed === seen.checks ? 'well' : 'broken';
  return html`<section class="panel" aria-label="Packets">
    <h4>Packets <span class="quiet">${seen.families}</span></h4>
    <p class="num">${symbol(mark)} ${seen.passed} of ${seen.checks} checks passed</p>
    ${seen.missing.length === 0 ? '' : html`<p class="note">missing: ${seen.missing.join(', ')}</p>`}
  </section>`;
}

const columns = ['Kubelet', 'Central', 'Chassis', 'Probe'] as const;

const cell = (view: MatrixCell): Html =>
  view.mark === 'idle'
    ? html`<td class="quiet">–<span class="unseen"> none</span></td>`
    : html`<td>${told(view)}${view.detail === '' ? '' : html`<span class="note">${view.detail}</span>`}</td>`;

const total = ({ counts }: MatrixView, column: 0 | 1 | 2 | 3): Html => {
  const { well, broken, unknown } = counts[column];
  const all = well + broken + unknown;
  if (all === 0) return html`<td class="quiet">–<span class="unseen"> none</span></td>`;
  const parts = [
    broken > 0 ? html`<span class="told broken">${symbol('broken')} ${broken}</span>` : '',
    unknown > 0 ? html`<span class="told unknown">${symbol('unknown')} ${unknown}</span>` : '',
  ];
  return html`<td class="num"><span class="told well">${symbol('well')} ${well}</span> <span class="quiet extra">of ${all}</span> ${parts}</td>`;
};

function matrix(view: MatrixView, name: string): Html {
  const table = html`<table class="matrix">
    <thead><tr><th scope="col">Node</th>${columns.map((one) => html`<th scope="col">${one}</th>`)}</tr></thead>
    <tbody>
      <tr class="total"><th scope="row">${view.nodes} nodes</th>${([0, 1, 2, 3] as const).map((column) => total(view, column))}</tr>
      ${view.rows.map((row) => html`<tr><th scope="row">${row.name}</th>${row.cells.map(cell)}</tr>`)}
    </tbody>
  </table>`;
  const left = view.more > 0 ? `, and ${view.more} more that are not well` : '';
  return html`<section class="panel full" aria-labelledby="nodes-${name}">
    <h4 id="nodes-${name}">Nodes ${view.summarised ? html`<span class="quiet">those that are not well${left}</span>` : ''}</h4>
    ${scrolling('Nodes', table)}
  </section>`;
}

const drain = (view: DrainView): Html => html`<li>
  <p><strong>${view.node}</strong> ${told(view)}</p>
  ${view.why.map((why) => html`<p class="note">${why}</p>`)}
</li>`;

/** Nodes that somebody is taking away. It only tells: whoever takes them away decides. */
function drains({ drains: rows, drainsMore, name }: InstallationView): Html {
  if (rows.length === 0) return html``;
  return html`<section class="panel full" aria-labelledby="drain-${name}">
    <h4 id="drain-${name}">Drain <span class="quiet">cordoned nodes, and what would be lost with them</span></h4>
    <ul>${rows.map(drain)}</ul>
    ${drainsMore > 0 ? html`<p class="quiet">and ${drainsMore} more</p>` : ''}
  </section>`;
}

function evidence({ evidence: seen }: InstallationView, now: number): Html {
  if (seen === undefined) return html`<p class="quiet">This process has not completed a round of observation yet.</p>`;
  const took = `${(seen.tookMs / 1000).toFixed(1)} s`;
  if (seen.stale)
    return html`<p class="callout unknown"><strong>${symbol('unknown')} Stale</strong> last seen ${age(seen.seenAt, now)} ago, which is longer than it holds</p>`;
  return html`<p class="quiet num">last round ${age(seen.seenAt, now)} ago, took ${took}, holds ${Math.round(seen.limitMs / 1000)} s</p>`;
}

const verdicts: Readonly<Record<string, string>> = { True: 'Ready', False: 'Not ready', Unknown: 'Not verified' };

/** An installation: its verdict first, then what it rests on. */
export function installation(view: InstallationView, now: number): Html {
  const { ready } = view;
  const version = view.version === '' ? '' : ` · Kube-OVN ${view.version}`;
  return html`<section class="installation" aria-labelledby="installation-${view.name}">
    <header class="verdict ${ready.mark}">
      <p class="eyebrow">Network ${view.namespace}/${view.name}${version}</p>
      <h2 id="installation-${view.name}">${symbol(ready.mark)} ${verdicts[ready.status] ?? verdicts.Unknown} <span class="reason">Ready=${ready.status} · ${ready.reason}</span></h2>
      <p class="why">${ready.message}</p>
      ${evidence(view, now)}
    </header>
    ${conditions(view, now)}
    <div class="panels">
      ${view.databases.map(database)}
      ${northd(view)}
      ${network(view)}
      ${drains(view)}
      ${view.matrix === undefined ? '' : matrix(view.matrix, view.name)}
    </div>
  </section>`;
}
