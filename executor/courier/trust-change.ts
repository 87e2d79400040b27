/** Adds keys to those that a cluster trusts, or takes some away. */
import { trustSecret } from '../../constructs/api/constants.ts';
import type { TrustSet } from '../../constructs/api/signature.ts';
import type { KubeClient } from '../kube/client.ts';
import { readTrustSecret } from '../source/trust.ts';
import { type TrustOutcome, writeTrust } from './trust.ts';

export interface TrustChange {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly signal: AbortSignal;
  /** PEM of public keys by key id. */
  readonly add: ReadonlyMap<string, string>;
  /** Key ids. */
  readonly remove: ReadonlySet<string>;
}

const pemOf = (trust: TrustSet): Map<string, string> =>
  new Map([...trust].map(([id, key]) => [id, key.export({ type: 'spki', format: 'pem' }).toString()]));

/** Changes Secret `keelson-trust`; the last key never goes, since then nothing could be delivered any more. */
export async function changeTrust(change: TrustChange): Promise<TrustOutcome> {
  const { client, namespace, signal, add, remove } = change;
  const object = `Secret ${namespace}/${trustSecret}`;
  const read = await readTrustSecret(client, namespace, signal);
  if (read.type === 'unavailable') return { kind: 'refused', problem: { ...read.problem, object } };
  const keys = new Map([...pemOf(read.trust), ...add]);
  const differs = (message: string, remedy: string): TrustOutcome => ({
    kind: 'differs',
    problem: { reason: 'TrustKeysDiffer', message, object, remedy },
  });
  for (const id of remove) {
    if (!keys.delete(id))
      return differs(
        `key ${id} is not trusted; trusted are ${[...keys.keys()].sort().join(', ') || 'none'}`,
        'name a key id as keelson keys list shows it',
      );
  }
  if (keys.size === 0)
    return differs(
      'no key would be left, and every payload would be refused',
      'trust another key first: keelson keys trust FILE.pub',
    );
  const outcome = await writeTrust({ client, namespace, signal, keys, replace: true });
  if (outcome.kind !== 'written' || remove.size === 0) return outcome;
  const after = await readTrustSecret(client, namespace, signal);
  const left = after.type === 'read' ? [...remove].filter((id) => after.trust.has(id)) : [];
  if (left.length === 0) return outcome;
  return differs(
    `${left.join(', ')} stays: the Secret holds it under a name that another manager wrote`,
    `remove the entry with kubectl -n ${namespace} edit secret ${trustSecret}`,
  );
}
