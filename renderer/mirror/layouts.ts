import { copyFile, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { isDigest, sha256Digest } from '../../constructs/lib/digest.ts';
import { DiskTrouble, holds, writeParts } from '../oci/blobfile.ts';
import { type LayoutEntry, layoutAnnotations, layoutBlob } from '../oci/layout.ts';
import type { Descriptor } from '../oci/links.ts';
import { rawManifest } from '../oci/pullmanifest.ts';
import { formatReference, type Reference } from '../oci/reference.ts';
import { failed, maxManifestBytes } from '../oci/types.ts';
import type { BlobFile, ContentSource, ContentTarget, MirrorRoot } from './content.ts';

/** The name of a reference in a layout: with its tag where it has one, else with its digest. */
const layoutName = ({ digest, ...ref }: Reference): string =>
  formatReference(ref.tag !== undefined || digest === undefined ? ref : { ...ref, digest });

/** Content of a layout. Everything is verified before it is handed on. */
export function layoutSource(folder: string): ContentSource {
  const remedy = `mirror into ${folder} again where the registries can be reached`;
  return {
    async manifest(ref, mediaType = '') {
      if (!isDigest(ref.digest)) return failed('invalid', `${formatReference(ref)} has no digest`);
      const bytes = await readFile(layoutBlob(folder, ref.digest)).catch(() => undefined);
      if (bytes === undefined) return failed('notFound', `${folder} does not hold manifest ${ref.digest}`, remedy);
      if (bytes.length > maxManifestBytes || sha256Digest(bytes) !== ref.digest)
        return failed('digestMismatch', `${folder}: the file of manifest ${ref.digest} is damaged`, remedy);
      return { ok: true, value: rawManifest(bytes, ref.digest, mediaType) };
    },
    async blob(_ref, blob, _spool, _onBytes, signal) {
      const file = layoutBlob(folder, blob.digest);
      if (await holds(file, blob.digest, blob.size, signal)) return { ok: true, value: { file, ours: false } };
      return failed('notFound', `${folder} does not hold blob ${blob.digest}, or it is damaged`, remedy);
    },
  };
}

/** A layout as a target. `named` receives the entries that its index is to name in the end. */
export function layoutTarget(folder: string, spool: string, named: LayoutEntry[]): ContentTarget {
  const place = (blob: Pick<Descriptor, 'digest'>): string => layoutBlob(folder, blob.digest);
  let parts = 0;
  const nextPart = (): string => join(spool, `part-${++parts}`);
  return {
    spool,
    keptUnder: () => '',
    async hasBlob(_ref, blob, signal) {
      return { ok: true, value: await holds(place(blob), blob.digest, blob.size, signal) };
    },
    async putBlob(_ref, blob, from) {
      await moveIn(from, place(blob), nextPart());
      return { ok: true, value: undefined };
    },
    async putManifest(_ref, manifest, signal) {
      const size = manifest.bytes.length;
      if (await holds(place(manifest), manifest.digest, size, signal)) return { ok: true, value: 'present' };
      // Two images may bring one manifest at the same time.
      const part = nextPart();
      await writeParts(part, [manifest.bytes]);
      await moveIn({ file: part, ours: true }, place(manifest), part);
      return { ok: true, value: 'sent' };
    },
    async finish(root, ref, top) {
      named.push(entryOf(root, ref, top.mediaType, top.digest, top.bytes.length));
      return { ok: true, value: undefined };
    },
  };
}

/** Whole or not at all: what is not ours to move is copied beside its place first. */
async function moveIn(from: BlobFile, to: string, part: string): Promise<void> {
  try {
    if (!from.ours) await copyFile(from.file, part);
    await rename(from.ours ? from.file : part, to);
  } catch (error) {
    throw new DiskTrouble(to, error);
  }
}

function entryOf(root: MirrorRoot, ref: Reference, mediaType: string, digest: string, size: number): LayoutEntry {
  const { chart } = root;
  return {
    mediaType,
    digest,
    size,
    annotations: {
      [layoutAnnotations.name]: layoutName(ref),
      ...(chart === undefined
        ? {}
        : { [layoutAnnotations.chart]: chart.digest, [layoutAnnotations.chartSource]: chart.source }),
    },
  };
}
