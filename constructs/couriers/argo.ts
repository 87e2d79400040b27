import { addressesRelease } from '../api/addresses.ts';
import { argoOf, deliveryPath } from '../api/cluster.ts';
import { annotations } from '../api/constants.ts';
import { kinds, refusedInGit } from '../api/kinds/index.ts';
import { reportsOutcome } from '../api/kinds/kind.ts';
import { metallbAnnotations, metallbGroup } from '../api/metallb.ts';
import { courierFolders, type Unit, unitFolder } from '../api/tree.ts';
import type { JsonObject } from '../lib/json.ts';
import { groupOf, identityOf } from '../lib/names.ts';
import { dumpYaml } from '../lib/yaml.ts';
import { healthData } from './health.ts';
import { type CourierInput, type CourierObject, courierLabels } from './objects.ts';

/** The objects by which Argo CD (2.10 or later) carries a rendered tree into the cluster that it runs in. */
export function argoObjects(input: CourierInput): CourierObject[] {
  return [
    application(input, '10-system'),
    application(input, '20-releases'),
    application(input, '30-specs'),
    health(input),
  ];
}

/** One Application for each unit. None waits for another, and nothing of a unit comes after a Release or a spec. */
function application(input: CourierInput, unit: Unit): CourierObject {
  const { delivery, executor } = input.cluster.spec;
  const { namespace, prefix, project } = argoOf(delivery);
  return {
    folder: courierFolders.own,
    manifest: {
      apiVersion: 'argoproj.io/v1alpha1',
      kind: 'Application',
      metadata: {
        name: `${prefix}-${unit}`,
        namespace,
        labels: courierLabels(input.cluster),
        // The API server says what would change, by dry run: defaults are no differences.
        annotations: { 'argocd.argoproj.io/compare-options': 'ServerSideDiff=true' },
      },
      spec: {
        project,
        source: {
          repoURL: delivery.repository,
          targetRevision: delivery.branch,
          path: `${deliveryPath(input.cluster)}/${unitFolder(unit)}`,
        },
        destination: { server: 'https://kubernetes.default.svc', namespace: executor.namespace },
        ignoreDifferences: ignored(unit),
        syncPolicy,
      },
    },
  };
}

/**
 * Retries end after about two minutes, because Argo CD tries the commit that failed, and takes a newer one only then. No
 * `PruneLast`: it would wait until a Release is healthy.
 */
const syncPolicy: JsonObject = {
  automated: { prune: true, selfHeal: true, allowEmpty: false },
  syncOptions: ['ServerSideApply=true', 'RespectIgnoreDifferences=true', 'FailOnSharedResource=true'],
  retry: { limit: 5, backoff: { duration: '5s', factor: 2, maxDuration: '1m' } },
};

const annotationPointer = (key: string): string => `/metadata/annotations/${key.replaceAll('/', '~1')}`;

const breakGlass = [annotations.hold, annotations.pin, annotations.confirmDelete].map(annotationPointer);

/**
 * What executor and people write on objects of a unit. Argo CD copies ignored fields of the live object into what it
 * applies, and so becomes an owner of them: a field that the executor takes off again by giving it up, as its finalizer,
 * must therefore not be here. It needs no rule either, since it is in no tree.
 */
function ignored(unit: Unit): JsonObject[] {
  const rule = (group: string, kind: string, jsonPointers: readonly string[]): JsonObject => ({
    ...(group === '' ? {} : { group }),
    kind,
    jsonPointers: [...jsonPointers],
  });
  if (unit === '10-system')
    return [rule('', 'Namespace', breakGlass), rule('apiextensions.k8s.io', 'CustomResourceDefinition', breakGlass)];
  const specs = kinds.filter(({ group, kind }) => !refusedInGit.includes(`${group}/${kind}`));
  return specs
    .filter(({ kind }) => (kind === 'Release') === (unit === '20-releases'))
    .map(({ group, kind, status }) => rule(group, kind, [...(status === undefined ? [] : ['/status']), ...breakGlass]));
}

/** Joins the settings of Argo CD, which belong to whoever runs it. */
function health(input: CourierInput): CourierObject {
  const { namespace } = argoOf(input.cluster.spec.delivery);
  const metadata = { name: 'argocd-cm', namespace };
  const data = { ...healthData(kinds.filter(reportsOutcome)), ...(hasLedger(input) ? ledgerData() : {}) };
  return { folder: courierFolders.merge, manifest: { apiVersion: 'v1', kind: 'ConfigMap', metadata, data } };
}

const hasLedger = ({ releases }: CourierInput): boolean => releases.includes(addressesRelease);

/** What the driver of the address ledger writes on Services, which are of any Application: no difference to make good. */
const ledgerData = (): Record<string, string> => ({
  'resource.customizations.ignoreDifferences.Service': dumpYaml({
    jsonPointers: pinAnnotations.map(annotationPointer),
  }),
});

/** With a pool that there is none of the driver takes an address off a Service that keeps it. */
const pinAnnotations = [metallbAnnotations.addresses, metallbAnnotations.pinned, `${metallbGroup}/address-pool`];

/** Definitions must be served, and accounts have their rights, before what needs them; Argo CD hardly waits by itself. */
const waves: Readonly<Record<string, number>> = {
  'apiextensions.k8s.io/CustomResourceDefinition': -20,
  '/Namespace': -10,
  '/ServiceAccount': -10,
  'rbac.authorization.k8s.io/ClusterRole': -10,
  'rbac.authorization.k8s.io/ClusterRoleBinding': -10,
  'rbac.authorization.k8s.io/Role': -10,
  'rbac.authorization.k8s.io/RoleBinding': -10,
};

const syncOptions = 'argocd.argoproj.io/sync-options';

/**
 * Annotations that Argo CD needs on an object of the system unit: its wave, and that deleting the Application leaves it.
 * Objects that must not be pruned either say so already.
 */
export function systemAnnotations(object: JsonObject, present: JsonObject): Record<string, string> {
  const { apiVersion, kind } = identityOf(object);
  const wave = waves[`${groupOf(apiVersion)}/${kind}`];
  return {
    ...(wave === undefined ? {} : { 'argocd.argoproj.io/sync-wave': String(wave) }),
    ...(present[syncOptions] === undefined ? { [syncOptions]: 'Delete=false' } : {}),
  };
}
