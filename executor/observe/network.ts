/**
 * NetworkReady: whether packets arrive. From every node, by every family that is wanted, the server on the same node, the one
 * on the next node of a ring, the Service by its address and the Service by its name are asked; what answers has to be the
 * very pod that was meant. It proves sampled paths: not all pairs, not UDP, no NetworkPolicy. Pure.
 */
import type { NetworkCheck } from '../../constructs/api/evidence/network.ts';
import { plainHost } from './endpoint.ts';
import { broken, type Finding, type Judged, judge, missing, open, silence } from './finding.ts';
import type { Outcome, PodFacts, Rollout } from './round.ts';

export type Family = NetworkCheck['family'];
export type NetworkStack = 'ipv4' | 'ipv6' | 'dual_stack';

export interface NetworkSample {
  /** The pod that asks. */
  readonly client: PodFacts;
  readonly outcome: Outcome<'network'>;
}

/** The Service before the servers. */
export interface ProbeService {
  readonly namespace: string;
  readonly name: string;
  readonly addresses: readonly string[];
}

/** What is asked, as far as it is known before anybody asked. */
type Seen = Pick<NetworkRound, 'serverPods' | 'service'>;

export interface NetworkRound {
  readonly clients: Rollout | undefined;
  readonly servers: Rollout | undefined;
  readonly samples: readonly NetworkSample[];
  readonly serverPods: readonly PodFacts[];
  readonly service: ProbeService | undefined;
  /** What of pods, nodes, DaemonSets or Service changed while the round went on; nothing of the round counts then. */
  readonly changed: readonly string[];
}

/** What status tells of the checks. */
export interface NetworkView {
  readonly nodes: number;
  readonly families: readonly ('ipv4' | 'ipv6')[];
  readonly checks: number;
  readonly passed: number;
  /** Nodes and families without a passed check; at most twenty. */
  readonly missing: readonly string[];
}

export interface JudgedNetwork extends Judged {
  readonly view: NetworkView | undefined;
}

const stacks: Readonly<Record<NetworkStack, readonly Family[]>> = {
  ipv4: ['IPv4'],
  ipv6: ['IPv6'],
  dual_stack: ['IPv4', 'IPv6'],
};
const families: readonly Family[] = ['IPv4', 'IPv6'];
const mostMissing = 20;

const familyOf = (address: string): Family => (address.includes(':') ? 'IPv6' : 'IPv4');
const ofFamily = (addresses: readonly string[], family: Family): string[] =>
  addresses.filter((address) => familyOf(address) === family).map(plainHost);

/** The families that have to work: those that were asked for, or else those that anything of the probe has. */
export function wantedFamilies(round: Seen, stack: NetworkStack | undefined): readonly Family[] {
  if (stack !== undefined) return stacks[stack];
  const addresses = [...(round.service?.addresses ?? []), ...round.serverPods.flatMap((pod) => pod.addresses)];
  return families.filter((family) => ofFamily(addresses, family).length > 0);
}

type Expected = Readonly<Pick<NetworkCheck, 'target' | 'family'>> & {
  /** Addresses of which one has to be asked. */
  readonly addresses: readonly string[];
  /** Servers of which one has to answer. */
  readonly servers: readonly PodFacts[];
  readonly what: string;
};

const byNode = (a: PodFacts, b: PodFacts): number => (a.node < b.node ? -1 : a.node > b.node ? 1 : 0);

/** What a client has to ask. A single node has no other to ask, and then the ring is left out. */
export function expectedChecks(round: Seen, client: PodFacts, wanted: readonly Family[]): Expected[] {
  const ring = round.serverPods.toSorted(byNode);
  const place = ring.findIndex(({ node }) => node === client.node);
  const own = ring[place];
  const next = ring.length > 1 && place >= 0 ? ring[(place + 1) % ring.length] : undefined;
  const service = round.service?.addresses ?? [];
  return wanted.flatMap((family): Expected[] => {
    const direct = (target: 'sameNode' | 'nextNode', server: PodFacts | undefined): Expected[] =>
      server === undefined
        ? []
        : [
            {
              target,
              family,
              addresses: ofFamily(server.addresses, family),
              servers: [server],
              what: `the server on node ${server.node}`,
            },
          ];
    const name = round.service?.name ?? 'the Service';
    return [
      ...direct('sameNode', own),
      ...direct('nextNode', next),
      {
        target: 'service',
        family,
        addresses: ofFamily(service, family),
        servers: ring,
        what: `the address of Service ${name}`,
      },
      {
        target: 'name',
        family,
        addresses: ofFamily(service, family),
        servers: ring,
        what: `the name of Service ${name}`,
      },
    ];
  });
}

