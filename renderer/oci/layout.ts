/** An OCI image layout in a folder: content by digest, and an index that names it by the references it came from. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { digest } from '../../constructs/api/fields.ts';
import { readShape } from '../../constructs/api/shape.ts';
import type { Digest } from '../../constructs/lib/digest.ts';
import { makeFolder } from '../../constructs/lib/makefolder.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { replaceFile } from '../../constructs/lib/replacefile.ts';
import { DiskTrouble } from './blobfile.ts';
import { indexTypes } from './types.ts';

/** Annotations of an entry of `index.json`. */
export const layoutAnnotations = {
  /** The reference that the content was mirrored for. */
  name: 'org.opencontainers.image.ref.name',
  /** Of a chart: the digest of its archive, and the source that specs name. */
  chart: 'keelson.dev/chart',
  chartSource: 'keelson.dev/chart-source',
} as const;

const layoutVersion = '1.0.0';

const layoutEntry = z.looseObject({
  mediaType: z.string().min(1).max(255),
  digest: digest(),
  size: z.int().min(0),
  annotations: z.record(z.string().max(256), z.string().max(4096)).optional(),
});
export type LayoutEntry = z.output<typeof layoutEntry>;

const layoutIndex = z.looseObject({ schemaVersion: z.literal(2), manifests: z.array(layoutEntry).max(10_000) });
const layoutMarker = z.looseObject({ imageLayoutVersion: z.literal(layoutVersion) });

/** The file of a blob in a layout. */
export const layoutBlob = (folder: string, name: Digest): string =>
  join(folder, 'blobs', 'sha256', name.slice('sha256:'.length));

export type LayoutRead =
  | { readonly kind: 'read'; readonly entries: readonly LayoutEntry[] }
  /** There is no layout yet, or one that was not finished. */
  | { readonly kind: 'none' }
  | { readonly kind: 'invalid'; readonly problems: readonly Problem[] };

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) return 'no JSON';
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
}

/** The entries of a layout. */
export async function readLayout(folder: string): Promise<LayoutRead> {
  const remedy = 'name the folder of an OCI image layout, or mirror into an empty one';
  const marker = await readJson(join(folder, 'oci-layout'));
  if (marker === null) return { kind: 'none' };
  const known = readShape(layoutMarker, marker, { reason: 'LayoutInvalid', file: join(folder, 'oci-layout'), remedy });
  if (!known.ok) return { kind: 'invalid', problems: known.problems };
  const file = join(folder, 'index.json');
  const index = await readJson(file);
  if (index === null) return { kind: 'none' };
  const read = readShape(layoutIndex, index, { reason: 'LayoutInvalid', file, remedy });
  return read.ok ? { kind: 'read', entries: read.value.manifests } : { kind: 'invalid', problems: read.problems };
}

/** Makes the folders and the marker of a layout; what is there stays. @throws DiskTrouble */
export async function prepareLayout(folder: string): Promise<void> {
  try {
    await makeFolder(join(folder, 'blobs', 'sha256'));
  } catch (error) {
    throw new DiskTrouble(folder, error);
  }
  await replaceFile(join(folder, 'oci-layout'), JSON.stringify({ imageLayoutVersion: layoutVersion }));
}

/** One tag may stand for several digests: the locks of two clusters need not agree. */
const keyOf = ({ annotations, digest }: LayoutEntry): string => `${annotations?.[layoutAnnotations.name]} ${digest}`;

/** Writes the index: what it named before, and the new entries. */
export async function writeLayoutIndex(
  folder: string,
  before: readonly LayoutEntry[],
  entries: readonly LayoutEntry[],
): Promise<void> {
  const byKey = new Map([...before, ...entries].map((entry) => [keyOf(entry), entry]));
  const manifests = [...byKey].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry);
  const text = JSON.stringify({ schemaVersion: 2, mediaType: indexTypes[0], manifests }, null, 2);
  await replaceFile(join(folder, 'index.json'), `${text}\n`);
}
