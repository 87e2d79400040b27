import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { type ChartObject, items, podSpecOf } from '../../renderer/network/object.ts';
import { injectProbes } from '../../renderer/network/probes.ts';
import { fullObjects, named } from './network-fixture.ts';

const image = 'registry.example.com/keelson/probe:0.1.0';

const host = (kind: string, name: string, container: string, mounts: JsonObject[], runAsUser?: number): ChartObject =>
  named('apps/v1', kind, name, {
    spec: {
      template: {
        spec: {
          containers: [
            {
              name: container,
              image: 'docker.io/kubeovn/kube-ovn:v1',
              ...(runAsUser === undefined ? {} : { securityContext: { runAsUser } }),
              ports: [{ containerPort: 6641 }],
              readinessProbe: { exec: { command: ['true'] } },
              volumeMounts: mounts,
            },
          ],
          volumes: [{ name: 'run', hostPath: { path: '/run/ovn' } }],
        },
      },
    },
  });

const central = host(
  'Deployment',
  'ovn-central',
  'ovn-central',
  [
    { name: 'run', mountPath: '/var/run/ovn' },
    { name: 'data', mountPath: '/etc/ovn', subPath: 'nb' },
    { name: 'log', mountPath: '/var/log/ovn' },
  ],
  65534,
);
const switchMounts = [
  { name: 'ovs', mountPath: '/run/openvswitch/' },
  { name: 'run', mountPath: '/run/ovn' },
];
const chassis = host('DaemonSet', 'ovs-ovn', 'openvswitch', switchMounts);

const sidecarOf = (object: ChartObject | undefined, container = 'keelson-probe'): JsonObject =>
  items(object === undefined ? [] : podSpecOf(object)?.containers).find(({ name }) => name === container) ?? {};

test('without an image of the probe nothing is touched', () => {
  const objects = fullObjects();
  assert.is(injectProbes(objects, undefined).objects, objects);
});

test('the sidecar declares no port and no probe, sees the folders of the daemons and nothing else of them', () => {
  const { objects, problems } = injectProbes([central, chassis, named('v1', 'Service', 'ovn-nb')], image);
  assert.equal(problems, []);
  const [first, second, third] = objects;
  assert.equal(third, named('v1', 'Service', 'ovn-nb'));
  const sidecar = sidecarOf(first);
  for (const absent of ['ports', 'readinessProbe', 'livenessProbe', 'startupProbe', 'lifecycle'])
    assert.is(sidecar[absent], undefined, absent);
  assert.equal(sidecar.args, ['probe', 'central']);
  assert.is(sidecar.image, image);
  assert.equal((sidecar.securityContext as JsonObject).runAsUser, 65534, 'sockets are those of the daemons');
  assert.equal((sidecar.securityContext as JsonObject).capabilities, { drop: ['ALL'] });
  assert.equal(items(sidecar.volumeMounts), [
    { name: 'run', mountPath: '/var/run/ovn', readOnly: true },
    { name: 'data', mountPath: '/etc/ovn', subPath: 'nb', readOnly: true },
    { name: 'keelson-evidence', mountPath: '/var/run/secrets/keelson.dev/evidence', readOnly: true },
    { name: 'keelson-no-token', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount', readOnly: true },
  ]);
  assert.equal(sidecarOf(second).args, ['probe', 'chassis']);
});

test('beside daemons of root it reaches their sockets whomever a chart gives the folder to', () => {
  const [first] = injectProbes([host('DaemonSet', 'ovs-ovn', 'openvswitch', switchMounts, 0)], image).objects;
  assert.equal(sidecarOf(first).securityContext, {
    runAsUser: 0,
    privileged: false,
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'], add: ['DAC_OVERRIDE'] },
  });
});

test('the sidecar that tells what a node would take along sees its Open vSwitch, and the certificate of OVN where there is one', () => {
  const withTls = host('DaemonSet', 'ovs-ovn', 'openvswitch', [
    ...switchMounts,
    { name: 'kube-ovn-tls', mountPath: '/var/run/tls' },
  ]);
  const mountsOf = (object: ChartObject): unknown[] => {
    const [injected] = injectProbes([object], image).objects;
    const drain = sidecarOf(injected, 'keelson-drain-probe');
    assert.equal(drain.args, ['probe', 'drain']);
    assert.is(drain.ports ?? drain.readinessProbe, undefined);
    const [, , , ...volumes] = items(injected === undefined ? [] : podSpecOf(injected)?.volumes);
    assert.equal(volumes, [], 'both sidecars share their volumes');
    return items(drain.volumeMounts).map(({ name, mountPath, readOnly }) => [name, mountPath, readOnly].join(' '));
  };
  const own = [
    'keelson-evidence /var/run/secrets/keelson.dev/evidence true',
    'keelson-no-token /var/run/secrets/kubernetes.io/serviceaccount true',
  ];
  assert.equal(mountsOf(chassis), ['ovs /run/openvswitch/ true', ...own]);
  assert.equal(mountsOf(withTls), ['ovs /run/openvswitch/ true', 'kube-ovn-tls /var/run/tls true', ...own]);
  const [first] = injectProbes([central], image).objects;
  assert.equal(sidecarOf(first, 'keelson-drain-probe'), {}, 'OVN central has no ports of its own');
});

test('its token is for evidence alone, and an empty volume lies over the usual one', () => {
  const [first] = injectProbes([central], image).objects;
  const volumes = items(first === undefined ? [] : podSpecOf(first)?.volumes);
  assert.equal(
    volumes.find(({ name }) => name === 'keelson-no-token'),
    { name: 'keelson-no-token', emptyDir: {} },
  );
  const evidence = volumes.find(({ name }) => name === 'keelson-evidence');
  assert.equal(evidence?.projected, {
    sources: [
      { serviceAccountToken: { audience: 'keelson-evidence', expirationSeconds: 3600, path: 'token' } },
      // Optional, so that a pod starts without the executor.
      {
        configMap: { name: 'keelson-evidence-trust', items: [{ key: 'ca.crt', path: 'ca.crt' }], optional: true },
      },
    ],
  });
});

test('what the chart has stays as it is, in its order', () => {
  const [first] = injectProbes([central], image).objects;
  const [before, after] = [podSpecOf(central), first === undefined ? undefined : podSpecOf(first)];
  assert.equal(items(after?.containers)[0], items(before?.containers)[0]);
  assert.equal(items(after?.volumes).slice(0, 1), items(before?.volumes));
  assert.is(items(after?.containers).length, 2);
});

test('a chart of another shape is a problem that names what is missing', () => {
  const { problems } = injectProbes(
    [
      host('Deployment', 'ovn-central', 'other', []),
      host('DaemonSet', 'ovs-ovn', 'openvswitch', [{ name: 'ovs', mountPath: '/run/openvswitch' }]),
    ],
    image,
  );
  assert.equal(
    problems.map(({ reason }) => reason),
    ['ChartShapeUnknown', 'ChartShapeUnknown'],
  );
  assert.match(problems[0]?.message ?? '', /container ovn-central/);
  assert.match(problems[1]?.message ?? '', /a mount of \/var\/run\/ovn/);
});

test.run();
