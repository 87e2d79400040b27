import type { JsonObject } from '../../../constructs/lib/json.ts';
import { readDefinitions } from '../../tools/definitions.ts';
import type { ToolOptions } from '../../tools/store.ts';
import type { LocalGit } from '../local/git.ts';
import { gitSecret } from '../local/specs.ts';
import type { Cluster } from '../types.ts';
import { type FluxImages, pushFluxImages } from './images.ts';
import { fluxNamespace, fluxObjects } from './objects.ts';
import { fluxTools } from './programs.ts';

const rolloutLimitMs = 120_000;

/** The twentieth address of the range: below those that the API server gives out by itself as long as it can. */
function sourceAddressOf(serviceCIDR: string): string {
  const [base = ''] = serviceCIDR.split('/');
  return base.replace(/\.\d+$/, '.20');
}

async function applyAs(cluster: Cluster, manager: string, items: readonly JsonObject[]): Promise<void> {
  const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...items] });
  await cluster.kubectl(['apply', '--server-side', `--field-manager=${manager}`, '-f', '-'], { input });
}

/**
 * Installs Flux: its definitions, rights and controllers, and the password of the Git server. Its pods run as soon as the
 * cluster has a network for them.
 */
export async function installFlux(
  cluster: Cluster,
  images: FluxImages,
  git: LocalGit,
  options: ToolOptions = {},
): Promise<void> {
  const references = await pushFluxImages(cluster.registry.hostRef, images);
  const definitions: JsonObject[] = [];
  for (const name of fluxTools) definitions.push(...(await readDefinitions(name, options)));
  await applyAs(cluster, 'flux', definitions);
  const sourceAddress = sourceAddressOf(cluster.state().serviceCIDR);
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: gitSecret, namespace: fluxNamespace },
    stringData: { username: git.username, password: git.password },
  };
  await applyAs(cluster, 'flux', [...fluxObjects({ images: references, sourceAddress }), secret]);
}

/** Waits until both controllers are ready. @throws Error when they are not within two minutes. */
export async function fluxRuns(cluster: Cluster): Promise<void> {
  for (const name of fluxTools)
    await cluster.kubectl(
      ['-n', fluxNamespace, 'rollout', 'status', `deployment/${name}`, `--timeout=${rolloutLimitMs / 1000}s`],
      { limitMs: rolloutLimitMs + 10_000 },
    );
}

/** Runs no controller of Flux, or one of each again. */
export async function scaleFlux(cluster: Cluster, replicas: 0 | 1): Promise<void> {
  const deployments = fluxTools.map((name) => `deployment/${name}`);
  await cluster.kubectl(['-n', fluxNamespace, 'scale', `--replicas=${replicas}`, ...deployments]);
  if (replicas === 1) return fluxRuns(cluster);
  await cluster.kubectl(['-n', fluxNamespace, 'wait', '--for=delete', 'pod', '--all', '--timeout=60s'], {
    limitMs: 70_000,
  });
}
