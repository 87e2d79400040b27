/**
 * What an installation is looked at by: the specification that its accepted payload was rendered from. One that was changed in
 * Git and is not accepted, or is blocked, says nothing about what runs. Pure.
 */
import { specDigest } from '../../constructs/api/digests.ts';
import type { InstallationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import { enforcedSpec } from '../../constructs/api/kinds/kubeovn-installation-status.ts';
import { isObject, type JsonObject } from '../../constructs/lib/json.ts';
import type { KubeObject } from '../kube/types.ts';

const appliedDigest = ({ status }: KubeObject): string | undefined => {
  const checkpoint = status?.applyCheckpoint;
  return isObject(checkpoint) && typeof checkpoint.specDigest === 'string' ? checkpoint.specDigest : undefined;
};

/** Digests of a specification: as it is in the cluster, and as the accepted payload was rendered from it. */
export interface SpecDigests {
  readonly live: string;
  readonly applied: string | undefined;
}

export const digestsOf = (installation: KubeObject): SpecDigests => {
  const { apiVersion, kind, spec } = installation;
  return { live: specDigest({ apiVersion, kind }, spec ?? {}), applied: appliedDigest(installation) };
};

/** Whether the specification in the cluster is the one of the accepted payload. */
export const isEnforced = ({ live, applied }: SpecDigests): boolean => live === applied;

/**
 * What a status keeps of the specification that is enforced, `spec` being the one in the cluster: of that while it is the
 * accepted one, and what was kept before while it is not.
 */
export function enforcedPart(
  installation: KubeObject,
  spec: InstallationSpec,
  digests = digestsOf(installation),
): JsonObject {
  const kept = installation.status?.enforced;
  if (!isEnforced(digests)) return kept === undefined ? {} : { enforced: kept };
  const { version, networkStack, networkProbe, central, external, hcp } = spec;
  const { role, peerNamespace, tlsSecretRef, northbound, southbound } = hcp ?? {};
  const isHalf =
    hcp?.enabled === true &&
    role !== undefined &&
    peerNamespace !== undefined &&
    tlsSecretRef !== undefined &&
    northbound !== undefined &&
    southbound !== undefined;
  return {
    enforced: {
      specDigest: digests.live,
      version,
      ...(networkStack === undefined ? {} : { networkStack }),
      networkProbe: networkProbe !== undefined,
      replicas: central.replicas,
      ...(external === undefined ? {} : { external: { ...external } }),
      ...(isHalf ? { hcp: { role, peerNamespace, tlsSecretRef: { ...tlsSecretRef }, northbound, southbound } } : {}),
    },
  };
}

/** What is kept of the specification that the checkpoint fixes. */
function keptOf({ status }: KubeObject, applied: string | undefined) {
  const kept = enforcedSpec.safeParse(status?.enforced);
  return kept.success && kept.data.specDigest === applied ? kept.data : undefined;
}

/**
 * Whether it is known what is enforced: the accepted specification is in the cluster, or what counts of it is kept. Before
 * anything is accepted there is no other than the one in the cluster.
 */
export function knowsEnforced(installation: KubeObject, { applied, live } = digestsOf(installation)): boolean {
  return applied === undefined || live === applied || keptOf(installation, applied) !== undefined;
}

/** The specification to look by. `spec` is the one in the cluster, and the only one that is known before anything is accepted. */
export function enforcedIn(
  installation: KubeObject,
  spec: InstallationSpec,
  { applied, live } = digestsOf(installation),
): InstallationSpec {
  const kept = keptOf(installation, applied);
  if (kept === undefined || live === applied) return spec;
  const { central, networkStack: _stack, networkProbe, external: _external, hcp: _hcp, ...rest } = spec;
  const { version, networkStack, replicas, external, hcp } = kept;
  return {
    ...rest,
    version,
    central: { ...central, replicas },
    ...(networkStack === undefined ? {} : { networkStack }),
    // Of the probe only whether there is one decides what is looked at.
    ...(kept.networkProbe ? { networkProbe: networkProbe ?? { image: '' } } : {}),
    ...(external === undefined ? {} : { external }),
    ...(hcp === undefined ? {} : { hcp: { enabled: true, ...hcp } }),
  };
}
