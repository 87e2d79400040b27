import type { Gate } from '../../constructs/api/payload.ts';
import { groupKindOf } from '../../constructs/api/plan.ts';
import { crdKind, isWorkload } from '../../constructs/k8s/kinds.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { DomainRelease, ReleaseObject, ReleasePhase } from '../domain.ts';
import type { ManifestPhase, ManifestSet } from '../load/manifestsets.ts';
import { readPolicy } from './policy.ts';

/** How long a phase of plain manifests may take before it is called slow; nothing ever gives up on it. */
const softLimit = '10m';

/** The release of a folder of plain manifests. */
export function manifestRelease(set: ManifestSet): { release: DomainRelease; problems: Problem[] } {
  const problems: Problem[] = [];
  const phases = set.phases.map((phase) => toPhase(phase, problems));
  if (phases.every((phase) => phase.objects.length === 0))
    problems.push({
      reason: 'EmptyPayload',
      message: `release manifests-${set.name} would hold no object`,
      file: set.folder,
      remedy: 'write an object, or remove the folder; removing it prunes nothing by itself',
    });
  const release: DomainRelease = {
    name: `manifests-${set.name}`,
    domain: 'manifests',
    phases,
    installations: [],
    requires: [],
    spans: [],
    charts: [],
    filteredHooks: [],
  };
  return { release, problems };
}

function toPhase(phase: ManifestPhase, problems: Problem[]): ReleasePhase {
  const objects = phase.objects.map((source): ReleaseObject => {
    const { policy, problems: found } = readPolicy(source);
    problems.push(...found);
    return { object: source.value, origin: source.file, line: source.line, ...policy };
  });
  const wanted = phase.objects.filter((_, index) => objects[index]?.absent !== true).map((source) => source.identity);
  const gate = (type: Gate['type']): Gate => ({ type, scope: phase.name, softLimit });
  const gates = [
    ...(wanted.some((identity) => groupKindOf(identity) === crdKind) ? [gate('Established')] : []),
    ...(wanted.some(isWorkload) ? [gate('WorkloadsReady')] : []),
  ];
  return { name: phase.name, dir: phase.dir, gates, objects };
}
