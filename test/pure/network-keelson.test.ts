/** Changes of what Keelson itself puts into an installation: told apart from all others, and only where nothing can be lost. */
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { networkProbe } from '../../constructs/api/constants.ts';
import { type PayloadContent, type PayloadObject, payloadObjectId } from '../../constructs/api/payload.ts';
import { networkProbeObjects } from '../../constructs/k8s/networkprobe.ts';
import { isObject, type JsonObject, setAt } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { databasesNow, notWhole, rolloutProblems } from '../../executor/network/before-rollout.ts';
import { checkpointOf } from '../../executor/network/checkpoint.ts';
import { classifyNetwork } from '../../executor/network/classify.ts';
import type { Observations, Observed } from '../../executor/network/evidence.ts';
import { asCharted, ownChanges, type RenderedPayload } from '../../executor/network/injected.ts';
import { readInstallation } from '../../executor/network/snapshot.ts';
import { emptyMemory, judgeRound } from '../../executor/observe/verdict.ts';
import type { DomainDeps, PlannedChange } from '../../executor/release/domain.ts';
import { injectProbes } from '../../renderer/network/probes.ts';
import { object as chartObject, specOf } from './network-fixture.ts';
import { d2, d3, entry, installation } from './network-support.ts';
import { centralRound, withOutcome } from './observe-support.ts';
import { VirtualClock } from './virtualClock.ts';

const mount = (name: string, mountPath: string): JsonObject => ({ name, mountPath });
const hostPath = (name: string, path: string): JsonObject => ({ name, hostPath: { path } });

const central = (spec: JsonObject = {}): JsonObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'ovn-central', namespace: 'kube-system' },
  spec: {
    replicas: 3,
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
    template: {
      spec: {
        containers: [
          {
            name: 'ovn-central',
            image: 'kube-ovn:1',
            volumeMounts: [mount('run', '/var/run/ovn'), mount('data', '/etc/ovn')],
          },
        ],
        volumes: [hostPath('run', '/run/ovn'), hostPath('data', '/etc/origin/ovn')],
      },
    },
    ...spec,
  },
});
const chassis = (type = 'RollingUpdate'): JsonObject => ({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'ovs-ovn', namespace: 'kube-system' },
  spec: {
    updateStrategy: type === 'OnDelete' ? { type } : { type, rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    template: {
      spec: {
        containers: [
          {
            name: 'openvswitch',
            image: 'kube-ovn:1',
            volumeMounts: [mount('ovs', '/var/run/openvswitch'), mount('run', '/var/run/ovn')],
          },
        ],
        volumes: [hostPath('ovs', '/run/openvswitch'), hostPath('run', '/run/ovn')],
      },
    },
  },
});
const image = (n: number): string => `registry.example.com/keelson/probe@sha256:${String(n).repeat(64)}`;
const probed = (objects: readonly JsonObject[], n: number | undefined): JsonObject[] =>
  injectProbes(objects.map(chartObject), n === undefined ? undefined : image(n)).objects.map(({ body }) => body);

const phaseOf: Readonly<Record<string, string>> = { 'ovn-central': 'central', 'ovs-ovn': 'data-plane' };
const placed = (body: JsonObject, phase: string): { phase: string; entry: PayloadObject; body: JsonObject } => {
  const { name, namespace } = body.metadata as { name: string; namespace: string };
  const [apiVersion, kind] = [String(body.apiVersion), String(body.kind)];
  const flags = { keep: false, conflict: 'fail', recreate: false, createOnly: false, absent: false } as const;
  const files = { file: 'objects/0000.json', yaml: 'x.yaml', sha256: 'a'.repeat(64) };
  return { phase, body, entry: { ...files, apiVersion, kind, namespace, name, ...flags } };
};

/** A payload of these objects, network probe included where an image of it is given. */
function payload(bodies: readonly JsonObject[], network?: number): RenderedPayload {
  const options = { namespace: 'kube-system', pullSecrets: [], scheduling: {}, stack: 'ipv4' } as const;
  const all = [
    ...bodies.map((body) => placed(body, phaseOf[(body.metadata as { name: string }).name] ?? 'access')),
    ...(network === undefined
      ? []
      : networkProbeObjects({ ...options, image: image(network) }).map((body) => placed(body, 'network-probe'))),
  ];
  const phases = [...Map.groupBy(all, ({ phase }) => phase)].map(([name, objects]) => ({
    name,
    objects: objects.map((one) => one.entry),
  }));
  const byId = new Map(all.map((one) => [payloadObjectId(one.entry), one.body]));
  return { content: { phases } as unknown as PayloadContent, object: (id) => byId.get(id) };
}

const idsOf = ({ content }: RenderedPayload): string[] =>
  content.phases.flatMap(({ objects }) => objects.map((one) => payloadObjectId(one)));
