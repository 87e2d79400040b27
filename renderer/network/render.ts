/** A KubeOVNInstallation to a release: chart, values, Helm, filters, checks, phases. */
import { networkApiVersion } from '../../constructs/api/constants.ts';
import { baseDigest, specDigest } from '../../constructs/api/digests.ts';
import { type InstallationSpec, installationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import type { Requirement } from '../../constructs/api/payload.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import { describeObject } from '../../constructs/lib/names.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { chartImageRepositories } from '../charts/features.ts';
import type { ChartRequest, Checked, LoadedChart } from '../charts/types.ts';
import type { DomainOutput, DomainRelease, DomainRenderer } from '../domain.ts';
import type { RenderInput, RenderOutput } from '../helm/types.ts';
import { checkListKeys } from '../load/listkeys.ts';
import type { LoadedCluster } from '../load/load.ts';
import { problemAt, type SourceObject } from '../load/source.ts';
import { acceptChart } from './acceptance.ts';
import { type CentralPlacement, placeCentral } from './addresses.ts';
import { toReleaseObject } from './bindings.ts';
import { filterHooks } from './hooks.ts';
import { networkProbeOf } from './networkprobe.ts';
import { type ChartObject, toChartObject, withBody } from './object.ts';
import { networkPhases } from './phases.ts';
import { injectProbes } from './probes.ts';
import { refusals } from './refusals.ts';
import { mergeNodeSelector } from './selector.ts';
import { chartTLSTemplate, nativeTLSKeys, renameTLSSecret } from './tls.ts';
import { chartValues, shapeProblems, tlsSecretName, usesTLS } from './values.ts';

const installationKind = 'KubeOVNInstallation';

/** The bytes that network rendering needs, all of them held to digests. */
export interface NetworkSupply {
  /** Fetches (or takes from the cache), verifies and unpacks a chart. */
  chart(request: ChartRequest, signal?: AbortSignal): Promise<Checked<LoadedChart>>;
  /** Renders offline, by the locked Helm, with determinism proven. */
  helm(input: RenderInput, signal?: AbortSignal): Promise<Checked<RenderOutput & { readonly version: string }>>;
}

interface Context {
  readonly source: SourceObject;
  readonly loaded: LoadedCluster;
  readonly spec: InstallationSpec;
  readonly namespace: string;
  readonly name: string;
  readonly supply: NetworkSupply;
  readonly signal: AbortSignal | undefined;
}

/** Gives problems of one installation the place of their field in its file. */
function placed(source: SourceObject, problem: Problem): Problem {
  if (problem.file !== undefined) return problem;
  const path = problem.path?.startsWith('spec.') ? problem.path.replace(/\[.*$/, '').split('.') : [];
  const { line, column } = source.locate(path);
  return { file: source.file, line, column, object: describeObject(source.identity), ...problem };
}

function chartRequest({ source, spec, loaded }: Context): ChartRequest {
  const place = (path: readonly string[]) => {
    const { line, column } = source.locate(path);
    return { file: source.file, line, column, object: describeObject(source.identity), path: path.join('.') };
  };
  return {
    source: spec.chart.source,
    digest: spec.chart.digest,
    version: spec.version,
    kubernetesVersion: loaded.inventory?.spec.kubernetesVersion ?? loaded.cluster.spec.kubernetesVersion,
    places: {
      source: place(['spec', 'chart', 'source']),
      digest: place(['spec', 'chart', 'digest']),
      version: place(['spec', 'version']),
      kubernetesVersion: { file: `${loaded.folder}/cluster.yaml`, path: 'spec.kubernetesVersion' },
    },
  };
}

/** A chart that the lock does not hold is not rendered; while the lock is being made there is none. */
function lockProblems({ source, spec, loaded }: Context): Problem[] {
  if (loaded.lock === undefined) return [];
  const { digest, source: from } = spec.chart;
  if (loaded.lock.spec.charts.some((chart) => chart.digest === digest && chart.source === from)) return [];
  return [
    problemAt(source, ['spec', 'chart'], {
      reason: 'LockEntryMissing',
      message: 'keelson.lock.yaml does not hold this chart',
      value: from,
      remedy: 'run keelson lock and commit the file',
    }),
  ];
}

const noPlacement: CentralPlacement = { nodes: [], addresses: [] };

function placement({ source, loaded, spec, name }: Context): {
  placement: CentralPlacement;
  problems: readonly Problem[];
} {
  if (loaded.inventory === undefined)
    return {
      placement: noPlacement,
      problems: [
        {
          reason: 'InventoryMissing',
          message: 'a network is rendered from the facts about the nodes, and the cluster has no inventory.yaml',
          file: `${loaded.folder}/inventory.yaml`,
          remedy: 'run keelson inventory against the cluster and commit the file',
        },
      ],
    };
  if (spec.mode === 'nodeNetworking' || spec.central.database === 'standalone')
    return { placement: noPlacement, problems: [] };
  const outcome = placeCentral({
    inventory: loaded.inventory,
    installation: name,
    selector: spec.central.nodeSelector,
    replicas: spec.central.replicas,
    object: describeObject(source.identity),
  });
  return outcome.ok
    ? { placement: outcome.placement, problems: [] }
    : { placement: noPlacement, problems: outcome.problems };
}

const secretRequirement = (namespace: string, name: string, keys: readonly string[]): Requirement => ({
  kind: 'Secret',
  namespace,
  name,
  keys: [...keys],
});

const pullSecretsOf = (loaded: LoadedCluster): string[] =>
  [...new Set(loaded.cluster.spec.registries.flatMap((entry) => entry.pullSecret ?? []))].sort();

function requirements({ spec, namespace, loaded }: Context): Requirement[] {
  return [
    // A half of a pair is observed with its keys, also where its own endpoints are plain.
    ...(usesTLS(spec) || spec.hcp?.enabled === true
      ? [secretRequirement(namespace, tlsSecretName(spec), usesTLS(spec) ? nativeTLSKeys : [])]
      : []),
    ...pullSecretsOf(loaded).map((name) => secretRequirement(namespace, name, ['.dockerconfigjson'])),
  ];
}

/** Objects of the chart with list keys written out as the API server keys them; the rest untouched. */
function readObjects(bodies: readonly JsonObject[], origin: string): { objects: ChartObject[]; problems: Problem[] } {
  const problems: Problem[] = [];
  const objects: ChartObject[] = [];
  for (const body of bodies) {
    const object = toChartObject(body);
    if (object === undefined) {
      problems.push({
        reason: 'ObjectWithoutIdentity',
        message: 'the chart renders a document without apiVersion, kind or name',
        object: origin,
      });
      continue;
    }
    const keyed = checkListKeys({
      file: origin,
      value: body,
      line: 1,
      locate: () => ({ line: 1, column: 1 }),
      identity: object,
    });
    problems.push(...keyed.problems);
    objects.push(withBody(object, isObject(keyed.value) ? keyed.value : body));
  }
  return { objects, problems };
}

interface Rendered {
  readonly release: DomainRelease;
}

async function renderChart(context: Context, chart: LoadedChart, place: CentralPlacement): Promise<Checked<Rendered>> {
  const { spec, loaded, namespace, name } = context;
  const inventory = loaded.inventory;
  if (inventory === undefined) return { ok: false, problems: [] };
  const nodeAddresses = inventory.spec.nodes.flatMap((node) => node.internalIPs[0] ?? []);
  const values = chartValues(
    { spec, namespace, centralAddresses: place.addresses, nodeAddresses, pullSecrets: pullSecretsOf(loaded) },
    chart.features,
  );
  const input: RenderInput = {
    chart: {
      name: chart.metadata.name,
      digest: chart.digest,
      files: chart.files,
      without: usesTLS(spec) ? [chartTLSTemplate] : [],
    },
    values,
    releaseName: name,
    namespace,
    kubernetesVersion: inventory.spec.kubernetesVersion,
  };
  const output = await context.supply.helm(input, context.signal);
  if (!output.ok) return output;
  const origin = `chart ${chart.metadata.name} ${chart.metadata.version}`;
  const read = readObjects(output.value.objects, origin);
  const hooks = filterHooks(read.objects);
  const named = usesTLS(spec) ? renameTLSSecret(hooks.kept, tlsSecretName(spec)) : hooks.kept;
  const selected = mergeNodeSelector(
    named,
    spec.mode === 'centralOnly' ? undefined : spec.dataPlane.nodeSelector,
    inventory,
  );
  const probed = injectProbes(selected.objects, loaded.cluster.spec.images.probe);
  const extraKinds = loaded.cluster.spec.allow.extraKinds;
  const problems = [
    ...read.problems,
    ...hooks.problems,
    ...selected.problems,
    ...probed.problems,
    ...acceptChart({
      spec,
      namespace,
      objects: selected.objects,
      centralAddresses: place.addresses,
      touchedBySelector: selected.touched,
      extraKinds,
    }),
  ];
  if (problems.length > 0) return { ok: false, problems };
  const probe = networkProbeOf(spec, namespace, pullSecretsOf(loaded), selected.objects);
  const phases = networkPhases(probed.objects, spec, extraKinds, probe);
  const kind = { apiVersion: networkApiVersion, kind: installationKind };
  const specObject = isObject(context.source.value.spec) ? context.source.value.spec : {};
  return {
    ok: true,
    value: {
      release: {
        name: `network-${name}`,
        domain: 'network',
        phases: phases.map((phase) => ({
          ...phase,
          objects: phase.objects.map((object) => toReleaseObject(object, origin)),
        })),
        installations: [
          {
            ...kind,
            namespace,
            name,
            specDigest: specDigest(kind, specObject),
            baseDigest: baseDigest(kind, specObject),
            version: spec.version,
            mode: spec.mode,
            nodes: place.nodes.map((node) => ({ name: node.name, uid: node.uid, addresses: [...node.addresses] })),
            ...(spec.adoption?.enabled === true
              ? { adoption: { takeManagers: [...spec.adoption.takeManagers].sort() } }
              : {}),
          },
        ],
        requires: requirements(context),
        spans:
          phases.some((phase) => phase.name === 'central') && phases.some((phase) => phase.name === 'data-plane')
            ? [{ from: 'central', to: 'data-plane' }]
            : [],
        charts: [chart.digest],
        helm: output.value.version,
        filteredHooks: hooks.filtered,
        imageRepositories: chartImageRepositories(chart.values),
      },
    },
  };
}

async function renderInstallation(context: Context): Promise<Checked<Rendered>> {
  const { source, spec, loaded } = context;
  const early = [
    ...refusals(spec, loaded.cluster, (path, problem) => problemAt(source, path, problem)),
    ...lockProblems(context),
  ];
  const where = placement(context);
  const chart = await context.supply.chart(chartRequest(context), context.signal);
  const problems = [
    ...early,
    ...where.problems,
    ...(chart.ok ? shapeProblems(spec, chart.value.features, describeObject(source.identity)) : chart.problems),
  ];
  if (problems.length > 0 || !chart.ok) return { ok: false, problems };
  return renderChart(context, chart.value, where.placement);
}

/** Two installations in one cluster would fight over the nodes' one network. */
function severalFullProblems(sources: readonly SourceObject[]): Problem[] {
  return sources.slice(1).map((source) =>
    problemAt(source, ['metadata', 'name'], {
      reason: 'InstallationTwice',
      message: `${describeObject(sources[0]?.identity ?? source.identity)} is an installation of this cluster already; its objects have fixed names`,
      remedy: 'keep one installation for a cluster',
    }),
  );
}

/** The renderer of the network domain. */
export function networkRenderer(supply: NetworkSupply): DomainRenderer {
  return {
    domain: 'network',
    kinds: [`${networkApiVersion.split('/')[0]}/${installationKind}`],
    async render(loaded, signal): Promise<DomainOutput> {
      const sources = loaded.specs.filter((source) => source.identity.kind === installationKind);
      const releases: DomainRelease[] = [];
      const problems: Problem[] = severalFullProblems(sources);
      for (const source of sources) {
        const parsed = installationSpec.safeParse(source.value.spec);
        if (!parsed.success) continue;
        const { name, namespace } = source.identity;
        if (namespace === undefined) continue;
        const outcome = await renderInstallation({
          source,
          loaded,
          spec: parsed.data,
          namespace,
          name,
          supply,
          signal,
        });
        if (outcome.ok) releases.push(outcome.value.release);
        else problems.push(...outcome.problems.map((problem) => placed(source, problem)));
      }
      return { releases: problems.length > 0 ? [] : releases, problems, warnings: [] };
    },
  };
}
