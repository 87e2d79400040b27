/**
 * What a look finds wrong, and the condition that follows. A finding comes only from something that was seen: what could
 * not be seen leaves the condition Unknown, so that taking evidence away never makes a condition True.
 */
import { capMessage, type DomainCondition, type Why } from '../../constructs/api/conditions.ts';
import { limits } from '../../constructs/api/constants.ts';
import { reasonMessage, reasons } from '../../constructs/api/reasons.ts';
import { formatDuration } from '../../constructs/lib/duration.ts';
import type { CentralTarget, ChassisTarget, Component, Outcome } from './round.ts';

/** `broken`: seen not to work. `open`: not seen. `weak`: works, with less in reserve than was asked for. */
type Weight = 'broken' | 'open' | 'weak';

export interface Finding {
  readonly weight: Weight;
  /** A word of the table of reasons. */
  readonly reason: string;
  /** Whom it is about, shortly: a node, a member, a database. */
  readonly about: string;
  readonly message: string;
}

/** A condition with what led to it. */
export interface Judged {
  readonly condition: DomainCondition;
  readonly findings: readonly Finding[];
}

type Values = Readonly<Record<string, string | number>>;

/** A finding in the words of the table. @throws TypeError for a reason or a value that the table does not know. */
const make =
  (weight: Weight) =>
  (reason: string, about: string, values: Values = {}): Finding => ({
    weight,
    reason,
    about,
    message: reasonMessage(reason, { subject: about, ...values }),
  });

export const broken = make('broken');
export const open = make('open');
export const weak = make('weak');

/** How a member of OVN central is named: by its node, and by its pod where there is one. */
export const memberName = ({ node, pod }: Pick<CentralTarget, 'node' | 'pod'>): string =>
  pod === undefined ? `node ${node.name}` : `node ${node.name} (pod ${pod.name})`;

export const chassisName = ({ node }: Pick<ChassisTarget, 'node'>): string => `node ${node}`;

/** Components as people know them. */
const componentNames: Readonly<Record<Component, string>> = {
  nb: 'ovsdb-server of OVN_Northbound',
  sb: 'ovsdb-server of OVN_Southbound',
  northd: 'northd',
  progress: 'nb_cfg',
  ovsdb: 'ovsdb-server',
  controller: 'ovn-controller',
  vswitchd: 'ovs-vswitchd',
  addresses: 'addresses',
  checks: 'checks',
  chassis: 'chassis',
  gateways: 'gateways',
  ports: 'ports',
  database: 'database',
  cni: 'cni',
  kernel: 'kernel',
};

/** Why there is no evidence of a target at all; undefined when there is. */
export function silence(
  outcome: Outcome<'central'> | Outcome<'chassis'> | Outcome<'network'> | Outcome<'drain'>,
  about: string,
): Finding | undefined {
  switch (outcome.type) {
    case 'Evidence':
      return undefined;
    case 'Broken':
      return broken('EvidenceBroken', about, { message: outcome.message });
    case 'Hung':
      return open('EvidenceHung', about, { component: 'the sidecar', limit: formatDuration(outcome.limitMs) });
    case 'Unreachable':
      return open('EvidenceUnreachable', about, { message: outcome.message });
    case 'Untrusted':
      return open('EvidenceUntrusted', about, { message: outcome.message });
    case 'Unreadable':
      return open('EvidenceUnreadable', about, { message: outcome.message });
    case 'IdentityChanged':
      return open('EvidenceMoved', about, { message: outcome.message });
  }
}

interface Troubled {
  readonly problems: readonly {
    readonly component: string;
    readonly code: string;
    readonly message: string;
    readonly limitMs: number;
  }[];
}

/** Why an answer lacks a component. Only a daemon that nobody listens for is broken; the others may well work. */
export function missing(evidence: Troubled, component: Component, about: string): Finding {
  const problem = evidence.problems.find((one) => one.component === component);
  const name = componentNames[component];
  if (problem?.code === 'refused') return broken('DaemonDown', about, { component: name, message: problem.message });
  if (problem?.code === 'timeout')
    return open('EvidenceHung', about, { component: name, limit: formatDuration(problem.limitMs) });
  return open('EvidenceIncomplete', about, { component: name, message: problem?.message ?? 'it tells no reason' });
}

const rank = new Map(reasons.map(({ reason }, n) => [reason, n]));
const rankOf = (reason: string): number => rank.get(reason) ?? rank.size;

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Findings in the order of the table, each once; the order in which they were made does not matter. */
export function ordered(findings: readonly Finding[]): Finding[] {
  const seen = new Map(findings.map((one) => [`${one.reason} ${one.about} ${one.message}`, one]));
  return [...seen.values()].sort(
    (a, b) => rankOf(a.reason) - rankOf(b.reason) || compareText(a.about, b.about) || compareText(a.message, b.message),
  );
}

/** How many names a message holds before it counts, and how much of a long one. */
const namesTold = 3;
const nameLength = 80;
/** Of a message in all: whoever tells it on puts its type before it. */
const messageLength = limits.conditionMessage - 64;

/** Names for a message: each once, the first of them, and how many more there are. */
export function told(names: readonly string[]): string {
  const distinct = [...new Set(names)];
  const first = distinct
    .slice(0, namesTold)
    .map((name) => capMessage(name, nameLength))
    .join(', ');
  return distinct.length > namesTold ? `${first} and ${distinct.length - namesTold} more` : first;
}

/** The first finding in full, whom else it holds for, and in a word what else there is; only the first one is ever cut. */
function tell(first: Finding, findings: readonly Finding[], after: string): Why {
  const same = findings.filter(({ reason, about }) => reason === first.reason && about !== first.about);
  const others = findings.filter(({ reason }) => reason !== first.reason);
  const likewise = same.length === 0 ? '' : `; likewise ${told(same.map(({ about }) => about))}`;
  const besides =
    others.length === 0 ? '' : `; besides ${told(others.map(({ reason, about }) => `${reason} of ${about}`))}`;
  const rest = `${likewise}${besides}${after === '' ? '' : `. ${after}`}`;
  return { reason: first.reason, message: `${capMessage(first.message, messageLength - rest.length)}${rest}` };
}

/**
 * The condition that findings lead to: False by the first that is broken, Unknown by the first that is open, True
 * otherwise. What `after` says is told of a condition that is not True as well.
 */
export function judge(type: string, findings: readonly Finding[], good: Why, after = ''): Judged {
  const all = ordered(findings);
  const [broke, unseen] = [all.filter((one) => one.weight === 'broken'), all.filter((one) => one.weight === 'open')];
  const [status, why] = broke.length > 0 ? (['False', broke] as const) : (['Unknown', unseen] as const);
  const [first] = why;
  if (first === undefined) return { condition: { type, status: 'True', ...good }, findings: all };
  return {
    condition: { type, status, ...tell(first, [...why, ...(status === 'False' ? unseen : [])], after) },
    findings: all,
  };
}
