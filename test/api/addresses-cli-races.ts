/** Others who write in the moment between a look and a write of an adoption. */
import type { Test } from 'uvu';
import * as assert from 'uvu/assert';
import { addressAnnotations } from '../../constructs/api/addresses.ts';
import { metallbProvisioner } from '../../constructs/api/metallb.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { carryOutAdoption } from '../../executor/addressbook/adopt/carryout.ts';
import { readFacts } from '../../executor/addressbook/adopt/facts.ts';
import { planAdoption } from '../../executor/addressbook/adopt/plan.ts';
import type { TransportRequest } from '../../executor/kube/transport.ts';
import { balanced, type CommandPlace, pin } from './addresses-cli-bed.ts';
import { edgeOf } from './kubeBed.ts';

const never = new AbortController().signal;

/** Tests that begin with an empty ledger. */
export function races(test: Test, at: CommandPlace): void {
  const { server, namespace, place } = at;
  const path = (name: string): string => `/api/v1/namespaces/${namespace}/services/${name}`;
  const patch = (where: string, body: object): Promise<unknown> =>
    server.admin.expect('PATCH', where, { body, type: 'application/merge-patch+json' });

  /** Adopts a Service; right before the first request that matches somebody else does something. @returns what it told. */
  async function interrupted(
    service: string,
    matches: (request: TransportRequest) => boolean,
    meanwhile: () => Promise<unknown>,
  ): Promise<string[]> {
    let open = true;
    const edge = edgeOf(server, {
      wrap: (inner) => async (request) => {
        if (open && matches(request)) {
          open = false;
          await meanwhile();
        }
        return inner(request);
      },
    });
    const { client } = edge;
    const read = await readFacts(client, { namespace, service }, never);
    assert.is(read.type, 'read');
    const decision =
      read.type === 'read'
        ? planAdoption(read.facts, { namespace, service })
        : { type: 'refused' as const, problems: [] };
    if (decision.type === 'refused') throw new Error(JSON.stringify(decision.problems));
    const quiet = { audit: async () => undefined, tell: () => undefined, limitMs: 15_000, pollMs: 20 };
    const outcome = await carryOutAdoption({ client, clock: systemClock, signal: never, ...quiet }, decision.plan);
    await edge.transport.close();
    assert.not.ok(open, 'it was interrupted');
    return outcome.type === 'adopted'
      ? ['adopted']
      : outcome.problems.map(({ reason, message }) => `${reason}: ${message}`);
  }

  const isPost =
    (plural: string) =>
    ({ method, path }: TransportRequest): boolean =>
      method === 'POST' && path.endsWith(`/${plural}`);

  test('a claim or an address that somebody makes in that moment stays theirs', async () => {
    await at.empty();
    await at.start();
    const parameters = { addresses: ['203.0.113.0/24'] };
    await place.create('IPAddressClass', 'public', { provisioner: metallbProvisioner, parameters });
    await balanced(server, namespace, 'race-1', '203.0.113.20');
    const claimed = await interrupted('race-1', isPost('ipaddressclaims'), () =>
      place.create('IPAddressClaim', 'race-1', { className: 'public' }),
    );
    assert.equal(claimed, ['StepRefused: it names no address']);
    await balanced(server, namespace, 'race-2', '203.0.113.21');
    const taken = await interrupted('race-2', isPost('ipaddresses'), () =>
      place.create('IPAddress', 'ip-203-0-113-21', {
        address: '203.0.113.21',
        className: 'public',
        claimRef: { namespace, name: 'race-1' },
        source: { fromClass: {} },
      }),
    );
    assert.equal(taken, ['StepRefused: it is there, and belongs to another claim']);
    for (const name of ['race-1', 'race-2']) {
      const { body } = await server.admin.expect('GET', `/api/v1/namespaces/${namespace}/services/${name}`);
      assert.is(body.metadata.annotations[addressAnnotations.claim], undefined);
    }
  });

  test('an address that its Service lets go while the claim is waited for is not recorded', async () => {
    const looksAt =
      (name: string) =>
      ({ method, path: where }: TransportRequest): boolean =>
        method === 'GET' && where.endsWith(`/ipaddresses/${name}`);
    const lets: readonly [why: string, letGo: (name: string) => Promise<unknown>][] = [
      ['it is not there any more', (name) => server.admin.expect('DELETE', path(name))],
      [
        'it does not have 203.0.113.31 any more',
        (name) => patch(`${path(name)}/status`, { status: { loadBalancer: null } }),
      ],
      [
        'it is not pinned to 203.0.113.32 any more',
        (name) => patch(path(name), { metadata: { annotations: { [pin]: '203.0.113.99' } } }),
      ],
    ];
    for (const [n, [why, letGo]] of lets.entries()) {
      const [service, address] = [`left-${n}`, `ip-203-0-113-${30 + n}`];
      await balanced(server, namespace, service, `203.0.113.${30 + n}`);
      const told = await interrupted(service, looksAt(address), () => letGo(service));
      assert.equal(told, [`StepRefused: ${why}`]);
      assert.is(await place.get('IPAddress', address), undefined, why);
    }
  });

  test('a Service that is written in that moment is looked at again: its status passes, another pin does not', async () => {
    const annotates =
      (name: string) =>
      ({ method, path: where }: TransportRequest): boolean =>
        method === 'PATCH' && where === path(name);
    await balanced(server, namespace, 'race-3', '203.0.113.22');
    const passed = await interrupted('race-3', annotates('race-3'), () =>
      patch(`${path('race-3')}/status`, {
        status: { conditions: [] },
        metadata: { annotations: { 'example.com/seen': '1' } },
      }),
    );
    assert.equal(passed, ['adopted']);
    await balanced(server, namespace, 'race-4', '203.0.113.23');
    const moved = await interrupted('race-4', annotates('race-4'), () =>
      patch(path('race-4'), { metadata: { annotations: { [pin]: '203.0.113.24' } } }),
    );
    assert.equal(moved, ['StepRefused: it is not pinned to 203.0.113.23 any more']);
    const { body } = await server.admin.expect('GET', path('race-4'));
    assert.equal(body.metadata.annotations, { [pin]: '203.0.113.24' });
  });
}
