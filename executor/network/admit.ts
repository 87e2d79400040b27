/** Whether a network payload may be enforced in this cluster at all. Pure. */
import { selectsCentral } from '../../constructs/api/central.ts';
import type { InstallationEntry, PayloadContent } from '../../constructs/api/payload.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { describeRef } from '../kube/types.ts';
import { installationEntryOf, installationRef, type NetworkSnapshot } from './snapshot.ts';

export interface AdmitInput {
  readonly content: PayloadContent;
  readonly previous?: { readonly content: PayloadContent };
}

const unsupported = (object: string, path: string, what: string, remedy: string): Problem => ({
  reason: 'ComponentMissing',
  message: `${what} needs a part that this executor does not contain; it is refused rather than half done`,
  object,
  path,
  remedy,
});

/** Parts of the specification that no component stands behind yet. */
function unsupportedParts(snapshot: NetworkSnapshot, object: string): Problem[] {
  const spec = snapshot.installation?.spec;
  if (spec === undefined) return [];
  const requests = spec.central.memberRequests ?? [];
  const fresh = snapshot.installation?.checkpoint === undefined;
  return [
    ...(requests.length > 0
      ? [
          fresh
            ? {
                reason: 'MemberRequestsTooEarly',
                message: 'member requests change a retained topology, and none is recorded yet',
                object,
                path: 'spec.central.memberRequests',
                remedy: 'leave them out of the first install',
              }
            : unsupported(object, 'spec.central.memberRequests', 'a change of membership', 'take the requests back'),
        ]
      : []),
  ];
}

/** The nodes of the index are exactly the live nodes that the selector matches, UIDs and addresses included. */
function placementProblems(entry: InstallationEntry, snapshot: NetworkSnapshot, object: string): Problem[] {
  const { installation, nodes } = snapshot;
  if (installation === undefined || entry.nodes.length === 0) return [];
  const problems: Problem[] = [];
  const remedy = 'run keelson inventory, look at what changed, and render again';
  const path = 'spec.central.nodeSelector';
  for (const rendered of entry.nodes) {
    const live = nodes.find((node) => node.name === rendered.name);
    if (live === undefined)
      problems.push({
        reason: 'InventoryStale',
        message: `node ${rendered.name}, which carries OVN central, does not exist`,
        object,
        path,
        remedy,
      });
    else if (live.uid !== rendered.uid)
      problems.push({
        reason: 'InventoryStale',
        message: `node ${rendered.name} is another one than rendered (UID ${live.uid}, rendered ${rendered.uid})`,
        object,
        path,
        remedy,
      });
    else if (live.internalIPs.join() !== rendered.addresses.join())
      problems.push({
        reason: 'InventoryStale',
        message: `node ${rendered.name} has the addresses ${live.internalIPs.join(', ')}, rendered were ${rendered.addresses.join(', ')}`,
        object,
        path,
        remedy,
      });
    else if (!selectsCentral(installation.spec.central.nodeSelector, live.labels))
      problems.push({
        reason: 'InventoryStale',
        message: `node ${rendered.name} no longer carries the central label`,
        object,
        path,
        remedy,
      });
  }
  const known = new Set(entry.nodes.map((node) => node.name));
  const matching = nodes.filter((live) => selectsCentral(installation.spec.central.nodeSelector, live.labels));
  const extra = matching.filter((live) => !known.has(live.name)).map((live) => live.name);
  if (extra.length > 0)
    problems.push({
      reason: 'InventoryStale',
      message: `${matching.length} nodes carry the central label, and the payload was rendered for ${entry.nodes.length}: a central pod could land on ${extra.join(', ')} and would not start`,
      object,
      path,
      remedy: 'take the label off the node, or run keelson inventory and render again',
    });
  return problems;
}

/** The order of central addresses is identity: once accepted it never changes by rendering. */
function orderProblems(entry: InstallationEntry, previous: InstallationEntry | undefined, object: string): Problem[] {
  if (previous === undefined) return [];
  const order = (of: InstallationEntry): string => of.nodes.map((node) => node.addresses[0] ?? '').join(',');
  if (order(previous) === order(entry)) return [];
  return [
    {
      reason: 'CentralOrderChanged',
      message: `the payload renders the central addresses ${order(entry)}, accepted are ${order(previous)}; their order and number are fixed`,
      object,
      path: 'inventory.yaml spec.topology',
      remedy:
        'run keelson inventory, which brings the accepted order back, and render again; members change by member requests only',
    },
  ];
}

/** Every reason why this payload must not be enforced here. */
export function admitNetwork(input: AdmitInput, snapshot: NetworkSnapshot): Problem[] {
  const entry = installationEntryOf(input.content);
  if (entry === undefined)
    return [
      {
        reason: 'PayloadIntegrity',
        message: `a network payload names exactly one KubeOVNInstallation; this one names ${input.content.installations.length} installation(s)`,
        path: 'content.installations',
        remedy: 'render the cluster again with this version of keelson',
      },
    ];
  const object = describeRef(installationRef(entry));
  const previous = input.previous === undefined ? undefined : installationEntryOf(input.previous.content);
  return [
    ...unsupportedParts(snapshot, object),
    ...placementProblems(entry, snapshot, object),
    ...orderProblems(entry, previous, object),
  ];
}
