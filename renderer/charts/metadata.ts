import { isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { TarFile } from '../../constructs/lib/tar.ts';
import { parseYaml } from '../../constructs/lib/yaml.ts';
import { type ChartFeatures, detectFeatures } from './features.ts';
import { kubeVersionSatisfies } from './kubeversion.ts';
import type { ChartMetadata, ChartRequest, Checked } from './types.ts';

/** The one chart that network installations are rendered from. */
const chartName = 'kube-ovn';

type Report = (reason: string, message: string, more?: Partial<Problem>) => void;

/** The single YAML object of a file of the chart; everything wrong with it is reported. */
function readYaml(files: readonly TarFile[], path: string, report: Report): JsonObject | undefined {
  const file = files.find((candidate) => candidate.path === path);
  if (file === undefined) {
    report('ChartInvalid', `the chart has no ${path}`);
    return undefined;
  }
  const { documents, problems } = parseYaml(Buffer.from(file.bytes).toString('utf8'), path);
  for (const problem of problems) report('ChartInvalid', `${path}:${problem.line ?? 1}: ${problem.message}`);
  const [document, another] = documents;
  if (problems.length > 0) return undefined;
  if (another !== undefined || (document !== undefined && !isObject(document.value))) {
    report('ChartInvalid', `${path} is not one YAML object`);
    return undefined;
  }
  return document !== undefined && isObject(document.value) ? document.value : {};
}

function textField(object: JsonObject, field: string, report: Report): string {
  const value: JsonValue | undefined = object[field];
  if (typeof value === 'string' && value !== '') return value;
  report('ChartInvalid', `Chart.yaml: ${field} ${value === undefined ? 'is missing' : 'is not a string'}`);
  return '';
}

const bare = (version: string): string => version.replace(/^v/, '');

function checkName(name: string, report: Report): void {
  if (name === '' || name === chartName) return;
  const why = name === 'kube-ovn-v2' ? '; its other layout (kube-ovn-v2) is not supported' : '';
  report('ChartNameMismatch', `the archive holds chart '${name}', not '${chartName}'${why}`, {
    remedy: `give the source of the chart ${chartName}`,
  });
}

function checkVersions(metadata: ChartMetadata, request: ChartRequest, report: Report): void {
  if (metadata.appVersion !== '' && bare(metadata.appVersion) !== bare(request.version))
    report('ChartVersionMismatch', `the chart is for Kube-OVN ${metadata.appVersion}`, {
      ...request.places.version,
      value: request.version,
      remedy: `set spec.version to ${bare(metadata.appVersion)}, or give the chart of ${bare(request.version)}`,
    });
  if (metadata.kubeVersion === undefined) return;
  const satisfied = kubeVersionSatisfies(request.kubernetesVersion, metadata.kubeVersion);
  if (satisfied === true) return;
  const what = satisfied === undefined ? 'cannot be compared with' : 'does not satisfy';
  report(
    'KubernetesOutOfRange',
    `Kubernetes ${request.kubernetesVersion} ${what} the chart's kubeVersion '${metadata.kubeVersion}'`,
    {
      ...request.places.kubernetesVersion,
      value: request.kubernetesVersion,
      remedy: 'use a chart version that supports this Kubernetes version',
    },
  );
}

/** Dependencies must lie in the archive under the declared name and version; nothing undeclared may lie there. */
function checkDependencies(object: JsonObject, files: readonly TarFile[], report: Report): void {
  const declared = Array.isArray(object.dependencies) ? object.dependencies.filter(isObject) : [];
  if (files.some((file) => file.path === 'requirements.yaml'))
    report('ChartInvalid', 'requirements.yaml is not supported');
  const names = new Set<string>();
  for (const dependency of declared) {
    const name = String(dependency.name ?? '');
    names.add(name);
    if (files.some((file) => file.path === `charts/${name}/Chart.yaml`)) continue;
    report(
      'ChartDependencyMissing',
      `the dependency '${name}' is not in the archive; nothing is downloaded while rendering`,
      {
        remedy: 'run helm dependency build before packaging',
      },
    );
  }
  const nested = new Set(
    files.map((file) => /^charts\/([^/]+)/.exec(file.path)?.[1]).filter((name) => name !== undefined),
  );
  for (const name of nested)
    if (!names.has(name)) report('ChartInvalid', `charts/${name} is not declared as a dependency in Chart.yaml`);
}

/** Chart.yaml and values.yaml, checked against what the specification asks for. All problems are told at once. */
export function readChart(
  files: readonly TarFile[],
  request: ChartRequest,
): Checked<{ metadata: ChartMetadata; values: JsonObject; features: ChartFeatures }> {
  const problems: Problem[] = [];
  const report: Report = (reason, message, more = {}) => {
    problems.push({ reason, message, ...request.places.source, ...more });
  };
  const chart = readYaml(files, 'Chart.yaml', report);
  const values = readYaml(files, 'values.yaml', report);
  if (chart === undefined || values === undefined) return { ok: false, problems };

  if (chart.apiVersion !== 'v2')
    report('ChartInvalid', `Chart.yaml: apiVersion is ${JSON.stringify(chart.apiVersion ?? null)}, not "v2"`);
  if (chart.type !== undefined && chart.type !== 'application')
    report('ChartInvalid', 'Chart.yaml: the chart is not an application');
  const kubeVersion = chart.kubeVersion;
  if (kubeVersion !== undefined && typeof kubeVersion !== 'string')
    report('ChartInvalid', 'Chart.yaml: kubeVersion is not a string');
  const metadata: ChartMetadata = {
    name: textField(chart, 'name', report),
    version: textField(chart, 'version', report),
    appVersion: textField(chart, 'appVersion', report),
    ...(typeof kubeVersion === 'string' && kubeVersion.trim() !== '' ? { kubeVersion } : {}),
  };
  checkName(metadata.name, report);
  checkVersions(metadata, request, report);
  checkDependencies(chart, files, report);
  const detected = detectFeatures(values);
  if ('missing' in detected) {
    const keys = detected.missing.join(', ');
    report('ChartShapeUnknown', `values.yaml lacks the keys of the ${chartName} chart: ${keys}`, {
      remedy: `give the chart ${chartName} (not kube-ovn-v2) as published by Kube-OVN`,
    });
  }
  if (problems.length > 0 || 'missing' in detected) return { ok: false, problems };
  return { ok: true, value: { metadata, values, features: detected.features } };
}
