/** Requests as the API server counted them itself: by verb and answer, dry runs apart. */
import type { AdminClient } from '../apiserver/client.ts';

/** Counts by `VERB code`, with ` (dry run)` behind those that stored nothing. */
export type RequestCounts = Readonly<Record<string, number>>;

const sample = /^apiserver_request_total\{(.*)\} (\S+)$/;

function labelsOf(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key ?? '', value ?? '']));
}

/**
 * What the API server asks itself: it announces each group of a new definition, books the address of each Service, and
 * renews its own Lease.
 */
const own: ReadonlySet<string> = new Set(['', 'apiservices', 'leases']);
const isOwn = (group: string, resource: string): boolean =>
  own.has(resource) || (group === 'networking.k8s.io' && resource === 'ipaddresses');

/** What the API server has counted until now. Its talk with itself and all watches are left out. */
export async function readRequests(admin: AdminClient): Promise<RequestCounts> {
  const { body } = await admin.expect('GET', '/metrics', { headers: { accept: 'text/plain' } });
  const counts: Record<string, number> = {};
  for (const line of String(body).split('\n')) {
    const [, labels, value] = sample.exec(line) ?? [];
    if (labels === undefined) continue;
    const { verb = '', code = '', dry_run: dryRun = '', group = '', resource = '' } = labelsOf(labels);
    if (verb === 'WATCH' || verb === 'CONNECT' || isOwn(group, resource)) continue;
    const key = `${verb} ${code}${dryRun === '' ? '' : ' (dry run)'}`;
    counts[key] = (counts[key] ?? 0) + Number(value);
  }
  return counts;
}

/** What came in between. */
export function requestsBetween(before: RequestCounts, after: RequestCounts): RequestCounts {
  const between = Object.entries(after).map(([key, count]) => [key, count - (before[key] ?? 0)] as const);
  return Object.fromEntries(between.filter(([, count]) => count > 0).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** All of them, or those whose key passes. */
export const sumOf = (counts: RequestCounts, wanted: (key: string) => boolean = () => true): number =>
  Object.entries(counts).reduce((sum, [key, count]) => (wanted(key) ? sum + count : sum), 0);
