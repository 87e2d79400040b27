import { addressesGroup, addressesRelease } from '../../constructs/api/addresses.ts';
import { addressesOf } from '../../constructs/api/addresses-settings.ts';
import { indexPath, type Tree } from '../../constructs/api/tree.ts';
import { groupOf } from '../../constructs/lib/names.ts';
import type { DomainOutput, DomainRenderer } from '../domain.ts';
import type { LoadedCluster } from '../load/load.ts';
import type { SourceObject } from '../load/source.ts';
import { overlapProblems, poolRanges } from './overlaps.ts';
import { changeProblems } from './previous.ts';
import { classRanges, defaultProblems, isOfMetallb } from './ranges.ts';
import { departureWarnings, placeholderProblems, runtimeProblems } from './refusals.ts';
import { addressesPayload } from './release.ts';

const isClass = ({ identity }: SourceObject): boolean =>
  groupOf(identity.apiVersion) === addressesGroup && identity.kind === 'IPAddressClass';

const manifestsOf = ({ manifests }: LoadedCluster): SourceObject[] =>
  manifests.flatMap(({ phases }) => phases.flatMap(({ objects }) => objects));

/** There is a ledger where a class is in Git, and where cluster.yaml says so. */
const hasLedger = (loaded: LoadedCluster, classes: readonly SourceObject[]): boolean =>
  classes.length > 0 || loaded.cluster.spec.addresses !== undefined;

function renderAddresses(loaded: LoadedCluster, previous: Tree | undefined): DomainOutput {
  const classes = loaded.specs.filter(isClass);
  if (!hasLedger(loaded, classes)) {
    const changes = departureWarnings(loaded, previous, indexPath(addressesRelease));
    return { releases: [], problems: [], warnings: [], changes };
  }
  const manifests = manifestsOf(loaded);
  const served = classes.filter(isOfMetallb);
  const problems = defaultProblems(classes);
  const ranges = classRanges(classes, problems);
  problems.push(...overlapProblems([...ranges, ...poolRanges(manifests)]));
  problems.push(...placeholderProblems(loaded, previous));
  const { metallb } = addressesOf(loaded.cluster.spec);
  problems.push(...runtimeProblems(manifests, served, metallb.placeholderNamespace));
  const change = changeProblems(classes, ranges, previous);
  problems.push(...change.problems);
  const releases = [addressesPayload(loaded, served, ranges)];
  return { releases, problems, warnings: [], changes: change.warnings };
}

/** Renders the ledger of addresses: its classes are specs, and its release is one for the whole cluster. */
export const addressesRenderer: DomainRenderer = {
  domain: 'addresses',
  kinds: [`${addressesGroup}/IPAddressClass`],
  render: (loaded, _signal, previous) => Promise.resolve(renderAddresses(loaded, previous)),
};
