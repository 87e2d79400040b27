/** `keelson evidence` reaches the page of whoever leads: through a real API server, and a kubelet that only forwards. */

import { randomBytes } from 'node:crypto';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../constructs/lib/clock.ts';
import { askLeader, askPage } from '../../executor/page/ask.ts';
import { evidenceReport } from '../../executor/page/evidence.ts';
import { pageModel } from '../../executor/page/page.ts';
import { servePage } from '../../executor/page/server.ts';
import { freshNamespace, serviceAccountToken } from '../apiserver/namespace.ts';
import { sharedApiServer } from '../apiserver/shared.ts';
import { installationOf, knownOf, networkRelease, observedOf, readyCondition } from '../pure/page-support.ts';
import { startKubelet } from '../standins/kubelet.ts';
import { edgeOf, staticCredentials } from './kubeBed.ts';

const server = await sharedApiServer();
const { client, transport } = edgeOf(server);
const places = new Map<number, number>();
const kubelet = await startKubelet(places);
const well = observedOf();
const known = knownOf(installationOf(well, readyCondition), well, [networkRelease()]);
const page = await servePage(
  {
    clock: systemClock,
    source: {
      model: () => pageModel({ identity: 'a', namespace: 'a', planOnly: false, known, tick: 9_000 }),
      evidence: (node) => evidenceReport('executor-a', known, 9_000, node),
    },
  },
  0,
);
const signal = AbortSignal.timeout(60_000);
const name = `page-${randomBytes(4).toString('hex')}`;
const namespace = await freshNamespace(server.admin, 'page');
const leases = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
const ask = (node?: string) =>
  askLeader({ client, credentials: staticCredentials(server), namespace, node, limitMs: 10_000 }, signal);

test.after(async () => {
  await server.admin.request('DELETE', `/api/v1/nodes/${name}`);
  await page.close();
  await kubelet.close();
  await transport.close();
});

async function pod(): Promise<string> {
  await server.admin.expect('POST', '/api/v1/nodes', { body: { apiVersion: 'v1', kind: 'Node', metadata: { name } } });
  const status = {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: kubelet.port } },
  };
  const type = 'application/merge-patch+json';
  await server.admin.expect('PATCH', `/api/v1/nodes/${name}/status`, { type, body: { status } });
  await serviceAccountToken(server.admin, namespace, 'keelson-executor');
  const spec = {
    nodeName: name,
    serviceAccountName: 'keelson-executor',
    terminationGracePeriodSeconds: 0,
    containers: [{ name: 'executor', image: 'none' }],
  };
  const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'keelson-executor-a' }, spec };
  await server.admin.expect('POST', `/api/v1/namespaces/${namespace}/pods`, { body });
  const running = { type, body: { status: { phase: 'Running' } } };
  await server.admin.expect('PATCH', `/api/v1/namespaces/${namespace}/pods/keelson-executor-a/status`, running);
  return 'keelson-executor-a';
}

test('why nobody can be asked is told: no Lease, nobody holds it, the pod is gone, no page behind the port', async () => {
  const why = async (): Promise<string> => {
    const asked = await ask();
    return asked.type === 'unanswered' ? asked.why : 'answered';
  };
  assert.match(await why(), 'the Lease of the executor can not be read');
  const metadata = { name: 'keelson-executor' };
  const lease = (holderIdentity: string) => ({ metadata, spec: { holderIdentity } });
  await server.admin.expect('POST', leases, { body: lease('') });
  assert.match(await why(), 'no executor leads');
  const type = 'application/merge-patch+json';
  const held = lease('keelson-executor-a_0123456789abc');
  await server.admin.expect('PATCH', `${leases}/keelson-executor`, { type, body: held });
  assert.match(await why(), /port-forward to .*\/keelson-executor-a port 10671/);
  await pod();
  assert.match(await why(), /port|page/);
});

test('whoever holds the Lease is asked, and of one node when it is named', async () => {
  places.set(10671, page.port);
  const all = await ask();
  assert.is(all.type, 'answered', JSON.stringify(all));
  if (all.type !== 'answered') return;
  assert.equal([all.report.identity, all.report.leads], ['executor-a', true]);
  assert.equal(
    all.report.installations[0]?.nodes.map((row) => row.name),
    ['n1', 'n2', 'n3'],
  );
  const one = await ask('n2');
  assert.is(one.type === 'answered' && one.report.installations[0]?.nodes.length, 1);
});

test('a page whose port is forwarded already is asked directly; what is no page is told', async () => {
  const direct = await askPage(`http://127.0.0.1:${page.port}`, 'n1', signal);
  assert.is(direct.type === 'answered' && direct.report.installations[0]?.nodes[0]?.name, 'n1');
  const other = await askPage(`http://127.0.0.1:${kubelet.port}`, undefined, signal);
  assert.is(other.type, 'unanswered');
});

test.run();