const none = { created: [], configured: [], replaced: [], pruned: [], absent: [] };
/** The class of a change as the executor and CI come to it, by what became of each object. */
function classified(before: RenderedPayload, after: RenderedPayload, completed = true, changes = {}) {
  const [old, next] = [idsOf(before), idsOf(after)];
  const changed = (id: string): boolean => JSON.stringify(before.object(id)) !== JSON.stringify(after.object(id));
  return classifyNetwork({
    next: entry({ manifestDigest: String(d2) }),
    previous: entry(),
    completed,
    checkpoint: checkpointOf(entry(), String(d3)),
    observedVersion: '1.16.13',
    actions: {
      ...none,
      created: next.filter((id) => !old.includes(id)),
      configured: next.filter((id) => old.includes(id) && changed(id)),
      pruned: old.filter((id) => !next.includes(id)),
    },
    rendered: { before, after },
    ...changes,
  });
}
const classOf = (...args: Parameters<typeof classified>): string => {
  const { verdict, changeClass } = classified(...args);
  return `${verdict} ${changeClass}`;
};

const bare = [central(), chassis()];

test('sidecars that come, move and go are Keelson’s own change, whatever was complete', () => {
  const [without, one, two] = [undefined, 1, 2].map((n) => payload(probed(bare, n)));
  for (const completed of [true, false])
    for (const [before, after] of [
      [without, one],
      [one, two],
      [two, without],
    ])
      assert.is(classOf(before as RenderedPayload, after as RenderedPayload, completed), 'allowed keelson');
  assert.equal(
    probed(bare, 1).map((body) => asCharted(body)),
    bare,
  );
});

test('the network probe comes as an addition, moves with its image, and may go', () => {
  const [without, one, two] = [undefined, 1, 2].map((n) => payload(probed(bare, 1), n)) as [
    RenderedPayload,
    RenderedPayload,
    RenderedPayload,
  ];
  assert.is(classOf(without, one), 'allowed additive');
  assert.is(classOf(one, two), 'allowed keelson');
  assert.is(classOf(two, without), 'allowed keelson');
  const both = classified(payload(probed(bare, undefined)), payload(probed(bare, 1), 1), false);
  assert.is(both.changeClass, 'keelson');
});

test('a plan names what starts anew, and at whose pace', () => {
  const messages = (kind: string, replicas = 3): string[] => {
    const objects = [central({ replicas }), chassis(kind)];
    const verdict = classified(payload(probed(objects, undefined)), payload(probed(objects, 1)));
    return verdict.verdict === 'allowed' ? (verdict.effects ?? []).map(({ message }) => message) : [];
  };
  const [members, switches] = messages('RollingUpdate');
  assert.match(
    members ?? '',
    /pods of Deployment kube-system\/ovn-central are replaced, one at a time: .*OVN databases/,
  );
  assert.match(
    switches ?? '',
    /DaemonSet kube-system\/ovs-ovn .*node by node \(maxUnavailable 0, maxSurge 1\): Open vSwitch/,
  );
  assert.match(messages('OnDelete')[1] ?? '', /as a person deletes them \(updateStrategy OnDelete\)/);
  assert.match(messages('OnDelete', 1)[0] ?? '', /after it has ended/);
  const probes = classified(payload(bare, 1), payload(bare, 2));
  assert.ok(probes.verdict === 'allowed' && probes.effects?.length === 2);
  assert.match(JSON.stringify(probes), 'no daemon of the network');
});

test('pods are never made anew where their databases would go with them, or more than one member at once', () => {
  const rolled = (spec: JsonObject): ReturnType<typeof classified> => {
    const objects = [central(spec), chassis()];
    return classified(payload(probed(objects, undefined)), payload(probed(objects, 1)));
  };
  const strategies: JsonObject[] = [
    {},
    { strategy: { type: 'Recreate' } },
    { strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } },
    { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 2 } } },
    { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: '100%' } } },
  ];
  for (const spec of strategies.slice(1)) {
    const verdict = rolled(spec);
    assert.is(verdict.verdict, 'blocked');
    assert.match(JSON.stringify(verdict), /one at a time.*quorum.*keelson uninstall/);
  }
  assert.is(rolled({ strategy: { type: 'Recreate' }, replicas: 1 }).verdict, 'allowed');
  const fleeting = setAt(central(), '/spec/template/spec/volumes/1', { name: 'data', emptyDir: {} }) as JsonObject;
  const lost = classified(payload(probed([fleeting], undefined)), payload(probed([fleeting], 1)));
  assert.is(lost.verdict, 'blocked');
  assert.match(JSON.stringify(lost), 'lost with their pods');
  const claim = { name: 'data', persistentVolumeClaim: { claimName: 'x' } };
  const claimed = setAt(central(), '/spec/template/spec/volumes/1', claim) as JsonObject;
  assert.is(classOf(payload(probed([claimed], undefined)), payload(probed([claimed], 1))), 'allowed keelson');
});

