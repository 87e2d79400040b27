/** What each variant of the test chart changes, and so what a renderer must find. */
import type { TarFile } from '../../constructs/lib/tar.ts';

export type ChartVariant =
  | 'new'
  | 'old'
  | 'appVersionMismatch'
  | 'missingAppVersion'
  | 'kubeVersionTooNew'
  | 'otherName'
  | 'nestedChart'
  | 'installHook'
  | 'unknownHook'
  | 'duplicateObject'
  | 'foreignNamespace'
  | 'unexpectedKind'
  | 'namelessObject'
  | 'secretWithData'
  | 'randomOutput'
  | 'pathTraversal'
  | 'absolutePath'
  | 'doubleEntry'
  | 'gzipBomb'
  | 'oversizeObject'
  | 'truncated';

export interface VariantEdits {
  readonly shape?: 'new' | 'old';
  /** Edits the chart's files in place. */
  readonly files?: (files: Map<string, string>) => void;
  /** More entries of the archive, given the chart's name. */
  readonly entries?: (name: string) => readonly TarFile[];
  /** The last change: to the packed bytes. */
  readonly archive?: (bytes: Uint8Array) => Uint8Array;
}

const chartLine =
  (from: RegExp, to: string) =>
  (files: Map<string, string>): void => {
    const before = files.get('Chart.yaml') ?? '';
    const after = before.replace(from, to);
    if (after === before) throw new Error(`Chart.yaml of the test chart has no line like ${from.source}`);
    files.set('Chart.yaml', after);
  };
const template =
  (name: string, text: string) =>
  (files: Map<string, string>): void => {
    files.set(`templates/${name}.yaml`, text);
  };
const configMap = (name: string, rest: string, metadata = ''): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n${metadata || '  namespace: {{ .Values.namespace }}\n'}${rest}`;
const hook = (word: string): string =>
  configMap(
    'hooked',
    'data: {}\n',
    `  namespace: {{ .Values.namespace }}\n  annotations:\n    helm.sh/hook: ${word}\n`,
  );

/** The content of the bomb: as large as the limits for one file, and next to nothing when packed. */
const zeros = (megabytes: number): Uint8Array => new Uint8Array(megabytes * 1024 * 1024);

export const variantEdits: Readonly<Record<ChartVariant, VariantEdits>> = {
  new: {},
  old: { shape: 'old' },
  appVersionMismatch: { files: chartLine(/^appVersion: .*$/m, 'appVersion: "1.15.0"') },
  missingAppVersion: { files: chartLine(/^appVersion: .*\n/m, '') },
  kubeVersionTooNew: { files: chartLine(/^kubeVersion: .*$/m, 'kubeVersion: ">= 1.99.0-0"') },
  otherName: { files: chartLine(/^name: kube-ovn$/m, 'name: kube-ovn-v2') },
  nestedChart: {
    files: (files) => {
      files.set('charts/inner/Chart.yaml', 'apiVersion: v2\nname: inner\nversion: 0.1.0\n');
      files.set('charts/inner/templates/inner.yaml', configMap('inner', 'data: {}\n', '  namespace: kube-system\n'));
    },
  },
  installHook: { files: template('install-hook', hook('pre-install')) },
  unknownHook: { files: template('unknown-hook', hook('post-delete,pre-flight')) },
  duplicateObject: { files: template('again', configMap('ovn-vpc-nat-config', 'data:\n  image: again\n')) },
  foreignNamespace: { files: template('foreign', configMap('foreign', 'data: {}\n', '  namespace: default\n')) },
  unexpectedKind: {
    files: template(
      'webhook',
      'apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata:\n  name: unexpected\nwebhooks: []\n',
    ),
  },
  namelessObject: { files: template('nameless', 'apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n') },
  secretWithData: {
    files: template(
      'secret',
      configMap('carried', 'stringData:\n  key: value\n').replace('kind: ConfigMap', 'kind: Secret'),
    ),
  },
  randomOutput: { files: template('random', configMap('random', 'data:\n  value: {{ randAlphaNum 12 | quote }}\n')) },
  pathTraversal: { entries: (name) => [{ path: `${name}/../../escaped.yaml`, bytes: Buffer.from('escaped\n') }] },
  absolutePath: { entries: () => [{ path: '/escaped.yaml', bytes: Buffer.from('escaped\n') }] },
  doubleEntry: { entries: (name) => [{ path: `${name}/Chart.yaml`, bytes: Buffer.from('name: other\n') }] },
  gzipBomb: { entries: (name) => [...Array(8).keys()].map((n) => ({ path: `${name}/zeros-${n}`, bytes: zeros(15) })) },
  oversizeObject: {
    files: template('oversize', configMap('oversize', 'data:\n  value: {{ repeat 2000000 "x" | quote }}\n')),
  },
  truncated: { archive: (bytes) => bytes.subarray(0, Math.floor(bytes.length / 2)) },
};

/** Names of all variants. */
export const chartVariants = Object.keys(variantEdits) as readonly ChartVariant[];
