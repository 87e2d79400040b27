/** What the network domain knows of the cluster when it judges a payload. Everything is read uncached. */
import { networkApiVersion } from '../../constructs/api/constants.ts';
import { type InstallationSpec, installationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import { type ApplyCheckpoint, applyCheckpoint } from '../../constructs/api/kinds/kubeovn-installation-status.ts';
import type { InstallationEntry, PayloadContent } from '../../constructs/api/payload.ts';
import { isObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeRef, type KubeObject, type ObjectRef, refOf, uidOf } from '../kube/types.ts';

export const installationKind = 'KubeOVNInstallation';

/** A live node, as far as placement is concerned. */
export interface LiveNode {
  readonly name: string;
  readonly uid: string;
  /** In the order of the API server. */
  readonly internalIPs: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

/** The installation that a payload is for, as it is in the cluster. */
export interface LiveInstallation {
  readonly object: KubeObject;
  readonly uid: string;
  readonly spec: InstallationSpec;
  readonly checkpoint: ApplyCheckpoint | undefined;
  readonly observedVersion: string | undefined;
}

export interface NetworkSnapshot {
  readonly installation: LiveInstallation | undefined;
  readonly nodes: readonly LiveNode[];
}

/** The installation that a payload names: exactly one, of the kind this domain knows. */
export const installationEntryOf = (content: PayloadContent): InstallationEntry | undefined =>
  content.installations.length === 1 &&
  content.installations[0]?.apiVersion === networkApiVersion &&
  content.installations[0].kind === installationKind
    ? content.installations[0]
    : undefined;

export const installationRef = (entry: Pick<InstallationEntry, 'namespace' | 'name'>): ObjectRef => ({
  apiVersion: networkApiVersion,
  kind: installationKind,
  namespace: entry.namespace,
  name: entry.name,
});

function stringsOf(value: JsonValue | undefined): Record<string, string> {
  if (!isObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((pair): pair is [string, string] => typeof pair[1] === 'string'),
  );
}

/** A Node object as a {@link LiveNode}. */
function toLiveNode(node: KubeObject): LiveNode {
  const addresses = Array.isArray(node.status?.addresses) ? node.status.addresses.filter(isObject) : [];
  return {
    name: node.metadata.name ?? '',
    uid: uidOf(node),
    internalIPs: addresses.filter((address) => address.type === 'InternalIP').map((address) => String(address.address)),
    labels: stringsOf(node.metadata.labels),
  };
}

/** Reads what a status says was authorised; an unreadable checkpoint is a problem, never taken for none. */
export function readCheckpoint(object: KubeObject): { checkpoint: ApplyCheckpoint | undefined; problems: Problem[] } {
  const stored = object.status?.applyCheckpoint;
  if (stored === undefined) return { checkpoint: undefined, problems: [] };
  const read = applyCheckpoint.safeParse(stored);
  if (read.success) return { checkpoint: read.data, problems: [] };
  const problem: Problem = {
    reason: 'CheckpointUnreadable',
    message: 'status.applyCheckpoint is not what this executor writes; nothing is written while it cannot be read',
    object: describeRef(refOf(object)),
    path: 'status.applyCheckpoint',
    remedy: 'find out who wrote it; run the executor version that did',
  };
  return { checkpoint: undefined, problems: [problem] };
}

/** An installation with its spec and checkpoint; a part that can not be read is a problem. */
export function readInstallation(object: KubeObject): { installation?: LiveInstallation; problems: Problem[] } {
  const spec = installationSpec.safeParse(object.spec ?? {});
  const { checkpoint, problems } = readCheckpoint(object);
  if (!spec.success) {
    const message = spec.error.issues[0]?.message ?? 'invalid';
    return {
      problems: [{ reason: 'InvalidSpec', message, object: describeRef(refOf(object)), path: 'spec' }, ...problems],
    };
  }
  if (problems.length > 0) return { problems };
  const { observedVersion } = object.status ?? {};
  return {
    installation: {
      object,
      uid: uidOf(object),
      spec: spec.data,
      checkpoint,
      observedVersion: typeof observedVersion === 'string' ? observedVersion : undefined,
    },
    problems,
  };
}

const rejected = (what: string, { type, message }: { readonly type: string; readonly message: string }): Problem => ({
  reason: type === 'unavailable' ? 'ApiUnavailable' : 'ReadFailed',
  message,
  object: what,
});

/** Gathers the snapshot of a payload. */
export async function takeSnapshot(
  content: PayloadContent,
  client: KubeClient,
  signal: AbortSignal,
): Promise<{ snapshot: NetworkSnapshot; problems: Problem[] }> {
  const entry = installationEntryOf(content);
  if (entry === undefined) return { snapshot: { installation: undefined, nodes: [] }, problems: [] };
  const ref = installationRef(entry);
  const [found, listed] = await Promise.all([
    client.get(ref, { signal }),
    client.list({ apiVersion: 'v1', kind: 'Node' }, { signal }),
  ]);
  const problems: Problem[] = [];
  const nodes = listed.type === 'listed' ? listed.items.map(toLiveNode) : [];
  if (listed.type !== 'listed') problems.push(rejected('nodes', listed));
  if (found.type === 'found') {
    const read = readInstallation(found.object);
    problems.push(...read.problems);
    return { snapshot: { installation: read.installation, nodes }, problems };
  }
  problems.push(
    found.type === 'absent'
      ? {
          reason: 'InstallationMissing',
          message: 'the object that the payload is for does not exist yet',
          object: describeRef(ref),
          remedy: 'deliver sync/30-specs; the payload waits for it',
        }
      : rejected(describeRef(ref), found),
  );
  return { snapshot: { installation: undefined, nodes }, problems };
}