test('no sidecar is a reason to delete OVN central or Open vSwitch and create it again', () => {
  const [before, after] = [1, 2].map((n) => payload(probed(bare, n)));
  assert.ok(before && after);
  for (const id of idsOf(after)) {
    const configured = idsOf(after).filter((one) => one !== id);
    const verdict = classified(before, after, true, { actions: { ...none, configured, replaced: [id] } });
    assert.is(verdict.verdict, 'blocked', id);
    assert.match(JSON.stringify(verdict), /may be deleted and created again, all of its pods at once/);
  }
});

test('with anything else beside it the change is what that is', () => {
  const before = payload(probed(bare, undefined));
  const other = setAt(central(), '/spec/template/spec/containers/0/image', 'kube-ovn:2') as JsonObject;
  for (const completed of [true, false]) {
    const verdict = classified(before, payload(probed([other, chassis()], 1)), completed);
    assert.is(verdict.changeClass, 'blocked');
    assert.match(
      JSON.stringify(verdict),
      /1 object\(s\) \(apps\/Deployment\/kube-system\/ovn-central\).*into 1 other\(s\) itself may change: make that a change by itself/,
    );
  }
  assert.is(classOf(before, payload(probed([central()], 1))), 'blocked blocked');
  const after = payload(probed(bare, 1));
  assert.is(classOf(before, after, true, { next: entry({ version: '1.17.0' }) }), 'blocked versionOnly');
  assert.is(classOf(before, after, true, { next: entry({ specDigest: String(d2) }) }), 'blocked membership');
  assert.is(classOf(before, after, true, { rendered: undefined }), 'blocked blocked');
});

/** A sidecar that could do more than look: by one field each. */
const sharper: [string, (sidecar: JsonObject) => JsonObject][] = [
  ['another name', (one) => ({ ...one, name: 'x' })],
  ['a command', (one) => ({ ...one, command: ['sh'] })],
  ['another program', (one) => ({ ...one, args: ['executor'] })],
  ['a port', (one) => ({ ...one, ports: [{ containerPort: 1 }] })],
  ['a probe of its own', (one) => ({ ...one, livenessProbe: { exec: { command: ['x'] } } })],
  ['privileges', (one) => ({ ...one, securityContext: { ...(one.securityContext as JsonObject), privileged: true } })],
  [
    'a right over the network of its node',
    (one) => ({
      ...one,
      securityContext: { ...(one.securityContext as JsonObject), capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] } },
    }),
  ],
  ['a device', (one) => ({ ...one, volumeDevices: [{ name: 'data', devicePath: '/dev/x' }] })],
  ['a say in restarts', (one) => ({ ...one, restartPolicyRules: [{ action: 'RestartAllContainers' }] })],
  ['no word on escalation', (one) => ({ ...one, securityContext: {} })],
  [
    'a folder that it may write',
    (one) => ({ ...one, volumeMounts: (one.volumeMounts as JsonObject[]).map(({ readOnly: _, ...rest }) => rest) }),
  ],
];
for (const [what, spoil] of sharper)
  test(`a sidecar with ${what} is no sidecar`, () => {
    const [body = {}] = probed([central()], 1);
    const at = '/spec/template/spec/containers/1';
    const containers = (((body.spec as JsonObject).template as JsonObject).spec as JsonObject).containers;
    const sidecar = Array.isArray(containers) && isObject(containers[1]) ? containers[1] : {};
    const spoilt = setAt(body, at, spoil(sidecar)) as JsonObject;
    assert.is(classOf(payload([central()]), payload([spoilt])), 'blocked blocked');
  });

test('property: an object that differs in anything of the chart is never taken for Keelson’s own change', () => {
  const paths = [
    '/spec/replicas',
    '/spec/template/spec/containers/0/image',
    '/spec/template/spec/hostNetwork',
    '/metadata/labels/app',
  ];
  fc.assert(
    fc.property(fc.constantFrom(...paths), fc.option(fc.nat(3)), fc.option(fc.nat(3)), (path, from, to) => {
      const base = { ...central(), metadata: { name: 'ovn-central', namespace: 'kube-system', labels: { app: 'a' } } };
      const changed = setAt(base as JsonObject, path, 'other') as JsonObject;
      const [before, after] = [payload(probed([base], from ?? undefined)), payload(probed([changed], to ?? undefined))];
      assert.is(ownChanges(before, after, idsOf(after)).size, 0);
    }),
  );
});

