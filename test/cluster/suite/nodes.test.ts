// time limit: 300s
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { systemClock } from '../../../constructs/lib/clock.ts';
import { waitFor } from '../../../constructs/lib/wait.ts';
import { nodeLayer } from '../../../images/base.ts';
import { buildImage, hostArchitecture } from '../../../images/build.ts';
import { buildKeelsonImage } from '../../../images/keelson.ts';
import { buildOvnImage } from '../../../images/ovn.ts';
import { pushImage } from '../../../images/push.ts';
import { runtimePackages, runtimePrograms, runtimeScripts } from '../../charts/runtime.ts';
import { imageCache } from '../programs.ts';
import { mustRun } from '../run.ts';
import { startCluster } from '../start.ts';
import type { Cluster } from '../types.ts';
import { apply, daemonSet, rollout } from './pods.ts';

let directory = '';
let cluster: Cluster;
let image = '';

test.before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'keelson-clusters-'));
  cluster = await startCluster({ directory, name: 'nodes', cni: 'none' });
  const built = await buildImage({
    layout: join(imageCache(process.env), 'layouts', 'test-node'),
    layers: [await nodeLayer(process.execPath)],
    config: { entrypoint: ['/bin/node'], user: '65532:65532' },
    architecture: hostArchitecture(process.arch),
  });
  image = await pushImage(built, { registry: cluster.registry.hostRef, repository: 'test/node' });
});

test.after(async () => {
  await cluster?.down();
  rmSync(directory, { recursive: true, force: true });
});

/** A container that answers HTTP with its host name, and with the text of a file when the path names one. */
function server(port: number) {
  const script = `const fs = require('node:fs'), os = require('node:os');
require('node:http').createServer((q, r) => r.end(q.url === '/' ? os.hostname() : fs.readFileSync(q.url))).listen(${port}, () => console.log('serving'));`;
  const probe = { httpGet: { path: '/', port }, periodSeconds: 1 };
  return { name: 'server', image, command: ['/bin/node', '-e', script], readinessProbe: probe };
}

interface PodView {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly nodeName: string };
  readonly status: { readonly podIP: string };
}

async function podsOf(app: string): Promise<PodView[]> {
  const list = JSON.parse(await cluster.kubectl(['get', 'pods', '-l', `app=${app}`, '-o', 'json'])) as {
    items: PodView[];
  };
  return list.items.toSorted((a, b) => (a.spec.nodeName < b.spec.nodeName ? -1 : 1));
}

/** Asks a URL from inside a pod. */
async function askFrom(pod: string, url: string): Promise<string> {
  const script = `fetch('${url}', { signal: AbortSignal.timeout(3000) }).then((r) => r.text()).then(console.log, (e) => { console.error(String(e.cause ?? e)); process.exit(1); })`;
  return (await cluster.kubectl(['exec', pod, '--', '/bin/node', '-e', script])).trim();
}

/** Asks until there is an answer: a Service reaches the nodes a moment after its pods are ready. */
function answered(what: string, ask: () => Promise<string>): Promise<string> {
  return waitFor({
    what,
    limitMs: 20_000,
    intervalMs: 300,
    clock: systemClock,
    probe: async (saw) => {
      try {
        return (await ask()) || undefined;
      } catch (error) {
        saw(String(error));
        return undefined;
      }
    },
  });
}

/** Asks a URL from a node's own network. */
async function askFromNode(node: string, url: string): Promise<string> {
  const script = `fetch('${url}', { signal: AbortSignal.timeout(3000) }).then((r) => r.text()).then(console.log)`;
  return (await mustRun(['nsenter', `--net=${cluster.node(node).netns}`, process.execPath, '-e', script])).trim();
}

