import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { preflightJobs } from '../../constructs/api/preflight.ts';
import { synthesize } from '../../constructs/k8s/manifest.ts';
import { executorRBAC, observedNamespaces } from '../../constructs/k8s/rbac.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';

const central = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'ovn-central', namespace: 'kube-system' },
};

/** `namespace verb group/resource name`, one for each that is granted. */
function granted(probes: boolean, objects: readonly JsonObject[]): Set<string> {
  const rendered = synthesize((scope) =>
    executorRBAC(scope, {
      namespace: 'keelson-system',
      objects,
      requires: [],
      departed: [],
      gated: [],
      artifacts: false,
      probes,
      ledger: false,
    }),
  );
  const atoms = rendered.flatMap((object) => {
    const { namespace = '*' } = object.metadata as JsonObject;
    return ((object.rules ?? []) as JsonObject[]).flatMap((rule) =>
      (rule.verbs as string[]).flatMap((verb) =>
        (rule.resources as string[]).flatMap((resource) =>
          ((rule.resourceNames ?? ['*']) as string[]).map(
            (name) => `${namespace} ${verb} ${(rule.apiGroups as string[])[0]}/${resource} ${name}`,
          ),
        ),
      ),
    );
  });
  return new Set(atoms);
}

test('what evidence needs is granted by name, and only where there are probes', () => {
  const [without, with_] = [granted(false, [central]), granted(true, [central])];
  const jobs = ['create', 'delete', 'patch'].flatMap((verb) =>
    preflightJobs.map((name) => `kube-system ${verb} batch/jobs ${name}`),
  );
  const evidence = [
    '* create authentication.k8s.io/tokenreviews *',
    '* watch /nodes *',
    'keelson-system create /secrets keelson-evidence-ca',
    'keelson-system get /secrets keelson-evidence-ca',
    'keelson-system patch /secrets keelson-evidence-ca',
    'kube-system create /configmaps keelson-evidence-trust',
    'kube-system create /pods/portforward *',
    'kube-system get /configmaps keelson-evidence-trust',
    'kube-system get /pods/portforward *',
    'kube-system list discovery.k8s.io/endpointslices *',
    'kube-system watch discovery.k8s.io/endpointslices *',
    'kube-system list /persistentvolumeclaims *',
    'kube-system list /pods *',
    'kube-system list /services *',
    'kube-system list apps/daemonsets *',
    'kube-system list apps/deployments *',
    'kube-system list apps/replicasets *',
    'kube-system list apps/statefulsets *',
    'kube-system patch /configmaps keelson-evidence-trust',
    'kube-system watch /persistentvolumeclaims *',
    'kube-system watch /pods *',
    'kube-system watch /services *',
    'kube-system watch apps/daemonsets *',
    'kube-system watch apps/deployments *',
    'kube-system watch apps/replicasets *',
    'kube-system watch apps/statefulsets *',
    'kube-system list batch/jobs *',
  ];
  assert.equal([...with_.difference(without)].sort(), [...evidence, ...jobs].sort());
  assert.equal([...without.difference(with_)], []);
  assert.equal(granted(true, []), granted(false, []), 'no network, no probes to ask');
});

test('pods and volumes of all namespaces are listed only where nodes are asked what they would take along', () => {
  const switches = { ...central, kind: 'DaemonSet', metadata: { ...central.metadata, name: 'ovs-ovn' } };
  const more = granted(true, [central, switches]).difference(granted(true, [central]));
  const beyond = [...more].filter((atom) => !atom.includes('ovs-ovn') && !atom.includes('apps/daemonsets'));
  assert.equal(beyond.sort(), ['* list /pods *', '* list storage.k8s.io/volumeattachments *']);
});

test('central in another namespace is looked at as well, by the same names', () => {
  const elsewhere = { ...central, metadata: { ...central.metadata, namespace: 'hosted' } };
  const more = [...granted(true, [elsewhere]).difference(granted(false, [elsewhere]))].sort();
  const jobs = ['create', 'delete', 'patch'].flatMap((verb) =>
    preflightJobs.map((name) => `* ${verb} batch/jobs ${name}`),
  );
  const looked = [
    '/persistentvolumeclaims',
    '/pods',
    '/services',
    'apps/daemonsets',
    'apps/replicasets',
    'apps/statefulsets',
    'discovery.k8s.io/endpointslices',
  ].flatMap((resource) => [`* list ${resource} *`, `* watch ${resource} *`]);
  const trust = ['create', 'get', 'patch'].map((verb) => `* ${verb} /configmaps keelson-evidence-trust`);
  const authority = ['create', 'get', 'patch'].map((verb) => `keelson-system ${verb} /secrets keelson-evidence-ca`);
  assert.equal(
    more,
    [
      ...jobs,
      ...looked,
      ...trust,
      ...authority,
      '* create authentication.k8s.io/tokenreviews *',
      '* list batch/jobs *',
      '* watch /nodes *',
    ].sort(),
  );
});

test('who asks, and what it may, go by the same namespaces', () => {
  const hosted = { ...central, metadata: { ...central.metadata, namespace: 'hosted' } };
  const rights = (objects: readonly JsonObject[]) => ({ objects, departed: [] });
  assert.equal(observedNamespaces(rights([hosted])), ['hosted']);
  assert.equal(observedNamespaces(rights([central, hosted, central])), ['hosted', 'kube-system']);
  const switches = { ...central, kind: 'DaemonSet', metadata: { name: 'ovs-ovn-dpdk', namespace: 'kube-system' } };
  assert.equal(observedNamespaces(rights([switches])), ['kube-system']);
  assert.equal(
    observedNamespaces(rights([{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'ovn-central' } }])),
    [],
  );
});

test.run();