test('the network probe is known by its names in its phase, and by neither alone', () => {
  const stray = placed(
    { apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name: 'x', namespace: 'kube-system' } },
    '',
  );
  const of = (phase: string, name: string): RenderedPayload => ({
    content: { phases: [{ name: phase, objects: [{ ...stray.entry, name }] }] } as unknown as PayloadContent,
    object: () => undefined,
  });
  const own = (phase: string, name: string): number => {
    const rendered = of(phase, name);
    return ownChanges(rendered, rendered, idsOf(rendered)).size;
  };
  assert.equal(
    [
      own('network-probe', networkProbe.clients),
      own('network-probe', 'other'),
      own('data-plane', networkProbe.clients),
    ],
    [1, 0, 0],
  );
});

const workload = (ready: number): KubeObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'ovn-central', namespace: 'kube-system', generation: 1 },
  spec: { replicas: 3 },
  status: { observedGeneration: 1, replicas: 3, updatedReplicas: 3, readyReplicas: ready, availableReplicas: ready },
});
const says = (status: 'True' | 'False' | 'Unknown', reason: string) => ({
  type: 'OVNDBReady',
  status,
  reason,
  message: 'm',
});

test('a rollout waits for databases that are seen not to be whole while all pods are ready, and for nothing else', () => {
  assert.is(notWhole(workload(3), says('False', 'DaemonDown')), 'DaemonDown: m');
  assert.is(notWhole(workload(3), says('Unknown', 'MemberJoining')), 'MemberJoining: m');
  for (const [ready, condition] of [
    [3, says('True', 'MembersAgree')],
    [3, says('Unknown', 'EvidenceUnreachable')],
    [3, undefined],
    [2, says('False', 'MemberMissing')],
  ] as const)
    assert.is(notWhole(workload(ready), condition), undefined);
  assert.is(notWhole(undefined, says('False', 'MemberMissing')), undefined);
});

/** A round of OVN central that ended at half a second, and holds for a minute. */
function roundOf(mode: 'centralOnly' | 'nodeNetworking', central = centralRound()): Observed {
  const time = { startedAt: 0, startedTick: 0, endedAt: 500, endedTick: 500 };
  const wanted = {
    spec: specOf(
      mode === 'centralOnly'
        ? { mode }
        : { mode, external: { northbound: 'tcp:10.0.0.1:1', southbound: 'tcp:10.0.0.1:2' } },
    ),
    installation: { namespace: 'kube-system', name: 'main', uid: 'uid-1' },
    chartReplicas: 3,
    pin: undefined,
  };
  return { verdict: judgeRound({ time, central, peer: { type: 'pending' } }, wanted, emptyMemory), limitMs: 60_000 };
}
const silent = centralRound(3, (n) => withOutcome(n, { type: 'Unreachable', message: 'connection refused' })(n));

test('databases that nobody has looked at are waited for where rounds are run, and hurried; where none are run nothing waits', async () => {
  const clock = new VirtualClock();
  await clock.advance(1_000);
  const hurried: string[] = [];
  const seen = { installation: readInstallation(installation({ mode: 'centralOnly' })).installation, nodes: [] };
  const change = {
    changeClass: 'keelson',
    actions: { configured: ['apps/Deployment/kube-system/ovn-central'] },
  } as unknown as PlannedChange;
  const problems = async (observed: Observed | undefined, observing = true, ready = 3): Promise<string[]> => {
    const observations: Observations = { of: () => observed, hurry: (uid) => hurried.push(uid) };
    const client = { get: async () => ({ type: 'found', object: workload(ready) }) } as unknown as DomainDeps['client'];
    const deps = { client, clock, signal: new AbortController().signal };
    const found = await rolloutProblems(change, seen, observing ? observations : undefined, deps);
    return found.map(({ reason, message, remedy }) => `${reason} ${message}: ${remedy}`);
  };
  const [first = '', ...more] = await problems(undefined);
  assert.match(first, /^RolloutWaits .*nobody has looked at the databases yet: wait for the next round;/);
  assert.equal([more, hurried], [[], ['uid-1']]);
  assert.equal(await problems(undefined, false), [], 'no round will come');
  assert.equal(await problems(undefined, true, 2), [], 'the rollout begins with the pod that is not ready');
  assert.equal(await problems(roundOf('centralOnly')), []);
  assert.equal(await problems(roundOf('centralOnly', silent)), [], 'silence holds nothing back');
  assert.is(hurried.length, 2);
  await clock.advance(60_000);
  assert.match((await problems(roundOf('centralOnly')))[0] ?? '', /^RolloutWaits .*EvidenceStale/);
  assert.match((await problems(roundOf('centralOnly', silent)))[0] ?? '', /^RolloutWaits .*EvidenceStale/);
  assert.is(hurried.length, 4);
  assert.is(databasesNow(roundOf('nodeNetworking'), 99_000), undefined, 'it has no databases to wait for');
});

test.run();
