import { networkApiVersion } from '../constructs/api/constants.ts';
import type { Condition } from '../constructs/api/fields.ts';
import { formatDuration } from '../constructs/lib/duration.ts';
import { isObject, type JsonObject, type JsonValue, objectsOf } from '../constructs/lib/json.ts';
import type { KubeClient } from '../executor/kube/client.ts';
import { table } from './output.ts';
import type { ReleaseView } from './releases.ts';

/** An installation of the network as its status tells it: what it holds of evidence is of the last round that still counts. */
export interface NetworkInstallation {
  readonly namespace: string;
  readonly name: string;
  readonly status: JsonObject;
}

/** Every installation of the cluster. @throws Error when they can not be read. */
export async function readNetworks(client: KubeClient, signal: AbortSignal): Promise<NetworkInstallation[]> {
  const listed = await client.list({ apiVersion: networkApiVersion, kind: 'KubeOVNInstallation' }, { signal });
  if (listed.type !== 'listed') throw new Error(`the installations can not be read: ${listed.message}`);
  return listed.items.map(({ metadata, status }) => ({
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    status: status ?? {},
  }));
}

/** Installations by the Releases that carry them. Releases are told although an account may not read installations. */
export async function networksOf(
  client: KubeClient,
  releases: readonly Pick<ReleaseView, 'name'>[],
  signal: AbortSignal,
): Promise<Map<string, { readonly installation: NetworkInstallation }>> {
  const names = new Set(releases.map(({ name }) => name).filter((name) => name.startsWith('network-')));
  if (names.size === 0) return new Map();
  const all = await readNetworks(client, signal).catch(() => []);
  return new Map(
    all.flatMap((installation) => {
      const release = `network-${installation.name}`;
      return names.has(release) ? [[release, { installation }] as const] : [];
    }),
  );
}

const textOf = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '');

/** Conditions in the order in which people ask: what of the network each is about. */
const subjects: readonly (readonly [string, string])[] = [
  ['OVNDBReady', 'databases'],
  ['NorthdReady', 'northd'],
  ['DataPlaneReady', 'chassis'],
  ['NetworkReady', 'packets'],
  ['HCPReady', 'peer'],
  ['TopologyRecorded', 'topology'],
  ['Degraded', 'degraded'],
];

function databaseRow(database: JsonObject): string[] {
  const members = objectsOf(database.members);
  const leader = members.find(({ serverID }) => textOf(database.leader) !== '' && serverID === database.leader);
  const nodes = members.map(({ node, address }) => textOf(node) || textOf(address));
  const standalone = database.model === 'standalone';
  return [
    textOf(database.name),
    standalone ? '-' : textOf(leader?.node) || 'none seen',
    textOf(database.term) || '-',
    standalone ? 'standalone' : nodes.join(' ') || 'none seen',
  ];
}

const textsOf = (value: JsonValue | undefined): string[] => (Array.isArray(value) ? value.map(String) : []);

/** How long ago a part of a status was seen. */
function ageOf({ observedAt }: JsonObject, now: number): string {
  const at = Date.parse(textOf(observedAt));
  return Number.isNaN(at) ? '' : `, ${formatDuration(Math.max(0, now - at))} ago`;
}

/** A line, and below it what is missing; `all` counts what is missing where not all of it is named. */
function withMissing(line: string, named: readonly string[], all: number): string[] {
  const more = all > named.length ? ` and ${all - named.length} more` : '';
  return named.length === 0 ? [line] : [line, `          missing: ${named.join(', ')}${more}`];
}

function northdLine({ northd }: JsonObject, now: number): string[] {
  if (!isObject(northd)) return [];
  const byState = Map.groupBy(objectsOf(northd.members), ({ state }) => textOf(state));
  const states = [...byState].map(
    ([state, members]) => `${state} on ${members.map(({ node }) => textOf(node)).join(' ')}`,
  );
  return [`northd    ${states.join('; ')}${ageOf(northd, now)}`];
}

function chassisLine({ dataPlane }: JsonObject, now: number): string[] {
  if (!isObject(dataPlane)) return [];
  const { nodes, connected, missing } = dataPlane;
  const line = `chassis   ${String(connected)} of ${String(nodes)} are connected${ageOf(dataPlane, now)}`;
  return withMissing(line, textsOf(missing), Number(nodes) - Number(connected));
}

function probeLine({ network }: JsonObject, now: number): string[] {
  if (!isObject(network)) return [];
  const families = textsOf(network.families).join(', ');
  const line = `probe     ${String(network.passed)} of ${String(network.checks)} checks passed on ${String(network.nodes)} nodes (${families})${ageOf(network, now)}`;
  return withMissing(line, textsOf(network.missing), 0);
}

/** Databases, leader, term, members, northd, chassis and probe, as the status has them. */
export function networkText({ namespace, name, status }: NetworkInstallation, now: number): string {
  const conditions = objectsOf(status.conditions) as unknown as Condition[];
  const rows = subjects.flatMap(([type, subject]) => {
    const found = conditions.find((condition) => condition.type === type);
    return found === undefined ? [] : [[subject, found.status, found.reason, found.message]];
  });
  const databases = isObject(status.topology) ? objectsOf(status.topology.databases).map(databaseRow) : [];
  const version = textOf(status.observedVersion);
  const seen = [northdLine, chassisLine, probeLine].flatMap((line) => line(status, now));
  const lines = [
    `network   ${namespace}/${name}, ${textOf(status.phase) || 'Pending'}${version === '' ? '' : `, Kube-OVN ${version}`}`,
    ...(databases.length === 0 ? [] : ['', table(['DATABASE', 'LEADER', 'TERM', 'MEMBERS'], databases)]),
    ...(rows.length === 0 ? [] : ['', table(['OBSERVED', 'STATUS', 'REASON', 'MESSAGE'], rows)]),
    ...(seen.length === 0 ? [] : ['', ...seen]),
  ];
  return lines.join('\n');
}
