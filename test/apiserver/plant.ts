/**
 * Objects that are there already: written into the store of an API server as that server itself would have stored them, which
 * takes seconds where tens of thousands of requests take minutes. Nothing defaults or validates them: who plants is to know
 * how they look, and finds out when what works on them has nothing left to do.
 */
import type { JsonObject } from '../../constructs/lib/json.ts';

export interface Planted {
  /** Below /registry/. */
  readonly key: string;
  readonly object: JsonObject;
}

/** Most operations of a transaction that etcd takes by default. */
const perTransaction = 128;

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** @throws when etcd refuses. */
export async function plant(etcdUrl: string, planted: readonly Planted[]): Promise<void> {
  for (let at = 0; at < planted.length; at += perTransaction) {
    const success = planted.slice(at, at + perTransaction).map(({ key, object }) => ({
      request_put: { key: base64(`/registry/${key}`), value: base64(JSON.stringify(object)) },
    }));
    const answer = await fetch(`${etcdUrl}/v3/kv/txn`, { method: 'POST', body: JSON.stringify({ success }) });
    if (!answer.ok) throw new Error(`etcd answered ${answer.status}: ${await answer.text()}`);
    await answer.body?.cancel();
  }
}
