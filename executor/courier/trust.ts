/** Puts the keys whose signatures are accepted into a cluster. No courier ever does this. */
import { labels, managedByValue, managers, trustSecret } from '../../constructs/api/constants.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import { refOf } from '../kube/types.ts';
import { readTrustSecret } from '../source/trust.ts';
import { refusal } from './apply.ts';

export interface TrustInput {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly signal: AbortSignal;
  /** PEM of public keys by key id. */
  readonly keys: ReadonlyMap<string, string>;
  /** Lets keys go that are trusted now and are not among the given ones. */
  readonly replace: boolean;
}

/** `differs`: not what was asked for, and said so; `refused`: the API server did not let it be read or written. */
export type TrustOutcome =
  | { readonly kind: 'written' | 'unchanged'; readonly keyIds: readonly string[] }
  | { readonly kind: 'differs'; readonly problem: Problem }
  | { readonly kind: 'refused'; readonly problem: Problem };

/** Writes Secret `keelson-trust`. Keys that are trusted already do not vanish unless that was said. */
export async function writeTrust(input: TrustInput): Promise<TrustOutcome> {
  const { client, namespace, signal, keys } = input;
  const object = `Secret ${namespace}/${trustSecret}`;
  const read = await readTrustSecret(client, namespace, signal);
  if (read.type === 'unavailable') return { kind: 'refused', problem: { ...read.problem, object } };
  const lost = [...read.trust.keys()].filter((id) => !keys.has(id)).sort();
  if (lost.length > 0 && !input.replace)
    return {
      kind: 'differs',
      problem: {
        reason: 'TrustKeysDiffer',
        message: `the cluster trusts keys that were not given: ${lost.join(', ')}`,
        object,
        remedy: 'give these too with --trust, or let them go with --replace-trust',
      },
    };
  const keyIds = [...keys.keys()].sort();
  if (lost.length === 0 && keyIds.every((id) => read.trust.has(id))) return { kind: 'unchanged', keyIds };
  const data = Object.fromEntries(
    keyIds.map((id) => [`${id}.pub`, Buffer.from(keys.get(id) ?? '').toString('base64')]),
  );
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: trustSecret, namespace, labels: { [labels.managedBy]: managedByValue } },
    type: 'Opaque',
    data,
  };
  const outcome = await client.apply(secret, { fieldManager: managers.none, signal });
  if (outcome.type === 'created' || outcome.type === 'configured' || outcome.type === 'unchanged')
    return { kind: 'written', keyIds };
  return { kind: 'refused', problem: refusal(refOf(secret), outcome) };
}
