import { gzipFixed, packTar, type TarFile } from '../../constructs/lib/tar.ts';
import { dumpYaml } from '../../constructs/lib/yaml.ts';

/** What differs from the usual small chart; a file set to undefined is left out. */
export interface ChartVariant {
  readonly name?: string;
  readonly version?: string;
  readonly appVersion?: string;
  readonly kubeVersion?: string;
  readonly modes?: boolean;
  readonly dependencies?: readonly { name: string; version: string; repository: string }[];
  readonly files?: Readonly<Record<string, string | undefined>>;
}

/** Values with the keys that every release of the kube-ovn chart has. */
function values(modes: boolean): string {
  return dumpYaml({
    namespace: 'kube-system',
    MASTER_NODES: '',
    MASTER_NODES_LABEL: 'kube-ovn/role=master',
    networking: { NET_STACK: 'ipv4', ENABLE_SSL: false },
    global: {
      registry: { address: 'registry.test/kubeovn', imagePullSecrets: [] },
      images: {
        kubeovn: { repository: 'kube-ovn', tag: 'v1.16.2' },
        natgateway: { repository: 'vpc-nat-gateway', tag: 'v1.16.2' },
      },
    },
    ...(modes
      ? { installMode: 'full', OVN_CENTRAL_MODE: 'cluster', externalOvnCentral: { nbEndpoint: '', sbEndpoint: '' } }
      : {}),
  });
}

const central = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: ovn-central
  namespace: {{ .Values.namespace }}
  annotations:
    release: {{ .Release.Name }}/{{ .Release.Namespace }}
    kube: {{ .Capabilities.KubeVersion.Version }}
    nodes: {{ lookup "v1" "Node" "" "" | len | quote }}
spec:
  replicas: {{ len (split "," .Values.MASTER_NODES) }}
  selector:
    matchLabels: {app: ovn-central}
  template:
    metadata:
      labels: {app: ovn-central}
    spec:
      containers:
        - name: ovn-central
          image: {{ .Values.global.registry.address }}/{{ .Values.global.images.kubeovn.repository }}:{{ .Values.global.images.kubeovn.tag }}
          env:
            - name: NODE_IPS
              value: {{ .Values.MASTER_NODES | quote }}
`;

const natConfig = `apiVersion: v1
kind: ConfigMap
metadata:
  name: ovn-vpc-nat-config
  namespace: {{ .Values.namespace }}
data:
  image: {{ .Values.global.registry.address }}/{{ .Values.global.images.natgateway.repository }}:{{ .Values.global.images.natgateway.tag }}
`;

const tlsSecret = `{{- if .Values.networking.ENABLE_SSL }}
{{- $ca := genCA "ovn-ca" 3650 }}
apiVersion: v1
kind: Secret
metadata:
  name: kube-ovn-tls
  namespace: {{ .Values.namespace }}
data:
  cacert: {{ $ca.Cert | b64enc }}
{{- end }}
`;

/** A template with one hook object. */
export function hookTemplate(hook: string): string {
  return `apiVersion: batch/v1
kind: Job
metadata:
  name: hook-job
  namespace: {{ .Values.namespace }}
  annotations:
    helm.sh/hook: ${hook}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - {name: hook, image: "registry.test/kubeovn/kube-ovn:v1.16.2"}
`;
}

/** The files of a small chart that looks like kube-ovn, below its folder. */
export function chartFiles(variant: ChartVariant = {}): TarFile[] {
  const {
    name = 'kube-ovn',
    version = 'v1.16.2',
    appVersion = '1.16.2',
    kubeVersion = '>= 1.29.0-0',
    dependencies,
  } = variant;
  const metadata = { apiVersion: 'v2', type: 'application', name, version, appVersion, kubeVersion };
  const contents: Record<string, string | undefined> = {
    'Chart.yaml': dumpYaml({ ...metadata, ...(dependencies === undefined ? {} : { dependencies: [...dependencies] }) }),
    'values.yaml': values(variant.modes ?? true),
    'templates/central-deploy.yaml': central,
    'templates/vpc-nat-config.yaml': natConfig,
    'templates/ovn-tls-secret.yaml': tlsSecret,
    ...variant.files,
  };
  return Object.entries(contents)
    .filter((entry): entry is [string, string] => entry[1] !== undefined)
    .map(([path, text]) => ({ path: `${name}/${path}`, bytes: Buffer.from(text) }));
}

/** The archive of such a chart. */
export async function chartArchive(variant: ChartVariant = {}): Promise<Uint8Array> {
  return gzipFixed(await packTar(chartFiles(variant)));
}
