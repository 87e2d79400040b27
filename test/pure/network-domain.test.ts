import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { InstallationEntry, PayloadContent } from '../../constructs/api/payload.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { KubeClient } from '../../executor/kube/client.ts';
import type { KubeObject, ManagedFieldsEntry } from '../../executor/kube/types.ts';
import { admitNetwork } from '../../executor/network/admit.ts';
import { bindNetwork } from '../../executor/network/bind.ts';
import { authorisedClass, checkpointOf, recordCheckpoint, withCheckpoint } from '../../executor/network/checkpoint.ts';
import { handedOver } from '../../executor/network/disown.ts';
import { networkDomain } from '../../executor/network/domain.ts';
import { digestsOf, enforcedIn } from '../../executor/network/enforced.ts';
import { evidenceGate } from '../../executor/network/evidence.ts';
import { leasesOf } from '../../executor/network/guard.ts';
import { expectedOf, workloadsReady } from '../../executor/network/observe.ts';
import { type LiveNode, type NetworkSnapshot, readInstallation } from '../../executor/network/snapshot.ts';
import type { DomainTarget } from '../../executor/release/domain.ts';
import { LeaseServer, timed } from './kube-lease-support.ts';
import type { specOf } from './network-fixture.ts';
import { d1, d2, d3, entry, installation } from './network-support.ts';
import { seededRandom, VirtualClock } from './virtualClock.ts';

const node = (n: number, changes: Partial<LiveNode> = {}): LiveNode => ({
  name: `n${n}`,
  uid: `u${n}`,
  internalIPs: [`10.0.0.${n}`],
  labels: { 'node-role.kubernetes.io/control-plane': '' },
  ...changes,
});

const snapshot = (spec: Parameters<typeof specOf>[0] = {}, nodes = [1, 2, 3].map((n) => node(n))): NetworkSnapshot => ({
  installation: readInstallation(installation(spec)).installation,
  nodes,
});
const content = (installations: InstallationEntry[] = [entry()]): PayloadContent =>
  ({ installations }) as unknown as PayloadContent;
const refusals = (
  input: { content: PayloadContent; previous?: { content: PayloadContent } },
  seen = snapshot(),
): string[] => admitNetwork(input, seen).map((problem) => problem.reason);

test('admission: the rendered nodes are exactly the labelled ones, with their UIDs and addresses', () => {
  assert.equal(refusals({ content: content() }), []);
  for (const nodes of [
    [1, 2].map((n) => node(n)),
    [1, 2, 3, 4].map((n) => node(n)),
    [node(1), node(2), node(3, { uid: 'other' })],
    [node(1), node(2), node(3, { internalIPs: ['10.0.0.9'] })],
    [node(1), node(2), node(3, { labels: {} })],
  ])
    assert.equal(refusals({ content: content() }, snapshot({}, nodes)), ['InventoryStale']);
});

test('admission: the order of central addresses never changes once a payload was accepted', () => {
  const reordered = entry({ nodes: [...entry().nodes].reverse() });
  assert.equal(refusals({ content: content([reordered]), previous: { content: content() } }), ['CentralOrderChanged']);
  assert.equal(refusals({ content: content([reordered]) }), []);
});

test('admission: an adoption and a hosted half are admitted, payloads of no or of several installations are not', () => {
  const hcp = {
    enabled: true,
    role: 'central',
    peerNamespace: 'p',
    tlsSecretRef: { name: 'k' },
    northbound: 'tcp:a:1',
    southbound: 'tcp:a:2',
  } as const;
  const adoption = { enabled: true, selector: { matchLabels: { a: 'b' } } };
  assert.equal(refusals({ content: content() }, snapshot({ mode: 'centralOnly', hcp, adoption })), []);
  assert.equal(refusals({ content: content([]) }), ['PayloadIntegrity']);
  assert.equal(refusals({ content: content([entry(), entry({ name: 'b' })]) }), ['PayloadIntegrity']);
});

test('bindings: owner and labels carry the UID of the live installation, and nothing is bound that is not known', () => {
  const bind = bindNetwork(snapshot().installation);
  const target = {} as Parameters<typeof bind>[2];
  assert.equal(bind('uidLabels', '/x', target), { value: 'uid-1' });
  const owner = bind('owner', '/x', target);
  assert.ok('value' in owner && JSON.stringify(owner.value).includes('"uid":"uid-1"'));
  assert.ok('problem' in bind('retainedReplicas', '/x', target));
  assert.ok('problem' in bindNetwork(undefined)('owner', '/x', target));
});

test('Leases: installation always before central, and central only for its phase', () => {
  const uid = '12345678-0000-0000-0000-000000000000';
  assert.equal(leasesOf('central', uid), ['keelson-installation-12345678', 'keelson-central-12345678']);
  assert.equal(leasesOf('data-plane', uid), ['keelson-installation-12345678']);
});

