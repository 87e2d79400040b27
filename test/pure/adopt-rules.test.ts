import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { labels } from '../../constructs/api/constants.ts';
import { adoptableIds, makePlan, needsApproval, type PlanActions, planActions } from '../../constructs/api/plan.ts';
import {
  type AdoptionRules,
  adoptionProblems,
  isSameButImages,
  matchesSelector,
} from '../../executor/apply/adopt-rules.ts';
import type { KubeObject, ObjectMeta } from '../../executor/kube/types.ts';
import { adoptionRules } from '../../executor/network/adoption.ts';
import type { NetworkSnapshot } from '../../executor/network/snapshot.ts';
import { item } from './executor-support.ts';
import { onePhase, plainEntry } from './payload-support.ts';

test('selectors match as those of Kubernetes do', () => {
  const found = { app: 'ovn', tier: 'net' };
  const one = (key: string, operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist', values?: string[]) =>
    matchesSelector({ matchExpressions: [{ key, operator, ...(values === undefined ? {} : { values }) }] }, found);
  assert.ok(matchesSelector({ matchLabels: { app: 'ovn' } }, found));
  assert.not.ok(matchesSelector({ matchLabels: { app: 'ovn', other: 'x' } }, found));
  assert.not.ok(matchesSelector({ matchLabels: { toString: 'x' } }, found));
  assert.equal([one('app', 'In', ['ovn']), one('app', 'In', ['x']), one('no', 'In', ['x'])], [true, false, false]);
  assert.equal([one('app', 'NotIn', ['ovn']), one('no', 'NotIn', ['x'])], [false, true]);
  assert.equal([one('app', 'Exists'), one('no', 'Exists')], [true, false]);
  assert.equal([one('app', 'DoesNotExist'), one('no', 'DoesNotExist')], [false, true]);
});

const rules: AdoptionRules = {
  ids: new Set(),
  namespace: 'demo',
  selector: { matchLabels: { app: 'ovn' } },
  takeManagers: [],
  installationUID: 'uid-i',
  version: '1.16.2',
};

const live = (metadata: Partial<ObjectMeta> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', namespace: 'demo', uid: 'uid-1', labels: { app: 'ovn' }, ...metadata },
});

test("D9: it exists, matches, is in its place, is nobody else's, and stays", () => {
  const it = item();
  const against = (object: KubeObject | undefined, known?: string, of = it): string[] =>
    adoptionProblems(of, of.object, object, rules, known).map(({ reason, message }) => `${reason}: ${message}`);
  assert.equal(against(live()), []);
  assert.match(against(undefined).join(), /AdoptionRefused: it does not exist/);
  assert.match(against(live({ labels: { app: 'x' } })).join(), /do not match the selector \(app=ovn\)/);
  assert.match(against(live({ deletionTimestamp: '2026-01-01T00:00:00Z' })).join(), /being deleted since 2026/);
  const owner = [{ apiVersion: 'v1', kind: 'App', name: 'x', uid: 'o', controller: true }];
  assert.match(against(live({ ownerReferences: owner })).join(), /OwnedByAnother: .*App x/);
  assert.match(against(live(), undefined, item({ namespace: 'elsewhere' })).join(), /in namespace elsewhere/);
  for (const label of [labels.installationUID, labels.release])
    assert.match(against(live({ labels: { app: 'ovn', [label]: 'other' } })).join(), /belongs to other/);
  assert.match(against(live({ annotations: { 'keelson.dev/hold': 'INC-1' } })).join(), 'ObjectHeld: it is held: INC-1');
  const several = against(live({ labels: {}, deletionTimestamp: 'x' }));
  assert.is(several.length, 2, 'all of it at once');
});

test('an adoption that was cut off goes on with the object that it began with, marks and all, and with no other', () => {
  const it = item();
  const marked = live({ labels: { app: 'ovn', [labels.installationUID]: 'uid-i', [labels.release]: 'network-main' } });
  assert.is(adoptionProblems(it, it.object, marked, rules, 'uid-1').length, 0);
  assert.match(adoptionProblems(it, it.object, marked, rules, 'uid-0')[0]?.message ?? '', 'began with UID uid-0');
  const stolen = live({ labels: { app: 'ovn', [labels.installationUID]: 'uid-other' } });
  assert.match(adoptionProblems(it, it.object, stolen, rules, 'uid-1')[0]?.message ?? '', 'uid-other');
});