/** NetworkReady of an installation without a probe: nobody looked, and nothing will. */
export const networkUnprobed = (): JudgedNetwork => ({
  ...judge('NetworkReady', [open('ProbeNotConfigured', 'the network')], { reason: 'PacketsDelivered', message: '' }),
  view: undefined,
});

/** Judges a round. Whatever fails leaves no result of an earlier round behind. */
export function judgeNetwork(round: NetworkRound, stack: NetworkStack | undefined): JudgedNetwork {
  const wanted = wantedFamilies(round, stack);
  const moved = round.changed.map((what) => open('EvidenceMoved', what, { message: 'the round counts no more' }));
  // Neither what arrived nor what did not: a server that was replaced meanwhile looks like a wrong one.
  if (moved.length > 0)
    return { ...judge('NetworkReady', moved, { reason: 'PacketsDelivered', message: '' }), view: undefined };
  const findings: Finding[] = serviceFindings(round, wanted, stack);
  const missed = new Set<string>();
  let [checks, passed] = [0, 0];
  for (const sample of round.samples) {
    const looked = sampleFindings(round, sample, wanted, stack);
    findings.push(...looked.findings);
    checks += looked.checks;
    passed += looked.passed;
    for (const family of looked.missed) missed.add(`node ${sample.client.node}: ${family}`);
  }
  if (findings.length === 0) findings.push(...rolloutFindings(round, wanted));
  const message = `${passed} of ${checks} checks from ${round.samples.length} nodes passed by ${wanted.join(' and ')}`;
  return {
    ...judge('NetworkReady', findings, { reason: 'PacketsDelivered', message }),
    view: {
      nodes: round.samples.length,
      families: wanted.map((family) => (family === 'IPv4' ? 'ipv4' : 'ipv6')),
      checks,
      passed,
      missing: [...missed].sort().slice(0, mostMissing),
    },
  };
}

function rolloutFindings(
  { clients, servers, samples, serverPods, service }: NetworkRound,
  wanted: readonly Family[],
): Finding[] {
  const nothing = (message: string): Finding[] => [open('NothingExpected', 'the network probe', { message })];
  if (clients === undefined || servers === undefined) return nothing('its DaemonSets do not exist');
  if (service === undefined) return nothing('its Service does not exist');
  if (wanted.length === 0) return nothing('it has no address yet');
  if (clients.desired <= 0 || servers.desired <= 0) return nothing('its DaemonSets want no pod');
  const counts: [Rollout, number][] = [
    [clients, samples.length],
    [servers, serverPods.length],
  ];
  return counts.flatMap(([workload, pods]) => {
    const { kind, name, desired, updated, ready, generation, observedGeneration } = workload;
    const has = observedGeneration < generation ? 0 : Math.min(updated, ready, pods);
    return has >= desired
      ? []
      : [
          open('RolloutInProgress', `${kind} ${name}`, {
            has,
            wanted: desired,
            what: 'nodes have an updated and ready pod',
          }),
        ];
  });
}

function familyFindings(
  about: string,
  addresses: readonly string[],
  wanted: readonly Family[],
  exact: boolean,
): Finding[] {
  if (addresses.length === 0) return [];
  return families.flatMap((family) => {
    const has = ofFamily(addresses, family).length > 0;
    if (has === wanted.includes(family)) return [];
    if (!has) return [broken('FamilyMissing', about, { family, wanted: wanted.join(' and ') })];
    return exact ? [broken('FamilyUnwanted', about, { family, wanted: wanted.join(' and ') })] : [];
  });
}

const serviceFindings = (
  { service }: NetworkRound,
  wanted: readonly Family[],
  stack: NetworkStack | undefined,
): Finding[] =>
  service === undefined
    ? []
    : familyFindings(`Service ${service.name}`, service.addresses, wanted, stack !== undefined);

