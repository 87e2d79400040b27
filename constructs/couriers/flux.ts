import { deliveryPath, fluxOf } from '../api/cluster.ts';
import { apiVersion } from '../api/constants.ts';
import { releaseKind } from '../api/kinds/release.ts';
import { courierFolders, type Unit, unitFolder } from '../api/tree.ts';
import { parseDuration } from '../lib/duration.ts';
import type { JsonObject } from '../lib/json.ts';
import { type CourierInput, type CourierObject, courierLabels } from './objects.ts';

/** The objects by which Flux (2.5 or later) carries a rendered tree into its cluster. */

const sourceVersion = 'source.toolkit.fluxcd.io/v1';
const kustomizeVersion = 'kustomize.toolkit.fluxcd.io/v1';

/** How often Flux applies what did not change; a new commit is applied at once. */
const unitInterval = '10m';
/** How soon Flux tries again what failed; a new commit does not wait for it. */
const retryInterval = '30s';

/**
 * A GitRepository, a Kustomization for each unit, and `health`, which mirrors the Releases. Units do not wait for
 * anything to become ready: whatever a payload comes to, the next one is carried at once.
 */
export function fluxObjects(input: CourierInput): CourierObject[] {
  const kustomizations = [
    unit(input, '10-system', []),
    unit(input, '20-releases', ['10-system']),
    unit(input, '30-specs', ['10-system']),
  ];
  return [repository(input), ...kustomizations, health(input)];
}

function metadata(input: CourierInput, part?: string): CourierObject['manifest']['metadata'] {
  const { namespace, prefix } = fluxOf(input.cluster.spec.delivery);
  const name = part === undefined ? prefix : `${prefix}-${part}`;
  return { name, namespace, labels: courierLabels(input.cluster) };
}

function repository(input: CourierInput): CourierObject {
  const { delivery } = input.cluster.spec;
  const { interval, timeout, secretRef } = fluxOf(delivery);
  return {
    folder: courierFolders.own,
    manifest: {
      apiVersion: sourceVersion,
      kind: 'GitRepository',
      metadata: metadata(input),
      spec: {
        url: delivery.repository,
        ref: { branch: delivery.branch },
        interval,
        // This field takes no hours.
        timeout: `${Math.ceil(parseDuration(timeout) / 1000)}s`,
        ignore: onlyBelow(deliveryPath(input.cluster)),
        ...(secretRef === undefined ? {} : { secretRef: { name: secretRef.name } }),
      },
    },
  };
}

/** Patterns that leave out all but one folder: the trees of other clusters are none of this one's artifact. */
function onlyBelow(path: string): string {
  const lines: string[] = [];
  let above = '';
  for (const segment of path.split('/')) {
    lines.push(`${above}/*`, `!${above}/${segment}`);
    above = `${above}/${segment}`;
  }
  return `${lines.join('\n')}\n`;
}

function kustomization(input: CourierInput, part: string, folder: string, spec: JsonObject): CourierObject['manifest'] {
  const { timeout } = fluxOf(input.cluster.spec.delivery);
  return {
    apiVersion: kustomizeVersion,
    kind: 'Kustomization',
    metadata: metadata(input, part),
    spec: {
      sourceRef: { kind: 'GitRepository', name: metadata(input).name },
      path: `./${deliveryPath(input.cluster)}/${folder}`,
      timeout,
      retryInterval,
      wait: false,
      force: false,
      // Whoever deletes a courier's object means the courier, and not what it carried.
      deletionPolicy: 'Orphan',
      ...spec,
    },
  };
}

const dependsOn = (input: CourierInput, parts: readonly Unit[]): JsonObject =>
  parts.length === 0 ? {} : { dependsOn: parts.map((part) => ({ name: metadata(input, part).name })) };

function unit(input: CourierInput, name: Unit, after: readonly Unit[]): CourierObject {
  const spec = { interval: unitInterval, prune: true, ...dependsOn(input, after) };
  return { folder: courierFolders.own, manifest: kustomization(input, name, unitFolder(name), spec) };
}

/**
 * Mirrors the Releases, and holds nothing but itself: so the list of Releases follows the tree, and an empty folder, which
 * Flux refuses, is not needed. It comes after the units that write Releases and specs, at the same commit: ready at a
 * commit means that the Releases of that commit are.
 */
function health(input: CourierInput): CourierObject {
  const { interval } = fluxOf(input.cluster.spec.delivery);
  const { namespace } = input.cluster.spec.executor;
  const { kind } = releaseKind;
  const checks = input.releases.map((name) => ({ apiVersion, kind, namespace, name }));
  const spec = {
    interval,
    prune: false,
    ...dependsOn(input, ['20-releases', '30-specs']),
    ...(checks.length === 0
      ? {}
      : { healthChecks: checks, healthCheckExprs: [{ apiVersion, kind, ...releaseHealth }] }),
  };
  return { folder: courierFolders.health, manifest: kustomization(input, 'health', courierFolders.health, spec) };
}

const has = (type: string): string => `status.conditions.exists(c, c.type == '${type}' && c.status == 'True')`;

/**
 * When a Release is current, in CEL. Flux's own rules come to the same, but call a Release without conditions current and
 * do not ask whether it was ever carried out in full. Flux compares generations before it asks any of these.
 */
export const releaseHealth = {
  inProgress: `!has(status.conditions) || ${has('Reconciling')}`,
  failed: has('Stalled'),
  current: `${has('Ready')} && ${has('Available')}`,
} as const;
