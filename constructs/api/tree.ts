import { z } from 'zod';
import { limits } from './constants.ts';
import { digest, dnsLabel, relativePath, requiredText } from './fields.ts';
import { readShape, type Shaped } from './shape.ts';

/** The rendered tree of a cluster: what publishing commits and couriers apply. */

/** Contents by path below the folder of the cluster, sorted by path. */
export type Tree = ReadonlyMap<string, Uint8Array>;

/** Lists all files of a tree but itself; publishing removes no file that the previous list does not name. */
export const treeFile = '.keelson/tree.json';

/** What a courier applies, as three units: each may be applied without the others being ready. */
export const units = ['10-system', '20-releases', '30-specs'] as const;
export type Unit = (typeof units)[number];

/** The folder of a unit in the tree. */
export const unitFolder = (unit: Unit): string => `sync/${unit}`;

/** Stands in a unit without objects, for couriers that refuse an empty folder; no object of a cluster. */
export const emptyUnitFile = 'kustomization.yaml';

/** Objects that point a courier at the units. `health` holds what Flux keeps up to date by itself, `merge` what joins an object of others. */
export const courierFolders = { own: 'courier', health: 'courier/health', merge: 'courier/merge' } as const;
export type CourierFolder = (typeof courierFolders)[keyof typeof courierFolders];

/** `index.json` of a release in the tree. */
export const indexPath = (release: string): string => `payload/${release}/index.json`;

const treePath = z.union([relativePath(), z.literal('.gitattributes')]);

export const departedObject = z.strictObject({
  id: requiredText(700),
  /** Of a binding: the role that it gives, as `Kind/name`. */
  binds: requiredText(320).optional(),
});
export type DepartedObject = z.infer<typeof departedObject>;

export const treeIndex = z.strictObject({
  formatVersion: z.literal(1),
  cluster: dnsLabel(),
  releases: z.array(z.strictObject({ name: dnsLabel(), digest: digest() })).max(256),
  /** Objects that payloads once named and no longer do, the newest last: the executor keeps its rights to them. */
  departed: z.array(departedObject).max(limits.objects),
  files: z
    .array(
      z.strictObject({
        path: treePath,
        sha256: z
          .string()
          .max(64)
          .regex(/^[0-9a-f]{64}$/),
      }),
    )
    .max(20_000),
});
export type TreeIndex = z.infer<typeof treeIndex>;

/** Reads `tree.json`. Its paths stay below the folder of the cluster, by their form. */
export function readTreeIndex(bytes: Uint8Array): Shaped<TreeIndex> {
  const where = { reason: 'TreeInvalid', file: treeFile, remedy: 'restore the file from the last published commit' };
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return { ok: false, problems: [{ ...where, message: 'the file is not JSON' }] };
  }
  return readShape(treeIndex, value, where);
}
