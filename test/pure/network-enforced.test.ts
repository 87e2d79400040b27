import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { specDigest } from '../../constructs/api/digests.ts';
import { type InstallationSpec, installationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import { enforcedSpec } from '../../constructs/api/kinds/kubeovn-installation-status.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../../executor/kube/types.ts';
import { enforcedIn, enforcedPart, knowsEnforced } from '../../executor/network/enforced.ts';
import { evidenceTypes } from '../../executor/observe/verdict.ts';
import { specOf } from './network-fixture.ts';
import { installation } from './network-support.ts';

const kind = { apiVersion: installation().apiVersion, kind: installation().kind };
const plain = (value: unknown): JsonObject => JSON.parse(JSON.stringify(value)) as JsonObject;

/** An installation whose checkpoint was rendered from one specification while another is in the cluster. */
function objectWith(live: InstallationSpec, accepted: InstallationSpec, enforced: JsonObject = {}): KubeObject {
  const applyCheckpoint = { specDigest: specDigest(kind, plain(accepted)) };
  return { ...installation(), spec: plain(live), status: { applyCheckpoint, ...enforced } };
}

const pair = { northbound: 'tcp:192.0.2.1:6641', southbound: 'tcp:192.0.2.1:6642' };
const half = { enabled: true, role: 'dataPlane', peerNamespace: 'hosted', tlsSecretRef: { name: 'keys' } } as const;
const specs: Readonly<Record<string, InstallationSpec>> = {
  plain: specOf({ mode: 'full' }),
  'of one family': specOf({ mode: 'full', networkStack: 'ipv4' }),
  'of two families': specOf({ mode: 'full', networkStack: 'dual_stack' }),
  probed: specOf({ mode: 'full', networkProbe: { image: 'registry.example.com/probe:1' } }),
  'of five': specOf({ mode: 'full', central: { replicas: 5 } }),
  'of another version': { ...specOf({ mode: 'full' }), version: '1.17.0' },
  external: specOf({ mode: 'nodeNetworking', external: pair }),
  'external elsewhere': specOf({
    mode: 'nodeNetworking',
    external: { ...pair, northbound: 'tcp:192.0.2.9:6641' },
  }),
  'half of a pair': specOf({ mode: 'nodeNetworking', hcp: { ...half, ...pair } }),
};

/** What of a specification decides what is looked at. */
const looked = ({ mode, version, networkStack, networkProbe, central, external, hcp }: InstallationSpec): JsonObject =>
  plain({
    mode,
    version,
    networkStack,
    probe: networkProbe !== undefined,
    replicas: central.replicas,
    database: central.database,
    external,
    hcp: hcp?.enabled === true ? hcp : undefined,
  });

test('before anything is accepted, and while the accepted one is in the cluster, the live specification is looked by', () => {
  for (const [name, spec] of Object.entries(specs)) {
    const untouched = { ...installation(), spec: plain(spec) };
    assert.equal(enforcedIn(untouched, spec), spec, name);
    assert.equal(enforcedPart(untouched, spec), {}, name);
    assert.equal(enforcedIn(objectWith(spec, spec), spec), spec, name);
  }
});

test('whatever else the specification asks for, what was accepted is looked at', () => {
  for (const [from, accepted] of Object.entries(specs))
    for (const [to, live] of Object.entries(specs)) {
      if (from === to || accepted.mode !== live.mode) continue;
      const kept = enforcedPart(objectWith(accepted, accepted), accepted);
      assert.ok(enforcedSpec.safeParse(kept.enforced).success, `${from} is no status`);
      const changed = objectWith(live, accepted, kept);
      const found = enforcedIn(changed, live);
      assert.equal(looked(found), looked(accepted), `${from}, then ${to}`);
      assert.equal(evidenceTypes(found), evidenceTypes(accepted));
      assert.equal(enforcedPart(changed, live), kept, 'and it stays in the status');
    }
});

test('what was kept of another checkpoint, or can not be read, says nothing', () => {
  const { 'of one family': one, 'of two families': two, plain: none } = specs;
  assert.ok(one && two && none);
  const ofAnother = enforcedPart(objectWith(one, one), one);
  for (const kept of [ofAnother, { enforced: { specDigest: 7 } }, { enforced: 'x' }, {}])
    assert.equal(enforcedIn(objectWith(two, none, kept as JsonObject), two), two);
});

test('what is enforced is known while the accepted one is in the cluster or kept, and not by what another one left', () => {
  const { 'of one family': one, 'of two families': two, plain: none } = specs;
  assert.ok(one && two && none);
  const kept = enforcedPart(objectWith(one, one), one);
  assert.ok(knowsEnforced({ ...installation(), spec: plain(one) }), 'nothing is accepted yet');
  assert.ok(knowsEnforced(objectWith(one, one)));
  assert.ok(knowsEnforced(objectWith(two, one, kept)));
  for (const left of [{}, { enforced: 'x' }, kept])
    assert.not.ok(knowsEnforced(objectWith(two, none, left as JsonObject)));
});

test('a half that was let go of is not asked for', () => {
  const accepted = specOf({ mode: 'full', hcp: { enabled: false } });
  assert.not.ok('hcp' in (enforcedPart(objectWith(accepted, accepted), accepted).enforced as JsonObject));
  assert.ok(installationSpec.safeParse(plain(accepted)).success);
});

test.run();
