/** Puts the sidecars that observe the daemons into the workloads that run them; everything else stays as the chart has it. */
import { evidenceSidecar, type SidecarOptions, sidecarVolumes } from '../../constructs/k8s/probe.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { type ChartObject, describeObject, groupKindOf, items, member, podSpecOf, withPodSpec } from './object.ts';

interface Part {
  readonly kind: SidecarOptions['kind'];
  /** Folders of sockets and files that the sidecar has to see. */
  readonly folders: readonly string[];
  /** A folder that it sees where the chart has it. */
  readonly also?: string;
}

interface Host {
  /** Container of the daemons. */
  readonly container: string;
  readonly parts: readonly Part[];
}

const central: Host = {
  container: 'ovn-central',
  parts: [{ kind: 'central', folders: ['/var/run/ovn', '/etc/ovn'] }],
};
const chassis: Host = {
  container: 'openvswitch',
  parts: [
    { kind: 'chassis', folders: ['/var/run/openvswitch', '/var/run/ovn'] },
    // SB is asked as the node itself asks it, with the certificate that the node has.
    { kind: 'drain', folders: ['/var/run/openvswitch'], also: '/var/run/tls' },
  ],
};

const hosts: Readonly<Record<string, Host>> = {
  'apps/Deployment/ovn-central': central,
  'apps/StatefulSet/ovn-central': central,
  'apps/DaemonSet/ovs-ovn': chassis,
  'apps/DaemonSet/ovs-ovn-dpdk': chassis,
};

/** The path without a slash at its end; `/run` is where `/var/run` leads. */
const plainPath = (path: unknown): string =>
  String(path)
    .replace(/\/+$/, '')
    .replace(/^\/run\//, '/var/run/');

/** Objects with their sidecars, or what of the chart's workloads is not as it has to be. */
export function injectProbes(
  objects: readonly ChartObject[],
  image: string | undefined,
): { readonly objects: readonly ChartObject[]; readonly problems: readonly Problem[] } {
  if (image === undefined) return { objects, problems: [] };
  const problems: Problem[] = [];
  const injected = objects.map((object) => {
    const host = hosts[`${groupKindOf(object)}/${object.name}`];
    const podSpec = host === undefined ? undefined : podSpecOf(object);
    if (host === undefined || podSpec === undefined) return object;
    const container = items(podSpec.containers).find(({ name }) => name === host.container);
    const mounts = items(container?.volumeMounts);
    const at = (folder: string): JsonObject[] =>
      mounts.filter(({ mountPath }) => plainPath(mountPath) === folder).slice(0, 1);
    const wanted = new Set(host.parts.flatMap(({ folders }) => folders));
    const missing = [...wanted].filter((folder) => at(folder).length === 0);
    if (container === undefined || missing.length > 0) {
      const what = container === undefined ? `container ${host.container}` : `a mount of ${missing.join(' and ')}`;
      problems.push({
        reason: 'ChartShapeUnknown',
        message: `the sidecar that observes it needs ${what}, which the chart does not have`,
        object: describeObject(object),
        remedy: 'use a chart version that Keelson knows, or leave spec.images.probe out of cluster.yaml',
      });
      return object;
    }
    const sidecars = host.parts.map(({ kind, folders, also }) =>
      evidenceSidecar({
        kind,
        image,
        folders: [...folders, ...(also === undefined ? [] : [also])].flatMap(at),
        ...accountOf(container),
      }),
    );
    return withPodSpec(object, {
      ...podSpec,
      containers: [...items(podSpec.containers), ...sidecars],
      volumes: [...items(podSpec.volumes), ...sidecarVolumes()],
    });
  });
  return { objects: injected, problems };
}

function accountOf(container: JsonObject): { runAsUser?: number } {
  const { runAsUser } = member(container, 'securityContext');
  return typeof runAsUser === 'number' ? { runAsUser } : {};
}