test('the checkpoint is moved only by what authorises itself, and stands still otherwise', () => {
  const wanted = checkpointOf(entry(), String(d3));
  const first = withCheckpoint({ phase: 'Pending' }, undefined, wanted, 0);
  assert.equal(first.applyCheckpoint, { ...wanted, recordedAt: '1970-01-01T00:00:00Z' });
  const recorded = { ...wanted, recordedAt: '1970-01-01T00:00:00Z' };
  assert.is(withCheckpoint(first, recorded, wanted, 5000), first);
  const { nodes } = entry();
  const placed = withCheckpoint(first, recorded, wanted, 5000, nodes);
  assert.equal(placed, { ...first, nodes });
  assert.is(withCheckpoint(placed, recorded, wanted, 6000, nodes), placed);
  assert.is(authorisedClass(recorded, { ...wanted, specDigest: String(d2) }), 'policy');
  const other = { ...wanted, manifestDigest: String(d2) };
  assert.is(authorisedClass(recorded, other), 'additive');
  assert.is(authorisedClass(recorded, other, 'keelson'), 'keelson');
  assert.is(authorisedClass(recorded, wanted, 'keelson'), 'none');
  assert.is(authorisedClass(undefined, wanted, 'keelson'), 'additive');
});

test('the checkpoint and what is enforced by it are one write, also when Git brings another specification before it', async () => {
  const { live } = digestsOf(installation());
  const wanted = checkpointOf(entry({ specDigest: live }), String(d3));
  const another = installation({ version: '1.17.0' });
  /** What is written for an installation that was admitted as it should be; `meanwhile` came before the write. */
  const written = async (admitted: KubeObject, meanwhile?: KubeObject) => {
    const sent: JsonObject[] = [];
    const client = {
      mergeStatus: async (
        _ref: unknown,
        { resourceVersion, status }: { resourceVersion: string; status: JsonObject },
      ) => {
        if (meanwhile !== undefined && resourceVersion === '1') return { type: 'stale', message: 'changed' };
        sent.push(status);
        return { type: 'updated', object: { ...(meanwhile ?? admitted), status } };
      },
      get: async () => ({ type: 'found', object: versioned(meanwhile ?? admitted, '2') }),
    } as unknown as KubeClient;
    const signal = new AbortController().signal;
    const object = versioned(admitted, '1');
    assert.equal(await recordCheckpoint({ client, object, recorded: undefined, wanted, now: 0 }, signal), []);
    assert.is(sent.length, 1);
    return sent[0] ?? {};
  };
  const versioned = (object: KubeObject, resourceVersion: string): KubeObject => ({
    ...object,
    metadata: { ...object.metadata, resourceVersion },
  });
  const versionOf = (status: JsonObject): string => {
    const { spec } = readInstallation({ ...another, status }).installation ?? {};
    assert.ok(spec);
    return enforcedIn({ ...another, status }, spec).version;
  };
  for (const status of [await written(installation()), await written(installation(), another)])
    assert.is(versionOf(status), '1.16.13');
  assert.is((await written(another)).enforced, undefined, 'of another specification nothing is kept');
});

test('an unreadable checkpoint is never taken for none', () => {
  assert.equal(
    readInstallation(installation({}, { applyCheckpoint: { specDigest: 'x' } })).problems.map((p) => p.reason),
    ['CheckpointUnreadable'],
  );
});

test('no evidence gate of the network is ever open by itself', () => {
  for (const type of ['OVNDBReady', 'NorthdReady', 'DataPlaneReady', 'NetworkReady'])
    assert.is(evidenceGate({ type, scope: 'central' }, undefined)?.state, 'Unknown');
  assert.is(evidenceGate({ type: 'WorkloadsReady', scope: 'central' }, undefined), undefined);
});

const deployment = (ready: number): KubeObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'ovn-central', namespace: 'kube-system', generation: 1 },
  spec: { replicas: 3 },
  status: { observedGeneration: 1, replicas: 3, updatedReplicas: 3, readyReplicas: ready, availableReplicas: ready },
});
const ledgerEntry = (id: string, state: 'applied' | 'pruning' | 'unmanaged' = 'applied') =>
  [id, { id, state, sha256: 'a'.repeat(64), phase: 'central', payload: String(d1) }] as const;

