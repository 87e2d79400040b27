import { addressesRelease } from '../../constructs/api/addresses.ts';
import { type AddressesSettings, addressesOf } from '../../constructs/api/addresses-settings.ts';
import { roleName } from '../../constructs/api/constants.ts';
import type { Gate } from '../../constructs/api/payload.ts';
import { addressPolicies, placeholderPolicy } from '../../constructs/k8s/addresses/admission.ts';
import { placeholderNamespace, rangesRecord } from '../../constructs/k8s/addresses/placeholders.ts';
import { addressesGrants } from '../../constructs/k8s/addresses/rights.ts';
import { userRoles } from '../../constructs/k8s/addresses/users.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import type { DomainRelease, ReleaseObject } from '../domain.ts';
import type { LoadedCluster } from '../load/load.ts';
import { settingsFiles } from '../load/settings.ts';
import type { SourceObject } from '../load/source.ts';
import type { WrittenRange } from './ranges.ts';

/** How long the role may take to run before it is called slow. */
const softLimit = '10m';

const byClass = (classes: readonly SourceObject[], ranges: readonly WrittenRange[]): Map<string, string[]> =>
  new Map(
    classes.map((source): [string, string[]] => [
      source.identity.name,
      ranges.filter((range) => range.source === source).map(({ block }) => block.text),
    ]),
  );

/**
 * The release of the ledger: who may do what, and where placeholders are. What does the work is a Deployment of unit
 * `10-system`; the release is ready once that is available. Classes themselves are delivered as specs.
 */
export function addressesPayload(
  loaded: LoadedCluster,
  served: readonly SourceObject[],
  ranges: readonly WrittenRange[],
): DomainRelease {
  const { spec } = loaded.cluster;
  const settings = addressesOf(spec);
  const origin = `${loaded.folder}/${settingsFiles.cluster}`;
  const plain = (objects: readonly JsonObject[]): ReleaseObject[] => objects.map((object) => ({ object, origin }));
  const { namespace } = spec.executor;
  const grants = addressesGrants(
    namespace,
    settings,
    served.map(({ identity }) => identity.name),
  );
  const access = [
    ...plain([...userRoles(), ...grants]),
    ...(settings.workers.includes('driver') ? placeholders(settings, origin, byClass(served, ranges)) : []),
    ...(settings.workers.includes('driver') ? plain(placeholderPolicy(spec)) : []),
  ];
  const gate: Gate = {
    type: 'Condition',
    scope: 'controller',
    target: {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      namespace,
      name: roleName('addresses'),
      condition: 'Available',
    },
    softLimit,
  };
  return {
    name: addressesRelease,
    domain: 'addresses',
    phases: [
      { name: 'access', dir: '20-access', gates: [], objects: access },
      { name: 'controller', dir: '30-controller', gates: [gate], objects: [] },
      { name: 'admission', dir: '50-admission', gates: [], objects: plain(addressPolicies(spec)) },
    ],
    installations: [],
    requires: [],
    spans: [],
    charts: [],
    filteredHooks: [],
  };
}

/** A namespace that is there already may hold placeholders of the driver before ours: it is used as it is, and stays. */
function placeholders(
  { metallb }: AddressesSettings,
  origin: string,
  ranges: ReadonlyMap<string, readonly string[]>,
): ReleaseObject[] {
  const name = metallb.placeholderNamespace;
  return [
    { object: placeholderNamespace(name), origin, createOnly: true, keep: true },
    { object: rangesRecord(name, ranges), origin },
  ];
}