test('without any CNI configuration, pods on the host network run on all nodes', async () => {
  for (const node of cluster.nodes) {
    assert.is((await node.exec(['ls', '-A', '/etc/cni/net.d'])).stdout, '');
  }
  const volumes = [{ name: 'data', hostPath: { path: '/etc/origin/data', type: 'DirectoryOrCreate' } }];
  const container = { ...server(8080), volumeMounts: [{ name: 'data', mountPath: '/data' }] };
  await apply(
    cluster,
    daemonSet('onhost', { hostNetwork: true, tolerations: [{ operator: 'Exists' }], containers: [container], volumes }),
  );
  await rollout(cluster, 'daemonset/onhost');
  for (const node of cluster.nodes) {
    assert.is(await (await fetch(`http://${node.ip}:8080/`)).text(), node.name);
    await node.exec(['sh', '-c', `echo only ${node.name} > /etc/origin/data/mark`]);
    assert.is(await (await fetch(`http://${node.ip}:8080/data/mark`)).text(), `only ${node.name}\n`);
  }
  const ready = await cluster.kubectl([
    'get',
    'nodes',
    '-o',
    'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}',
  ]);
  assert.is(ready, 'False False False');
});

test('with the bridge plugin, pods reach each other across nodes, and a Service is reached from pods and nodes', async () => {
  await cluster.setCni('bridge');
  await cluster.kubectl(['wait', '--for=condition=Ready', 'nodes', '--all', '--timeout=60s'], { limitMs: 70_000 });
  await apply(cluster, daemonSet('web', { containers: [server(8081)] }), {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'default' },
    spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8081 }] },
  });
  await rollout(cluster, 'daemonset/web');
  const pods = await podsOf('web');
  assert.equal(
    pods.map((pod) => pod.spec.nodeName),
    cluster.nodes.map((node) => node.name),
  );
  for (const [index, pod] of pods.entries()) {
    assert.ok(pod.status.podIP.startsWith(cluster.nodes[index]?.podCIDR.replace(/0\/24$/, '') ?? 'none'));
    for (const other of pods) {
      const url = `http://${other.status.podIP}:8081/`;
      assert.is(await askFrom(pod.metadata.name, url), other.metadata.name);
    }
  }
  const address = await cluster.kubectl(['get', 'service', 'web', '-o', 'jsonpath={.spec.clusterIP}']);
  const names = pods.map((pod) => pod.metadata.name);
  for (const pod of names) {
    const answer = await answered(`the Service to answer ${pod}`, () => askFrom(pod, `http://${address}/`));
    assert.ok(names.includes(answer), answer);
  }
  for (const node of cluster.nodes) {
    const answer = await answered(`the Service to answer ${node.name}`, () =>
      askFromNode(node.name, `http://${address}/`),
    );
    assert.ok(names.includes(answer), answer);
  }
});

test('logs and exec work, and a pod reaches the API server by its Service address', async () => {
  const [pod] = await podsOf('web');
  const name = pod?.metadata.name ?? '';
  assert.is(await cluster.kubectl(['logs', name]), 'serving\n');
  const who = await cluster.kubectl(['exec', name, '--', '/bin/node', '-p', 'process.getuid()']);
  assert.is(who, '65532\n');
  const script = `const fs = require('node:fs'), dir = '/var/run/secrets/kubernetes.io/serviceaccount/';
require('node:https').get({ host: process.env.KUBERNETES_SERVICE_HOST, path: '/version', ca: fs.readFileSync(dir + 'ca.crt'),
  headers: { authorization: 'Bearer ' + fs.readFileSync(dir + 'token', 'utf8') } }, (r) => { console.log(r.statusCode); r.destroy(); });`;
  assert.is(await cluster.kubectl(['exec', name, '--', '/bin/node', '-e', script]), '200\n');
});

test('a stopped node becomes NotReady, and runs its pods again when it is started', async () => {
  const node = cluster.node('node-2');
  await cluster.stopNode(node.name);
  assert.is(node.pid(), undefined);
  await cluster.kubectl(['wait', '--for=condition=Ready=Unknown', 'node/node-2', '--timeout=60s'], { limitMs: 70_000 });
  await cluster.startNode(node.name);
  await cluster.kubectl(['wait', '--for=condition=Ready', 'node/node-2', '--timeout=60s'], { limitMs: 70_000 });
  await rollout(cluster, 'daemonset/web');
  const url = await answered('the pod of node-2 to be back', async () => {
    const pod = (await podsOf('web')).find((each) => each.spec.nodeName === node.name);
    return fetch(`http://${pod?.status.podIP}:8081/`, { signal: AbortSignal.timeout(2_000) }).then((answer) =>
      answer.text(),
    );
  });
  assert.match(url, /^web-/);
  assert.equal(Object.keys(node.pids()).sort(), ['containerd', 'kube-proxy', 'kubelet']);
});

