/**
 * Pods as ports of OVN on one node: the agent, the plugin as a container runtime starts it, and load balancers for Services,
 * with a real API server, real daemons and packets. No kube-proxy runs here: what a Service's address answers, OVN does.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { kubectl } from '../apiserver/kubectl.ts';
import { serviceAccountToken } from '../apiserver/namespace.ts';
import { type ApiServer, startApiServer } from '../apiserver/server.ts';
import { podNetworkProgram } from '../charts/runtime.ts';
import { imageCache } from '../cluster/programs.ts';
import { type Answer, type Env, eventually, OvnBed, type ScriptRun } from './bed.ts';

interface Context {
  bed: OvnBed;
  server: ApiServer;
  relay: Server;
  program: string;
  agent: ScriptRun;
  ovs: ScriptRun;
}
const test = suite<Context>('pods as ports of OVN');
const podCIDR = '10.244.7.0/24';
const central = '127.0.0.2';
const nodeAddress = '127.0.0.10';

const nodeDirs = (bed: OvnBed): Env => ({ ...bed.dirs('node-a'), NODE_NAME: 'node-a', POD_IP: nodeAddress });
const readyFile = (bed: OvnBed): string => join(bed.dir, 'cni-ready');
const socket = (bed: OvnBed): string => join(bed.dir, 'agent.sock');
const namespaceFile = (bed: OvnBed, pod: string): string => join(bed.dir, `${pod}.netns`);

/** What a pod has to reach the API server, which listens outside the bed's network. */
async function access({ bed, server }: Context, pod: string): Promise<Env> {
  const folder = join(bed.dir, `account-${pod}`);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'token'), await serviceAccountToken(server.admin, 'kube-system', 'network'));
  await writeFile(join(folder, 'ca.crt'), server.ca);
  const { hostname, port } = new URL(server.url);
  return { ACCOUNT_DIR: folder, KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };
}

/** The API server's address inside the bed leads, over a socket in a folder that both see, to the real one. */
function relayTo(bed: OvnBed, server: ApiServer): Server {
  const { hostname: host, port } = new URL(server.url);
  const path = join(bed.dir, 'api.sock');
  const outer = createServer((from) => {
    const to = connect({ host, port: Number(port) });
    pipeline(from, to, from, () => undefined);
  }).listen(path);
  const inner = `const { connect, createServer } = require('node:net');
const { pipeline } = require('node:stream');
createServer((from) => pipeline(from, connect(${JSON.stringify(path)}), from, () => undefined))
  .listen({ host: ${JSON.stringify(host)}, port: ${port} });`;
  bed.daemon([process.execPath, '-e', inner], bed.dirs('relay'));
  return outer;
}

async function startAgent(context: Context): Promise<ScriptRun> {
  const { bed, program } = context;
  return bed.script(
    'start-cniserver.sh',
    {
      ...nodeDirs(bed),
      ...(await access(context, 'agent')),
      OVN_NB_ADDR: `tcp:${central}:6641`,
      POD_NETWORK: program,
      READY_FILE: readyFile(bed),
      CNI_SOCKET: socket(bed),
      CNI_LEASES: join(bed.dir, 'leases'),
      CNI_CONF_DIR: join(bed.dir, 'cni'),
    },
    'inside',
    '--node-switch=join',
  );
}
const startOvs = ({ bed }: Context): ScriptRun => bed.script('start-ovs.sh', { ...nodeDirs(bed), OVN_DB_IPS: central });

const said = (target: ScriptRun, text: string) =>
  eventually(`the script to say "${text}"`, async (saw) => {
    saw(target.output().slice(-900));
    return target.output().includes(text) ? true : undefined;
  });

