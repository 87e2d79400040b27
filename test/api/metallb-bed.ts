import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { type Component, startComponent } from '../apiserver/component.ts';
import { freshNamespace, serviceAccountToken } from '../apiserver/namespace.ts';
import { type ApiServer, type ApiServerOptions, startApiServer } from '../apiserver/server.ts';
import { writeKubeconfig } from '../apiserver/shared.ts';
import { selfSigned } from '../standins/certificate.ts';
import { readDefinitions } from '../tools/definitions.ts';
import { withLock } from '../tools/lock.ts';
import { freePort } from '../tools/ports.ts';
import { ensureTool } from '../tools/tools.ts';
import { until } from './kubeBed.ts';

/**
 * MetalLB's own controller against an API server of its own, since it looks at every Service there is. Nothing announces
 * what it assigns: that is the work of its other program, which needs a wire.
 */

const onProgress = (line: string): void => console.error(line);

/** An API server that gives Services addresses of both families, with MetalLB's definitions. */
export async function metalLbServer(options: Pick<ApiServerOptions, 'fsync'> = {}): Promise<ApiServer> {
  const server = await startApiServer({ ...options, serviceCidr: '10.96.0.0/16,fd00:96::/112', tools: { onProgress } });
  const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  const definitions = await readDefinitions('metallb', { onProgress });
  for (const body of definitions) await server.admin.expect('POST', crds, { body });
  for (const { metadata } of definitions)
    await until(`${(metadata as JsonObject).name} to be established`, async () => {
      const { body } = await server.admin.expect('GET', `${crds}/${(metadata as JsonObject).name}`);
      return JSON.stringify(body.status?.conditions ?? []).includes('"reason":"InitialNamesAccepted"');
    });
  return server;
}

interface Settings {
  /** `--lb-class`: the only Services that it serves; absent, those without a class. */
  readonly lbClass?: string;
  /** Serves its webhook, on the only port that it can: `withWebhookPort`. */
  readonly webhook?: boolean;
}

export interface Controller extends Component {
  /** Whether it takes the pools as they are for wrong, and works with what was right before; undefined while it has not looked. */
  stale(): Promise<boolean | undefined>;
  /** How many addresses a pool has as it knows it; undefined: it knows none of the name. */
  capacity(pool: string): Promise<number | undefined>;
}

/** One installation of MetalLB: a namespace with its pools, and the account of its controller. */
export interface MetalLb {
  /** Where its pools are. */
  readonly namespace: string;
  /** Starts its controller, which is not yet ready then. */
  start(settings?: Settings): Promise<Controller>;
  /** Creates a pool, without automatic choice unless told. */
  pool(name: string, addresses: readonly string[], autoAssign?: boolean): Promise<void>;
  setAddresses(pool: string, addresses: readonly string[]): Promise<void>;
  removePool(name: string): Promise<void>;
  /** What the API server is to trust when it asks the webhook, in base64. */
  readonly webhookCa: string;
}

/**
 * Has the API server ask MetalLB's webhook about pools while `work` runs, which is given a wait for the webhook of the controller
 * that it starts. The webhook listens on one port, whatever it is told: there is one at a time on a machine.
 */
export async function withWebhook(
  { namespace, webhookCa: caBundle }: MetalLb,
  { admin }: ApiServer,
  work: (enabled: (controller: Controller) => Promise<void>) => Promise<void>,
): Promise<void> {
  const url = 'https://127.0.0.1:9443/validate-metallb-io-v1beta1-ipaddresspool';
  const metadata = { name: namespace };
  const kind = 'ValidatingWebhookConfiguration';
  const webhook = {
    name: 'ipaddresspoolvalidationwebhook.metallb.io',
    admissionReviewVersions: ['v1'],
    clientConfig: { url, caBundle },
    rules: [
      {
        apiGroups: ['metallb.io'],
        apiVersions: ['v1beta1'],
        operations: ['CREATE', 'UPDATE'],
        resources: ['ipaddresspools'],
      },
    ],
    sideEffects: 'None',
  };
  const at = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
  const probe = {
    apiVersion: 'metallb.io/v1beta1',
    kind: 'IPAddressPool',
    metadata: { name: 'probe' },
    spec: { addresses: ['no network'] },
  };
  await withLock('metallb-webhook-9443', {}, async () => {
    const body = { apiVersion: 'admissionregistration.k8s.io/v1', kind, metadata, webhooks: [webhook] };
    try {
      await work(async (controller) => {
        await admin.expect('POST', at, { body });
        await until('the webhook to be asked', async () => {
          controller.alive();
          const { status } = await admin.request('POST', `${group}/namespaces/${namespace}/ipaddresspools`, {
            body: probe,
            query: { dryRun: 'All' },
          });
          return status === 403;
        });
      });
    } finally {
      await admin.request('DELETE', `${at}/${metadata.name}`);
    }
  });
}