interface Looked {
  readonly findings: Finding[];
  readonly checks: number;
  readonly passed: number;
  readonly missed: readonly Family[];
}

function sampleFindings(
  round: NetworkRound,
  sample: NetworkSample,
  wanted: readonly Family[],
  stack: NetworkStack | undefined,
): Looked {
  const { client, outcome } = sample;
  const about = `node ${client.node}`;
  const servers = round.serverPods.filter(({ node }) => node === client.node);
  const own = [client, ...servers].flatMap(({ addresses }) =>
    familyFindings(about, addresses, wanted, stack !== undefined),
  );
  const expected = expectedChecks(round, client, wanted);
  const none = (finding: Finding): Looked => ({
    findings: [...own, finding],
    checks: expected.length,
    passed: 0,
    missed: wanted,
  });
  if (servers.length === 0)
    own.push(open('EvidenceIncomplete', about, { component: 'a server', message: 'no pod of it runs there' }));
  const silent = silence(outcome, about);
  if (silent !== undefined || outcome.type !== 'Evidence') return none(silent ?? open('RoundPending', about));
  const { checks } = outcome.evidence.facts;
  if (checks === undefined) return none(missing(outcome.evidence, 'checks', about));
  const results = expected.map((one) => ({ family: one.family, finding: checkFinding(one, checks, about) }));
  const failed = results.flatMap(({ finding }) => finding ?? []);
  return {
    findings: [...own, ...failed],
    checks: expected.length,
    passed: expected.length - failed.length,
    missed: wanted.filter((family) => results.some((one) => one.family === family && one.finding !== undefined)),
  };
}

/** Why an expected check did not pass; the first reason of several that were made. */
function checkFinding(expected: Expected, checks: readonly NetworkCheck[], about: string): Finding | undefined {
  const { target, family, what } = expected;
  const made = checks.filter((check) => check.target === target && check.family === family);
  if (made.length === 0)
    return open('EvidenceIncomplete', about, {
      component: `the check of ${what} by ${family}`,
      message: 'it was not made',
    });
  for (const check of made) {
    const finding = madeFinding(expected, check, about);
    if (finding !== undefined) return finding;
  }
  return undefined;
}

function madeFinding(expected: Expected, check: NetworkCheck, about: string): Finding | undefined {
  const { family, what, addresses, servers, target } = expected;
  const { outcome, answered, address, resolved = [] } = check;
  const wrongPeer = (): Finding =>
    broken('ProbeWrongPeer', about, {
      family,
      what,
      observed: answered === undefined ? 'somebody else' : `pod UID ${answered.podUID} on node ${answered.node}`,
      wanted: serversText(servers),
    });
  const wrongAddress = (observed: string): Finding =>
    broken('ProbeWrongAddress', about, {
      family,
      what,
      observed,
      wanted: addresses.join(', ') || 'an address of that family',
    });
  if (outcome === 'wrongPeer') return wrongPeer();
  const names = ofFamily(resolved, family);
  if (target === 'name' && names.length > 0 && !sameAddresses(names, addresses)) return wrongAddress(names.join(', '));
  if (outcome === 'wrongAddress' || !addresses.includes(plainHost(address)))
    return wrongAddress(names.join(', ') || address);
  if (outcome !== 'ok')
    return broken('ProbeFailed', about, { family, what, address, observed: check.message ?? outcome });
  // A name that leads nowhere, and an answer that names nobody, prove nothing.
  if (target === 'name' && names.length === 0) return wrongAddress('no address');
  if (answered === undefined)
    return open('EvidenceIncomplete', about, {
      component: `who answered for ${what} by ${family}`,
      message: 'the check does not tell',
    });
  const meant = servers.some(
    ({ uid, node, namespace }) => uid === answered.podUID && node === answered.node && namespace === answered.namespace,
  );
  return meant ? undefined : wrongPeer();
}

const sameAddresses = (a: readonly string[], b: readonly string[]): boolean =>
  a.toSorted().join() === b.toSorted().join();

function serversText(servers: readonly PodFacts[]): string {
  const [first] = servers;
  if (servers.length !== 1 || first === undefined) return `one of the ${servers.length} servers`;
  return `pod ${first.name} with UID ${first.uid} on node ${first.node}`;
}