/** Runs the plugin as a container runtime does. */
async function plugin({ bed, program }: Context, command: string, pod: string, version = '1.0.0'): Promise<Answer> {
  const config = JSON.stringify({
    cniVersion: version,
    name: 'kube-ovn',
    type: 'kube-ovn',
    server_socket: socket(bed),
  });
  return bed.command(['bash', '-c', `exec ${program} <<<'${config}'`], {
    ...bed.dirs('runtime'),
    CNI_COMMAND: command,
    CNI_CONTAINERID: `container-of-${pod}`,
    CNI_IFNAME: 'eth0',
    CNI_NETNS: namespaceFile(bed, pod),
    CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=${pod}`,
  });
}
async function add(context: Context, pod: string): Promise<string> {
  const { bed } = context;
  const file = namespaceFile(bed, pod);
  const made = await bed.command(['sh', '-ec', `: > ${file}; unshare --net=${file} true`], bed.dirs('runtime'));
  assert.ok(made.ok, made.out);
  const answer = await plugin(context, 'ADD', pod);
  assert.ok(answer.ok, `${answer.out}\n${context.agent.output().slice(-900)}`);
  const result = JSON.parse(answer.out);
  assert.is(result.interfaces[0].name, 'eth0');
  return String(result.ips[0].address);
}
const insidePod = ({ bed }: Context, pod: string, ...argv: string[]): Promise<Answer> =>
  bed.command(['nsenter', `--net=${namespaceFile(bed, pod)}`, ...argv], bed.dirs('runtime'));
const nbctl = async ({ bed }: Context, ...args: string[]): Promise<string> => {
  const answer = await bed.command(
    ['ovn-nbctl', '--timeout=10', `--db=tcp:${central}:6641`, ...args],
    bed.dirs('client'),
  );
  assert.ok(answer.ok, answer.out);
  return answer.out;
};
const ask = (url: string): string[] => ['curl', '--silent', '--show-error', '--max-time', '2', url];

/** A server in a pod that says its name. */
function serve({ bed }: Context, pod: string): void {
  const script = `require('node:http').createServer((request, response) => response.end('this is ${pod}')).listen(8080)`;
  bed.daemon(['nsenter', `--net=${namespaceFile(bed, pod)}`, process.execPath, '-e', script], bed.dirs('runtime'));
}
const answers = (what: string, look: () => Promise<Answer>, wanted: string) =>
  eventually(what, async (saw) => {
    const { out } = await look();
    saw(out);
    return out === wanted ? true : undefined;
  });

test.before(async (context) => {
  context.server = await startApiServer({ tools: { onProgress: (line) => console.error(line) } });
  context.program = await podNetworkProgram(imageCache(process.env));
  context.bed = await OvnBed.start();
  const { bed, server } = context;
  context.relay = relayTo(bed, server);
  const reader = ['create', 'clusterrole', 'network', '--verb=get,list,watch'];
  const resources = '--resource=nodes,services,endpointslices.discovery.k8s.io';
  const binding = ['create', 'clusterrolebinding', 'network', '--clusterrole=network'];
  for (const args of [
    [...reader, resources],
    [...binding, '--serviceaccount=kube-system:network'],
  ]) {
    const done = await kubectl(server, args);
    assert.is(done.code, 0, done.stderr);
  }
  const spec = { podCIDR, podCIDRs: [podCIDR] };
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-a' }, spec };
  await server.admin.expect('POST', '/api/v1/nodes', { body: node });
  await mkdir(join(bed.dir, 'cni'));
  const member = { ...bed.dirs('central'), NODE_IPS: central, POD_IP: central, OVN_ELECTION_TIMER: '1000' };
  bed.script('start-db.sh', member);
});
test.after(async ({ bed, server, relay }) => {
  relay.close();
  await bed.close();
  await server.stop();
});

test('the runtime learns of the plugin only once the chassis is connected and the node has its own port', async (context) => {
  const { bed, program } = context;
  const conflist = join(bed.dir, 'cni', '01-kube-ovn.conflist');
  context.agent = await startAgent(context);
  await said(context.agent, 'waits: the chassis of the node is not connected');
  assert.not.ok(existsSync(conflist));
  context.ovs = startOvs(context);
  await said(context.agent, 'waits: the router port ovn-cluster-join does not exist yet');
  const env = { ...bed.dirs('controller'), ...(await access(context, 'controller')), POD_NETWORK: program };
  const controller = { ...env, OVN_NB_ADDR: `tcp:${central}:6641`, READY_FILE: join(bed.dir, 'controller-ready') };
  bed.script('start-controller.sh', controller, 'inside', '--enable-lb=true');
  await said(context.agent, 'node node-a has its network');
  await eventually('the configuration', async () => (existsSync(readyFile(bed)) ? true : undefined));
  const written = JSON.parse(await readFile(conflist, 'utf8'));
  assert.equal(written.plugins, [{ server_socket: socket(bed), type: 'kube-ovn' }]);
  const { out } = await plugin(context, 'VERSION', 'none');
  assert.equal(JSON.parse(out).supportedVersions, ['0.4.0', '1.0.0']);
});

test('two pods are ports of the node: they reach each other, and the node reaches them', async (context) => {
  assert.is(await add(context, 'web-a'), '10.244.7.2/24');
  assert.is(await add(context, 'web-b'), '10.244.7.3/24');
  assert.ok((await plugin(context, 'CHECK', 'web-a')).ok);
  for (const pod of ['web-a', 'web-b']) serve(context, pod);
  const peer = (): Promise<Answer> => insidePod(context, 'web-a', ...ask('http://10.244.7.3:8080/'));
  await answers('a pod to answer another', peer, 'this is web-b');
  const node = (): Promise<Answer> => context.bed.command(ask('http://10.244.7.2:8080/'), context.bed.dirs('runtime'));
  await answers('a pod to answer its node', node, 'this is web-a');
  const ports = await nbctl(context, '--bare', '--columns=name', 'find', 'Logical_Switch_Port', 'up=true', 'type=""');
  assert.equal(ports.split(/\s+/).sort(), ['node-node-a', 'web-a.default', 'web-b.default']);
});

test("a Service's address is a load balancer of OVN that follows its endpoints, and goes with it", async (context) => {
  const { admin } = context.server;
  const services = '/api/v1/namespaces/default/services';
  const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
  const made = await admin.expect('POST', services, {
    body: {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web' },
      spec: { ports: [{ name: 'http', port: 80 }] },
    },
  });
  const slice = (ready: string): object => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'web', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: ['10.244.7.2', '10.244.7.3'].map((ip) => ({ addresses: [ip], conditions: { ready: ip === ready } })),
  });
  await admin.expect('POST', slices, { body: slice('10.244.7.3') });
  const address = String(made.body.spec.clusterIP);
  const through = (): Promise<Answer> => insidePod(context, 'web-a', ...ask(`http://${address}/`));
  await answers('the Service to answer', through, 'this is web-b');
  await admin.expect('PUT', `${slices}/web`, { body: slice('10.244.7.2') });
  // The pod that asks is now its own Service's endpoint.
  await answers('the Service to follow', through, 'this is web-a');
  await admin.expect('DELETE', `${services}/web`);
  await eventually('the row to go', async (saw) => {
    const left = await nbctl(
      context,
      '--bare',
      '--columns=name',
      'find',
      'Load_Balancer',
      'external_ids:vendor=podnetwork',
    );
    saw(left);
    return left.includes('default/web') ? undefined : true;
  });
});

test('when the daemons of the node were killed, pods and node have their ports again', async (context) => {
  await context.bed.crash(context.ovs);
  context.ovs = startOvs(context);
  const node = (): Promise<Answer> => context.bed.command(ask('http://10.244.7.2:8080/'), context.bed.dirs('runtime'));
  await answers('a pod to answer its node', node, 'this is web-a');
  const dropped = await context.bed.command(['ovs-vsctl', '--timeout=5', 'del-br', 'br-int'], nodeDirs(context.bed));
  assert.ok(dropped.ok, dropped.out);
  const peer = (): Promise<Answer> => insidePod(context, 'web-a', ...ask('http://10.244.7.3:8080/'));
  await answers('pods to be plugged into a new bridge', peer, 'this is web-b');
  await answers('a pod to answer its node again', node, 'this is web-a');
});

test('an address is held over a restart of the agent, and free after the pod is deleted, once and twice', async (context) => {
  const { bed } = context;
  const leases = (): Promise<string[]> => readdir(join(bed.dir, 'leases'));
  await bed.stop(context.agent);
  const early = plugin(context, 'DEL', 'web-b');
  context.agent = await startAgent(context);
  const gone = await early;
  assert.ok(gone.ok, `the plugin waits for an agent that starts: ${gone.out}`);
  assert.ok((await plugin(context, 'DEL', 'web-b')).ok);
  assert.equal(await leases(), ['10.244.7.2']);
  assert.not.match(await nbctl(context, 'show'), /web-b/);
  assert.is(await add(context, 'web-c'), '10.244.7.3/24');
  const left = await bed.command(['ovs-vsctl', '--timeout=5', 'list-ports', 'br-int'], nodeDirs(bed));
  assert.is(left.out.split('\n').filter((name) => name.startsWith('pod')).length, 2);
  for (const pod of ['web-a', 'web-c']) assert.ok((await plugin(context, 'DEL', pod)).ok);
  assert.equal(await leases(), []);
  assert.ok(existsSync(join(bed.dir, 'cni', '01-kube-ovn.conflist')), 'the configuration stays for the next agent');
});

test('ports of pods that ended with their node are collected', async (context) => {
  await nbctl(context, 'lsp-add', 'pods-node-a', 'ghost.default');
  await nbctl(context, 'set', 'Logical_Switch_Port', 'ghost.default', 'external_ids={vendor=podnetwork,node=node-a}');
  await nbctl(context, 'lsp-add', 'pods-node-a', 'foreign');
  await context.bed.stop(context.agent);
  context.agent = await startAgent(context);
  await said(context.agent, 'node node-a has its network');
  const shown = await nbctl(context, 'lsp-list', 'pods-node-a');
  assert.not.match(shown, /ghost/);
  assert.match(shown, /foreign/);
});

test.run();
