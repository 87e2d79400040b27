import { formatDuration } from '../../constructs/lib/duration.ts';
import { askLeader, askPage } from '../../executor/page/ask.ts';
import type { DrainReport, EvidenceReport, InstallationEvidence } from '../../executor/page/evidence.ts';
import { FailedWithProblems } from '../failure.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { withClient } from '../kube.ts';
import { networkText, readNetworks } from '../networks.ts';
import { print, table } from '../output.ts';

export interface Options extends CommonOptions {
  readonly namespace: string;
  readonly node?: string;
  readonly page?: string;
}

const limitMs = 10_000;

/**
 * `keelson evidence`: what the last round of observation saw. The executor that leads is asked; where nobody can ask it, what
 * the status of the installations holds is told instead, and that it is no more than that.
 */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const { node, page, namespace } = options;
  const { signal } = invocation;
  if (page !== undefined) {
    const asked = await askPage(page, node, AbortSignal.any([signal, AbortSignal.timeout(limitMs)]));
    if (asked.type === 'answered') return tell(invocation, options, asked.report);
    throw new FailedWithProblems([{ reason: 'ObservationFailed', message: asked.why }]);
  }
  return withClient(invocation, options, async (client, credentials) => {
    const asked = await askLeader({ client, credentials, namespace, node, limitMs }, signal);
    if (asked.type === 'answered') return tell(invocation, options, asked.report);
    const networks = await readNetworks(client, signal);
    const why = `the executor could not be asked (${asked.why}); this is what the status holds`;
    const alone = node === undefined ? '' : `, which tells nothing of node ${node} by itself`;
    invocation.err(`${why}${alone}`);
    print(invocation, options.output, { source: 'status', installations: networks }, () =>
      networks.map((one) => networkText(one, invocation.clock.now())).join('\n\n'),
    );
    return exitCodes.done;
  });
}

function tell(invocation: Invocation, options: Options, report: EvidenceReport): ExitCode {
  print(invocation, options.output, { source: 'executor', ...report }, () => reportText(report, options.node));
  return exitCodes.done;
}

function reportText({ leads, identity, installations }: EvidenceReport, node: string | undefined): string {
  if (!leads) return `${identity} does not lead, and observes nothing`;
  if (installations.length === 0) return `${identity} has not completed a round of observation`;
  return installations.map((one) => installationText(one, node)).join('\n\n');
}

function installationText(one: InstallationEvidence, node: string | undefined): string {
  const [age, limit] = [one.ageMs, one.limitMs].map(formatDuration);
  const lines = [
    `network   ${one.namespace}/${one.name}, seen ${age} ago at ${one.seenAt}${one.stale ? `: stale, it held for ${limit}` : `, holds ${limit}`}`,
  ];
  const put = (head: string[], rows: string[][]): void => {
    if (rows.length > 0) lines.push('', table(head, rows));
  };
  if (node === undefined)
    put(
      ['CONDITION', 'STATUS', 'REASON', 'MESSAGE'],
      one.conditions.map(({ type, status, reason, message }) => [type, status, reason, message]),
    );
  put(
    ['DATABASE', 'NODE', 'MEMBER', 'TERM', 'INDEX', 'UNAPPLIED', 'LINKS UP'],
    one.members.map(({ database, node: at, status, term, index, unapplied, links }) =>
      [database, at, status, term, index, unapplied, links].map((cell) => cell ?? '-'),
    ),
  );
  put(
    ['NORTHD', 'STATE'],
    one.northd.map(({ node: at, status }) => [at, status]),
  );
  put(
    ['NODE', 'KUBELET', 'CENTRAL', 'CHASSIS', 'PROBE', ''],
    one.nodes.map(({ name, kubelet, central, chassis, probe }) => {
      const cells = [kubelet, central, chassis, probe];
      return [name, ...cells.map(({ word }) => word || '-'), cells.flatMap(({ detail }) => detail ?? []).join('; ')];
    }),
  );
  lines.push(...drainLines(one.drains ?? [], node));
  if (node !== undefined && one.nodes.length === 0) lines.push('', `node ${node} was not asked for anything`);
  return lines.join('\n');
}

/** What stands in the way of taking nodes away: of the one that is asked for, or of those that are cordoned. */
function drainLines(drains: readonly DrainReport[], node: string | undefined): string[] {
  const shown = drains.filter(({ cordoned }) => node !== undefined || cordoned);
  const rows = shown.flatMap(({ node: at, state, ageMs, blockers, unknown }) => {
    const why = [...blockers, ...unknown];
    const head = [at, state, `${formatDuration(ageMs)} ago`];
    if (why.length === 0) return [[...head, '-', '']];
    return why.map(({ reason, message }, n) => [...(n === 0 ? head : ['', '', '']), reason, message]);
  });
  const others = drains.length - shown.length;
  const rest = others === 0 ? [] : [`${others} nodes are not cordoned; --node NAME tells what each would take along`];
  const all = [...(rows.length === 0 ? [] : [table(['DRAIN', 'STATE', 'SEEN', 'REASON', 'MESSAGE'], rows)]), ...rest];
  return all.length === 0 ? [] : ['', ...all];
}