test('the one difference is an image of the version, named by tag there and by digest here', () => {
  const wanted = `mirror.example.com/kubeovn/kube-ovn@sha256:${'a'.repeat(64)}`;
  const same = (there: string, ours = wanted): boolean => isSameButImages(there, ours, '1.16.2');
  assert.ok(same('docker.io/kubeovn/kube-ovn:v1.16.2'));
  assert.ok(same(`docker.io/kubeovn/kube-ovn:v9@sha256:${'a'.repeat(64)}`));
  assert.ok(same('--image=docker.io/kubeovn/kube-ovn:v1.16.2', `--image=${wanted}`));
  assert.not.ok(same('docker.io/kubeovn/kube-ovn:v1.16.1'), 'another version is an upgrade');
  assert.not.ok(same(`docker.io/kubeovn/kube-ovn:v1.16.2@sha256:${'b'.repeat(64)}`));
  assert.not.ok(same('docker.io/kubeovn/vpc-nat-gateway:v1.16.2'));
  assert.not.ok(same('docker.io/kubeovn/kube-ovn'));
  assert.not.ok(same('docker.io/kubeovn/kube-ovn:v1.16.2', 'mirror.example.com/kubeovn/kube-ovn:v1.16.2'));
  assert.not.ok(same('--image=docker.io/kubeovn/kube-ovn:v1.16.2', `--other=${wanted}`));
  assert.not.ok(isSameButImages(3, wanted, '1.16.2'));
  const list = (image: string, ...more: string[]) => ['--a=1', `--image=${image}`, ...more];
  assert.ok(isSameButImages(list('docker.io/kubeovn/kube-ovn:v1.16.2'), list(wanted), '1.16.2'));
  assert.not.ok(isSameButImages(list('docker.io/kubeovn/kube-ovn:v1.16.2', '--b'), list(wanted), '1.16.2'));
  assert.not.ok(isSameButImages(['--a=2', `--image=${wanted}`], list(wanted), '1.16.2'));
});

const object = (name: string) => plainEntry(name, { dir: '10-x', file: 'objects/0000.json', sha256: 'a'.repeat(64) });
const sha = `sha256:${'1'.repeat(64)}`;
const adopting = (takeManagers?: string[]) =>
  onePhase('x', [object('a'), { ...object('gone'), absent: true }], {
    installations: [
      {
        apiVersion: 'network.keelson.dev/v1alpha1',
        kind: 'KubeOVNInstallation',
        namespace: 'demo',
        name: 'main',
        specDigest: sha,
        manifestDigest: sha,
        baseDigest: sha,
        nodes: [],
        ...(takeManagers === undefined ? {} : { adoption: { takeManagers } }),
      },
    ],
  });

test('the plan: everything of the first payload is adopted but probes; a person has to approve it whatever the mode', () => {
  const prune = { enabled: true, maxPercent: 10, maxCount: 20 };
  const plan = makePlan(undefined, adopting(['helm']), { prune });
  assert.equal([plan.actions.adopted, plan.actions.created, plan.take], [['/ConfigMap/demo/a'], [], ['helm']]);
  assert.equal(
    plan.risks.map(({ kind }) => kind),
    ['adopt', 'take'],
  );
  assert.ok(needsApproval(plan, 'never'));
  assert.not.ok(needsApproval(makePlan(undefined, adopting(), { prune }), 'never'));
  const digests = [adopting(['helm']), adopting([]), adopting()].map(
    (content) => makePlan(undefined, content, { prune }).digest,
  );
  assert.is(new Set(digests).size, 3, 'another list is another plan');
  const probes = {
    ...adopting([]),
    phases: [
      ...adopting([]).phases,
      { name: 'network-probe', dir: '50-network-probe', gates: [], objects: [object('probe')] },
    ],
  };
  assert.equal([...adoptableIds(probes)], ['/ConfigMap/demo/a']);
  const later: PlanActions = planActions(adopting([]), probes, { enabled: true });
  assert.equal([later.adopted, later.created], [[], ['/ConfigMap/demo/probe']], 'later objects are created');
});

test('the rules: of the first payload, and afterwards only to end what was begun', () => {
  const spec = { adoption: { enabled: true, selector: rules.selector, takeManagers: ['helm'] } };
  const snapshot = { installation: { uid: 'uid-i', spec }, nodes: [] } as unknown as NetworkSnapshot;
  const content = adopting(['helm']);
  const first = adoptionRules({ content, purpose: 'accept' }, snapshot);
  assert.equal(
    [[...(first?.ids ?? [])], first?.namespace, first?.takeManagers],
    [['/ConfigMap/demo/a'], 'demo', ['helm']],
  );
  const previous = { digest: sha, content, completed: true };
  assert.is(adoptionRules({ content, purpose: 'accept', previous }, snapshot)?.ids.size, 0);
  assert.is(adoptionRules({ content, purpose: 'enforce', previous }, snapshot)?.ids.size, 0);
  const off = { installation: { uid: 'uid-i', spec: { adoption: { ...spec.adoption, enabled: false } } }, nodes: [] };
  assert.is(adoptionRules({ content, purpose: 'accept' }, off as unknown as NetworkSnapshot), undefined);
});

test('whose fields are taken is what the payload says; the live object can take managers off that list, and add none', () => {
  const of = (signed: string[] | undefined, live: string[] | undefined) => {
    const spec = { adoption: { enabled: true, selector: rules.selector, takeManagers: live } };
    const snapshot = { installation: { uid: 'uid-i', spec }, nodes: [] } as unknown as NetworkSnapshot;
    const content = adopting(signed);
    const previous = { digest: sha, content, completed: false };
    const found = (['accept', 'enforce'] as const).map((purpose) =>
      adoptionRules({ content, purpose, previous }, snapshot),
    );
    assert.equal(found[0], found[1]);
    return found[0]?.takeManagers;
  };
  assert.equal(of(['helm'], ['helm', 'kubectl-client-side-apply']), ['helm'], 'edited while it is under way');
  assert.equal(of(['helm', 'kubectl'], ['kubectl']), ['kubectl']);
  assert.equal(of(['helm'], undefined), []);
  assert.equal(of([], ['helm']), []);
  assert.is(of(undefined, ['helm']), undefined, 'a payload that adopts nothing');
});

test.run();