const group = '/apis/metallb.io/v1beta1';

/** Rights as MetalLB asks for: of a Service it changes the status alone. */
const rules = [
  { apiGroups: [''], resources: ['services', 'namespaces'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['services/status'], verbs: ['update'] },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];
const ownRules = [
  {
    apiGroups: ['metallb.io'],
    resources: ['ipaddresspools', 'communities', 'bgpadvertisements', 'l2advertisements', 'bgppeers', 'bfdprofiles'],
    verbs: ['get', 'list', 'watch'],
  },
  { apiGroups: ['metallb.io'], resources: ['ipaddresspools/status'], verbs: ['update'] },
];

async function grant({ admin }: ApiServer, namespace: string): Promise<void> {
  const rbac = 'rbac.authorization.k8s.io';
  const subjects = [{ kind: 'ServiceAccount', name: 'controller', namespace }];
  const bind = async (prefix: string, place: string, some: readonly object[]): Promise<void> => {
    const metadata = { name: place === '' ? namespace : 'controller' };
    const kind = `${prefix}Role`;
    const at = `/apis/${rbac}/v1/${place}${kind.toLowerCase()}`;
    await admin.expect('POST', `${at}s`, { body: { apiVersion: `${rbac}/v1`, kind, metadata, rules: some } });
    const roleRef = { apiGroup: rbac, kind, name: metadata.name };
    const body = { apiVersion: `${rbac}/v1`, kind: `${kind}Binding`, metadata, roleRef, subjects };
    await admin.expect('POST', `${at}bindings`, { body });
  };
  await bind('Cluster', '', rules);
  await bind('', `namespaces/${namespace}/`, ownRules);
}

/** Installs MetalLB in a namespace of its own. */
export async function metalLb(server: ApiServer): Promise<MetalLb> {
  const { admin } = server;
  const program = await ensureTool('metallb-controller', { onProgress });
  const namespace = await freshNamespace(admin, 'metallb');
  await grant(server, namespace);
  const token = await serviceAccountToken(admin, namespace, 'controller');
  const directory = join(server.directory, namespace);
  // Where Go's temporary folder is decides where its webhook looks for a certificate; its flag for that is not heeded.
  const certificates = join(directory, 'k8s-webhook-server', 'serving-certs');
  await mkdir(certificates, { recursive: true });
  const { cert, key } = selfSigned(['127.0.0.1']);
  await writeFile(join(certificates, 'tls.crt'), cert);
  await writeFile(join(certificates, 'tls.key'), key, { mode: 0o600 });
  const kubeconfig = await writeKubeconfig(join(directory, 'kubeconfig'), server, { token });
  const pools = `${group}/namespaces/${namespace}/ipaddresspools`;
  return {
    namespace,
    webhookCa: Buffer.from(cert).toString('base64'),
    async start({ lbClass, webhook = false } = {}) {
      const port = await freePort();
      const component = startComponent(
        'metallb-controller',
        'env',
        [
          `TMPDIR=${directory}`,
          program,
          `--kubeconfig=${kubeconfig}`,
          `--namespace=${namespace}`,
          `--port=${port}`,
          ...(webhook ? ['--disable-cert-rotation'] : ['--webhook-mode=disabled']),
          ...(lbClass === undefined ? [] : [`--lb-class=${lbClass}`]),
        ],
        directory,
      );
      const gauge = async (name: string): Promise<number | undefined> => {
        component.alive();
        const reply = await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => undefined);
        const line = (await reply?.text())?.split('\n').find((one) => one.startsWith(`metallb_${name} `));
        return line === undefined ? undefined : Number(line.split(' ')[1]);
      };
      return {
        ...component,
        async stale() {
          if ((await gauge('k8s_client_config_stale_bool')) === 1) return true;
          return (await gauge('k8s_client_config_loaded_bool')) === 1 ? false : undefined;
        },
        capacity: (pool) => gauge(`allocator_addresses_total{pool="${pool}"}`),
      };
    },
    async pool(name, addresses, autoAssign = false) {
      const spec = { addresses, autoAssign };
      const body = { apiVersion: 'metallb.io/v1beta1', kind: 'IPAddressPool', metadata: { name }, spec };
      await admin.expect('POST', pools, { body });
    },
    async setAddresses(name, addresses) {
      const body = { spec: { addresses } };
      await admin.expect('PATCH', `${pools}/${name}`, { body, type: 'application/merge-patch+json' });
    },
    async removePool(name) {
      await admin.expect('DELETE', `${pools}/${name}`);
    },
  };
}
