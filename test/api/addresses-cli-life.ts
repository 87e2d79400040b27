import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { isObject } from '../../constructs/lib/json.ts';
import type { AuditEntry } from '../../executor/addressbook/adopt/audit.ts';
import { carryOutAdoption, tryAdoption } from '../../executor/addressbook/adopt/carryout.ts';
import { readFacts } from '../../executor/addressbook/adopt/facts.ts';
import { planAdoption } from '../../executor/addressbook/adopt/plan.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { type CrashPoint, crashTransport } from '../faults/crash.ts';
import { balanced, type CommandPlace } from './addresses-cli-bed.ts';
import { edgeOf } from './kubeBed.ts';

const never = new AbortController().signal;

/** Adopts a Service of its own through a client that may die, and after that through another one. */
export async function life(
  { server, namespace, place, edge }: CommandPlace,
  n: number,
  crash: { nth: number; at: CrashPoint },
): Promise<{ count: number; died: boolean; state: string; events: string[] }> {
  const [name, ip] = [`life-${n}`, `203.0.113.${100 + n}`];
  await balanced(server, namespace, name, ip);
  const dying: { crash?: ReturnType<typeof crashTransport> } = {};
  const mortal = edgeOf(server, {
    wrap: (inner) => {
      dying.crash = crashTransport(inner, crash);
      return dying.crash.transport;
    },
  });
  const events: string[] = [];
  const run = async (client: KubeClient, signal: AbortSignal): Promise<void> => {
    const audit = async (entry: AuditEntry): Promise<void> => {
      signal.throwIfAborted();
      events.push('step' in entry ? `${entry.event} ${entry.step}` : entry.event);
    };
    const request = { namespace, service: name };
    const read = await readFacts(client, request, signal);
    if (read.type !== 'read') throw new Error(JSON.stringify(read));
    const decision = planAdoption(read.facts, request);
    if (decision.type === 'refused') throw new Error(JSON.stringify(decision.problems));
    assert.equal(await tryAdoption({ client, signal }, decision.plan), []);
    const work = { client, clock: systemClock, signal, audit, limitMs: 15_000, pollMs: 20, tell: () => undefined };
    assert.equal(await carryOutAdoption(work, decision.plan), { type: 'adopted' });
  };
  const crashed = dying.crash?.crashed ?? never;
  await run(mortal.client, crashed).catch((error: unknown) => {
    if (!crashed.aborted) throw error;
  });
  if (crashed.aborted) await run(edge.client, never);
  await mortal.transport.close();
  const [claim, address, service] = [
    await place.get('IPAddressClaim', name),
    await place.get('IPAddress', `ip-${ip.replaceAll('.', '-')}`),
    (await server.admin.expect('GET', `/api/v1/namespaces/${namespace}/services/${name}`)).body as KubeObject,
  ];
  const ref = isObject(address?.spec?.claimRef) ? address.spec.claimRef : {};
  assert.is(ref.uid, claim?.metadata.uid);
  const seen = [
    claim?.spec,
    claim?.status?.phase,
    { ...address?.spec, claimRef: { ...ref, uid: '' } },
    address?.status?.associatedTo,
    service.metadata.annotations,
  ];
  const state = JSON.stringify(seen)
    .replaceAll(name, 'NAME')
    .replaceAll(ip, 'IP')
    .replaceAll(ip.replaceAll('.', '-'), 'IP');
  return { count: dying.crash?.count() ?? 0, died: crashed.aborted, state, events };
}
