/**
 * Degraded: whether something of the network is lost that was asked for, while it may well still work. True by what was seen,
 * False only when everything was seen. Events about nodes lead to a look; they decide nothing here. Pure.
 */
import type { DomainCondition } from '../../constructs/api/conditions.ts';
import { type Finding, type Judged, judge, weak } from './finding.ts';
import type { CentralRound } from './round.ts';

/** What is weak about the nodes of OVN central by themselves. */
export const centralNodeFindings = ({ samples }: CentralRound): Finding[] =>
  samples.flatMap(({ target: { node, live } }) =>
    live?.unschedulable === true ? [weak('NodeUnschedulable', `node ${node.name}`)] : [],
  );

/** Nobody can look at these, by what was asked for; that says nothing about what is lost. */
const neverSeen: ReadonlySet<string> = new Set(['ProbeNotConfigured', 'PeerEvidenceMissing']);

const flipped: Readonly<Record<DomainCondition['status'], DomainCondition['status']>> = {
  True: 'False',
  False: 'True',
  Unknown: 'Unknown',
};

/** The condition from all findings of a round. Nobody having looked at all is not health either. */
export function judgeDegraded(judged: readonly Judged[], more: readonly Finding[]): Judged {
  const findings = [...judged.flatMap((one) => one.findings), ...more]
    .filter(({ reason }) => !neverSeen.has(reason))
    .map((one): Finding => (one.weight === 'weak' ? { ...one, weight: 'broken' } : one));
  const good = { reason: 'Redundant', message: 'everything that was asked for was seen to work' };
  const { condition } = judge('Degraded', findings, good);
  return { condition: { ...condition, status: flipped[condition.status] }, findings: [] };
}
