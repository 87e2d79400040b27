/** Reads the keys that a person put into Secret `keelson-trust`; read anew for every verification. */
import { trustSecret } from '../../constructs/api/constants.ts';
import { readTrust, type TrustSet } from '../../constructs/api/signature.ts';
import { isObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';

export type TrustRead =
  | { readonly type: 'read'; readonly trust: TrustSet; readonly problems: readonly Problem[] }
  | { readonly type: 'unavailable'; readonly problem: Problem };

const decode = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : '', 'base64').toString('utf8');

/** The trust set; an absent Secret holds no keys. */
export async function readTrustSecret(client: KubeClient, namespace: string, signal: AbortSignal): Promise<TrustRead> {
  const got = await client.get({ apiVersion: 'v1', kind: 'Secret', namespace, name: trustSecret }, { signal });
  if (got.type === 'absent') return { type: 'read', trust: new Map(), problems: [] };
  if (got.type !== 'found') return { type: 'unavailable', problem: { reason: 'ApiUnavailable', message: got.message } };
  const { data } = got.object;
  const entries = Object.entries(isObject(data) ? data : {}).map(([name, value]) => [name, decode(value)]);
  return { type: 'read', ...readTrust(Object.fromEntries(entries)) };
}
