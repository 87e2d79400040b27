/**
 * The runtime's scripts that talk to Kubernetes, with a real API server, the accounts and roles that the chart renders for
 * them, and real daemons: leader labels, network defaults, pinger.
 */
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { kubectl } from '../apiserver/kubectl.ts';
import { serviceAccountToken } from '../apiserver/namespace.ts';
import { type ApiServer, startApiServer } from '../apiserver/server.ts';
import { packageChart } from '../charts/build.ts';
import { freePort } from '../tools/ports.ts';
import { ensureTool } from '../tools/tools.ts';
import { type Env, eventually, OvnBed, type ScriptRun } from './bed.ts';

interface Context {
  bed: OvnBed;
  server: ApiServer;
}
const namespace = 'kube-system';
const test = suite<Context>('runtime and the API server');

/** Variables and files of a pod: its account's token and authority, and where the API server is. */
async function podEnv(
  { bed, server }: Context,
  account: string,
  pod: string,
): Promise<Env & { readonly READY_FILE: string }> {
  const folder = join(bed.dir, `account-${pod}`);
  await mkdir(folder);
  await writeFile(join(folder, 'token'), await serviceAccountToken(server.admin, namespace, account));
  await writeFile(join(folder, 'ca.crt'), server.ca);
  const url = new URL(server.url);
  return {
    ACCOUNT_DIR: folder,
    READY_FILE: join(folder, 'ready'),
    KUBERNETES_SERVICE_HOST: url.hostname,
    KUBERNETES_SERVICE_PORT: url.port,
    POD_NAME: pod,
    POD_NAMESPACE: namespace,
  };
}
async function createPod({ server }: Context, name: string, app: string, podIP?: string): Promise<void> {
  const pods = `/api/v1/namespaces/${namespace}/pods`;
  const spec = { containers: [{ name: 'main', image: 'none' }] };
  await server.admin.expect('POST', pods, {
    body: { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels: { app } }, spec },
  });
  if (podIP === undefined) return;
  const status = { status: { podIP, podIPs: [{ ip: podIP }] } };
  await server.admin.expect('PATCH', `${pods}/${name}/status`, { body: status, type: 'application/merge-patch+json' });
}
const member = (bed: OvnBed): Env => ({
  ...bed.dirs('central'),
  NODE_IPS: '127.0.0.2',
  POD_IP: '127.0.0.2',
  OVN_ELECTION_TIMER: '1000',
  OVN_LEADER_PROBE_INTERVAL: '1',
});
const northbound = (bed: OvnBed): string => `unix:${join(bed.dir, 'central', 'run-ovn', 'ovnnb_db.sock')}`;
async function rows(bed: OvnBed, table: string, columns: string): Promise<string[]> {
  const argv = [
    'ovn-nbctl',
    '--timeout=10',
    `--db=${northbound(bed)}`,
    '--bare',
    `--columns=${columns}`,
    'list',
    table,
  ];
  const { out } = await bed.command(argv, bed.dirs('client'));
  return out.split('\n').filter(Boolean).sort();
}
const said = (target: ScriptRun, text: string) =>
  eventually(`the script to say "${text}"`, async (saw) => {
    saw(target.output().slice(-600));
    return target.output().includes(text) ? true : undefined;
  });

test.before(async (context) => {
  const progress = { onProgress: (line: string) => console.error(line) };
  context.server = await startApiServer({ tools: progress });
  context.bed = await OvnBed.start();
  const { bed, server } = context;
  const archive = join(bed.dir, 'chart.tgz');
  await writeFile(archive, (await packageChart()).bytes);
  const helm = await ensureTool('helm', progress);
  const shown = ['ovn-sa', 'ovn-CR', 'ovn-CRB', 'kube-ovn-crd'].flatMap((name) => ['-s', `templates/${name}.yaml`]);
  const home = {
    HELM_CACHE_HOME: bed.dir,
    HELM_CONFIG_HOME: bed.dir,
    HELM_DATA_HOME: bed.dir,
    KUBECONFIG: join(bed.dir, 'none'),
  };
  const rendered = await promisify(execFile)(helm, ['template', 'network', archive, ...shown], {
    env: home,
    maxBuffer: 1 << 24,
  });
  const applied = await kubectl(server, ['apply', '--server-side', '-f', '-'], { input: rendered.stdout });
  assert.is(applied.code, 0, applied.stderr);
  const established = await kubectl(server, ['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s']);
  assert.is(established.code, 0, established.stderr);
});
test.after(async ({ bed, server }) => {
  await bed.close();
  await server.stop();
});

