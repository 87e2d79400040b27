/** Whether a controller of the ledger runs: seen by its Lease, over a whole duration of it, by no clock but our own. */
import { addressLeases } from '../../../constructs/api/addresses.ts';
import type { Clock } from '../../../constructs/lib/clock.ts';
import { objectOf } from '../../../constructs/lib/json.ts';
import type { KubeClient } from '../../kube/client.ts';

export interface HeldLease {
  readonly namespace: string;
  readonly name: string;
  readonly holder: string;
  /** Milliseconds that it is held for without being renewed. */
  readonly durationMs: number;
  /** Changes with every renewal. */
  readonly version: string;
}

export type ControllersSeen =
  /** Nobody renewed a Lease while it was looked at. `abandoned`: Leases that name a holder which did not. */
  | { readonly type: 'gone'; readonly abandoned: readonly HeldLease[] }
  | { readonly type: 'running'; readonly leases: readonly HeldLease[] }
  | { readonly type: 'failed'; readonly message: string };

type Look =
  /** `present`: every Lease of these names, held or not. */
  | { readonly type: 'looked'; readonly held: readonly HeldLease[]; readonly present: readonly string[] }
  | Extract<ControllersSeen, { type: 'failed' }>;

type Client = Pick<KubeClient, 'list'>;

/** Leases of the core and of the driver that name a holder, wherever they are. */
async function heldLeases(client: Client, signal: AbortSignal): Promise<Look> {
  const held: HeldLease[] = [];
  const present: string[] = [];
  for (const name of Object.values(addressLeases)) {
    const listed = await client.list({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', name }, { signal });
    if (listed.type !== 'listed') return { type: 'failed', message: listed.message };
    for (const { metadata, spec } of listed.items) {
      present.push(`${metadata.namespace ?? ''}/${name}`);
      const { holderIdentity, leaseDurationSeconds, renewTime } = objectOf(spec);
      if (typeof holderIdentity !== 'string' || holderIdentity === '') continue;
      const seconds = typeof leaseDurationSeconds === 'number' ? leaseDurationSeconds : 30;
      const version = `${holderIdentity} ${String(renewTime)} ${metadata.resourceVersion ?? ''}`;
      held.push({
        namespace: metadata.namespace ?? '',
        name,
        holder: holderIdentity,
        durationMs: seconds * 1_000,
        version,
      });
    }
  }
  return { type: 'looked', held, present };
}

/** The longest that a Lease is looked at; whoever renews less often than that is not taken for gone. */
const longestMs = 60_000;
const pollMs = 1_000;
const keyOf = ({ namespace, name }: HeldLease): string => `${namespace}/${name}`;

/** So long at least: a pod that was replaced has given its Lease back, and the next one is only starting. */
const shortestMs = 30_000;

/** Looks until a Lease is renewed or taken, or for as long as the longest of them is held without that. */
export async function controllersSeen(
  { client, clock, signal }: { readonly client: Client; readonly clock: Clock; readonly signal: AbortSignal },
  tell: (line: string) => void,
): Promise<ControllersSeen> {
  const first = await heldLeases(client, signal);
  if (first.type === 'failed') return first;
  // Where no Lease is left behind, no controller ever was, or somebody took its Leases away when it was gone.
  if (first.present.length === 0) return { type: 'gone', abandoned: [] };
  const before = new Map(first.held.map((lease) => [keyOf(lease), lease]));
  const slow = first.held.filter(({ durationMs }) => durationMs > longestMs);
  if (slow.length > 0) return { type: 'running', leases: slow };
  const limitMs = Math.max(shortestMs, ...first.held.map(({ durationMs }) => durationMs));
  const holders = new Map(first.held.map((lease) => [keyOf(lease), ` of ${lease.holder}`]));
  const names = first.present.map((key) => `${key}${holders.get(key) ?? ''}`).join(', ');
  tell(`looking for ${limitMs / 1000} s whether Lease ${names} is renewed or taken`);
  const end = clock.monotonic() + limitMs;
  for (;;) {
    await clock.sleep(pollMs, signal);
    const look = await heldLeases(client, signal);
    if (look.type === 'failed') return look;
    const leases = look.held.filter((lease) => before.get(keyOf(lease))?.version !== lease.version);
    if (leases.length > 0) return { type: 'running', leases };
    if (clock.monotonic() >= end) return { type: 'gone', abandoned: look.held };
  }
}