test('the registry keeps its images over a restart, the API server its objects', async () => {
  await cluster.stopRegistry();
  await cluster.startRegistry();
  const [, repository = '', digest = ''] = /^[^/]+\/([^@]+)@(.*)$/.exec(image) ?? [];
  const url = `http://${cluster.registry.hostRef}/v2/${repository}/manifests/${digest}`;
  const answer = await fetch(url, { headers: { accept: 'application/vnd.oci.image.index.v1+json' } });
  assert.is(answer.status, 200);
  assert.is(answer.headers.get('docker-content-digest'), digest);
  await cluster.stopApiServer();
  try {
    await cluster.kubectl(['get', 'nodes', '--request-timeout=2s']);
    assert.unreachable('a killed API server answered');
  } catch (error) {
    assert.match(String(error), /refused/);
  }
  await cluster.startApiServer();
  assert.match(await cluster.kubectl(['get', 'daemonset', 'web', '-o', 'name']), /web/);
});

test('a program packed as Keelson is runs as /keelson without rights', async () => {
  const entry = fileURLToPath(new URL('./program.ts', import.meta.url));
  const cache = join(directory, 'image');
  const built = await buildKeelsonImage({ entry, cache });
  assert.is((await buildKeelsonImage({ entry, cache })).digest, built.digest);
  const packed = await pushImage(built, { registry: cluster.registry.hostRef, repository: 'test/program' });
  await apply(cluster, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'program', namespace: 'default' },
    spec: {
      hostNetwork: true,
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          ...{ name: 'program', image: packed, args: ['executor', '--role=sync'] },
          securityContext: { runAsNonRoot: true, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
        },
      ],
    },
  });
  const log = await answered('the program to start', () => cluster.kubectl(['logs', 'program']));
  assert.equal(JSON.parse(log), {
    level: 30,
    user: 65532,
    arguments: ['executor', '--role=sync'],
    node: process.version,
    msg: 'started',
  });
});

test('the OVN runtime image carries daemons that run on every node, each with files of its own', async () => {
  const built = await buildOvnImage({
    packages: [...runtimePackages],
    programs: [...runtimePrograms],
    scripts: await runtimeScripts(imageCache(process.env)),
    cache: imageCache(process.env),
  });
  const ovn = await pushImage(built, { registry: cluster.registry.hostRef, repository: 'test/ovn' });
  const script = `set -e
ovsdb-tool create /etc/openvswitch/conf.db /usr/share/openvswitch/vswitch.ovsschema
ovsdb-server --detach --pidfile --remote=punix:/run/openvswitch/db.sock /etc/openvswitch/conf.db
ovs-vsctl --no-wait init
ovs-vswitchd --detach --pidfile
ovs-vsctl --timeout=20 add-br br-node -- set bridge br-node datapath_type=netdev
ovn-northd --version | head -1
ovs-vsctl get bridge br-node datapath_id
exec sleep infinity`;
  const hostPath = (path: string) => ({ hostPath: { path, type: 'DirectoryOrCreate' } });
  const container = {
    ...{ name: 'ovs', image: ovn, command: ['bash', '-c', script], securityContext: { privileged: true } },
    readinessProbe: {
      exec: { command: ['ovs-vsctl', '--timeout=2', 'br-exists', 'br-node'] },
      periodSeconds: 1,
      timeoutSeconds: 3,
    },
    volumeMounts: [
      { name: 'database', mountPath: '/etc/openvswitch' },
      { name: 'run', mountPath: '/run/openvswitch' },
    ],
  };
  const volumes = [
    { name: 'database', ...hostPath('/etc/origin/openvswitch') },
    { name: 'run', ...hostPath('/run/openvswitch') },
  ];
  await apply(cluster, daemonSet('ovs', { hostNetwork: true, containers: [container], volumes }));
  await rollout(cluster, 'daemonset/ovs');
  for (const node of cluster.nodes) {
    assert.match((await node.exec(['ls', '/run/openvswitch'])).stdout, /db\.sock/);
    assert.match(
      await mustRun(['nsenter', `--net=${node.netns}`, 'ip', '-brief', 'link', 'show', 'br-node']),
      /br-node/,
    );
  }
});

test.run();