test('WorkloadsReady: everything expected, overridden objects too, what is being pruned not', () => {
  const id = 'apps/Deployment/kube-system/ovn-central';
  const ledger = new Map([
    ledgerEntry(id, 'unmanaged'),
    ledgerEntry('/ConfigMap/kube-system/x'),
    ledgerEntry('apps/DaemonSet/kube-system/gone', 'pruning'),
  ]);
  const expected = expectedOf(ledger as never);
  assert.equal(
    expected.map((one) => one.id),
    [id],
  );
  assert.is(workloadsReady(expected, new Map([[id, deployment(3)]])).status, 'True');
  const open = workloadsReady(expected, new Map([[id, deployment(2)]]));
  assert.equal(
    [open.status, open.message],
    ['False', '0 of 1 are ready; Deployment.apps kube-system/ovn-central: 2 of 3 replicas are ready'],
  );
  assert.is(workloadsReady(expected, new Map()).reason, 'NotFound');
  assert.is(workloadsReady([], new Map()).status, 'Unknown');
});

test('an owner is handed over alone: every other field, of us and of others, stays with whom it is', () => {
  const held = (manager: string, owners: readonly string[], more: Partial<ManagedFieldsEntry> = {}) => ({
    manager,
    operation: 'Apply' as const,
    apiVersion: 'apps/v1',
    fieldsV1: {
      'f:metadata': {
        'f:labels': { 'f:app': {} },
        'f:ownerReferences': Object.fromEntries(owners.map((uid) => [`k:{"uid":"${uid}"}`, {}])),
      },
      'f:spec': { 'f:template': {} },
    },
    ...more,
  });
  const others = [held('other', ['uid-1']), held('keelson', ['uid-1'], { operation: 'Update' })];
  const both = handedOver([held('keelson', ['uid-1', 'uid-2']), ...others], 'uid-1');
  assert.equal(both, [
    held('keelson', ['uid-2']),
    ...others,
    {
      manager: 'keelson-disowner',
      operation: 'Apply',
      apiVersion: 'apps/v1',
      fieldsV1: { 'f:metadata': { 'f:ownerReferences': { 'k:{"uid":"uid-1"}': {} } } },
    },
  ]);
  const alone = handedOver([held('keelson', ['uid-1'])], 'uid-1');
  assert.equal(alone?.[0]?.fieldsV1, { 'f:metadata': { 'f:labels': { 'f:app': {} } }, 'f:spec': { 'f:template': {} } });
  assert.is(handedOver([held('keelson', ['uid-2']), ...others], 'uid-1'), undefined, 'it is not ours to hand over');
});

test('a gate opens by evidence from after the write, although it was looked at while the Release was paused', async () => {
  const clock = new VirtualClock();
  const leases = new LeaseServer(clock, seededRandom(1)).client();
  const checkpoint = checkpointOf(entry(), String(d1));
  const object = installation({}, { applyCheckpoint: { ...checkpoint, recordedAt: '1970-01-01T00:00:00Z' } });
  const client: KubeClient = {
    ...leases,
    get: (wanted, options) =>
      wanted.kind === object.kind
        ? Promise.resolve({ type: 'found', object } as Awaited<ReturnType<KubeClient['get']>>)
        : leases.get(wanted, options),
  };
  const domain = networkDomain({ identity: 'me', observations: { of: () => undefined, hurry: () => undefined } });
  const seen = { installation: readInstallation(object).installation, nodes: [] };
  const deps = { client, clock, signal: new AbortController().signal };
  const target = (completed: boolean) =>
    ({
      release: 'network-main',
      namespace: 'demo',
      payloadDigest: String(d1),
      content: content(),
      previous: { digest: String(d1), content: content(), completed },
    }) as unknown as DomainTarget;
  const gates = [{ type: 'WorkloadsReady' }, { type: 'DataPlaneReady' }] as never;
  const since = async (completed: boolean, rolledOut = true): Promise<number | undefined> =>
    (await domain.observe?.(target(completed), 'data-plane', gates, seen, deps, () => rolledOut))?.since;
  const write = async (completed: boolean): Promise<void> => {
    const granted = await timed(clock, domain.guard(target(completed), 'data-plane', seen, deps));
    assert.ok(granted.granted, JSON.stringify(granted));
    await timed(clock, granted.guard.release());
  };
  const early = await since(false);
  await clock.advance(60_000);
  assert.is(await since(false), early);
  await write(false);
  const late = await since(false);
  assert.ok(early !== undefined && late !== undefined && late >= early + 60_000, `${early}, ${late}`);
  await clock.advance(60_000);
  const rolling = await since(false, false);
  await clock.advance(60_000);
  const rolledOut = await since(false);
  assert.ok(rolling !== undefined && rolledOut !== undefined, 'looked at');
  assert.ok(rolledOut >= rolling + 60_000, 'a round that began while pods were replaced does not count');
  await clock.advance(60_000);
  assert.is(await since(false), rolledOut);
  await write(true);
  assert.is(await since(true), rolledOut, 'drift that is set back shuts no gate of what is in place');
  assert.is(await since(true, false), rolledOut, 'nor does a pod that is restarted');
});

test.run();