test('the leader of both databases and of northd is written as labels of its pod', async (context) => {
  const { bed, server } = context;
  await createPod(context, 'ovn-central-a', 'ovn-central');
  bed.script('start-db.sh', member(bed));
  const env = { ...member(bed), ...(await podEnv(context, 'ovn-ovs', 'ovn-central-a')) };
  bed.script('ovn-leader-checker.sh', env, 'outside');
  await eventually('the labels', async (saw) => {
    const { body } = await server.admin.expect('GET', `/api/v1/namespaces/${namespace}/pods/ovn-central-a`);
    saw(JSON.stringify(body.metadata.labels));
    const { labels } = body.metadata;
    const leads = ['nb', 'sb', 'northd'].every((part) => labels[`ovn-${part}-leader`] === 'true');
    return leads && labels.app === 'ovn-central' ? true : undefined;
  });
});

test('two controllers at once write the defaults once, and write again what is deleted', async (context) => {
  const { bed, server } = context;
  const runs = await Promise.all(
    ['controller-a', 'controller-b'].map(async (pod) => {
      const env = { ...bed.dirs(pod), OVN_NB_ADDR: northbound(bed), ...(await podEnv(context, 'ovn', pod)) };
      return bed.script('start-controller.sh', env, 'outside', '--default-cidr=10.20.0.0/16,fd00:20::/112');
    }),
  );
  for (const target of runs) await said(target, 'defaults: kept');
  assert.equal(await rows(bed, 'Logical_Router', 'name'), ['ovn-cluster']);
  assert.equal(await rows(bed, 'Logical_Switch', 'name'), ['join', 'ovn-default']);
  const ports = (await rows(bed, 'Logical_Router_Port', 'name,networks')).join('\n');
  assert.match(ports, /10\.20\.0\.1\/16 fd00:20::1\/112/);
  assert.match(ports, /100\.64\.0\.1\/16/);
  const subnet = await server.admin.expect('GET', '/apis/kubeovn.io/v1/subnets/ovn-default');
  const wanted = {
    vpc: 'ovn-cluster',
    protocol: 'Dual',
    cidrBlock: '10.20.0.0/16,fd00:20::/112',
    gateway: '10.20.0.1,fd00:20::1',
  };
  assert.equal(subnet.body.spec, wanted);
  await server.admin.expect('GET', '/apis/kubeovn.io/v1/subnets/join');
  await server.admin.expect('GET', '/apis/kubeovn.io/v1/vpcs/ovn-cluster');
  for (const [command, name] of [
    ['ls-del', 'ovn-default'],
    ['lr-del', 'ovn-cluster'],
  ] as const) {
    await bed.command(['ovn-nbctl', `--db=${northbound(bed)}`, command, name], bed.dirs('client'));
    await eventually(`what ${command} ${name} took away`, async (saw) => {
      const names = [await rows(bed, 'Logical_Switch', 'name'), await rows(bed, 'Logical_Router_Port', 'name')];
      saw(names.join(' '));
      return names.every((list) => list.length === 2) ? true : undefined;
    });
  }
});

test('the pinger is ready by the API server, and tells which peers answer', async (context) => {
  const { bed } = context;
  const port = String(await freePort());
  const addresses = ['127.0.0.31', '127.0.0.32'];
  for (const [index, address] of addresses.entries())
    await createPod(context, `pinger-${index}`, 'kube-ovn-pinger', address);
  await createPod(context, 'pinger-gone', 'kube-ovn-pinger', '127.0.0.33');
  const started = addresses.map(async (address, index) => {
    const account = await podEnv(context, 'kube-ovn-app', `pinger-${index}`);
    const env = {
      ...bed.dirs(`pinger-${index}`),
      ...account,
      POD_IP: address,
      PINGER_PORT: port,
      PINGER_INTERVAL: '1',
    };
    return { env, target: bed.script('start-pinger.sh', env, 'outside') };
  });
  for (const { env, target } of await Promise.all(started)) {
    await said(target, 'API server reached; 1 peers answer, silent: 127.0.0.33');
    assert.ok((await bed.probe('fresh.sh', env, env.READY_FILE, '30')).ok);
    assert.is(await bed.stop(target), 0);
  }
});

test.run();
