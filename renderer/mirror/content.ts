/** What mirroring works on: content by digest, wherever it is kept. */
import type { Digest } from '../../constructs/lib/digest.ts';
import type { Descriptor } from '../oci/links.ts';
import type { OnBytes } from '../oci/pullblob.ts';
import type { RawManifest } from '../oci/pullmanifest.ts';
import type { Reference } from '../oci/reference.ts';
import type { RegistryOutcome } from '../oci/types.ts';

/** Something to mirror: an image or a chart, by the name that specs use. */
export interface MirrorRoot {
  /** Name with tag and digest as far as they are known; the digest is that of the manifest or index. */
  readonly ref: Reference;
  /** The archive of a chart, which the manifest must hold. */
  readonly chart?: ChartArchive;
}

export interface ChartArchive {
  /** Where the chart comes from, as the spec says. */
  readonly source: string;
  readonly digest: Digest;
}

/** A file that holds a blob, verified. `ours`: whoever takes it may move it away. */
export interface BlobFile {
  readonly file: string;
  readonly ours: boolean;
}

/** Where content comes from. Failures are outcomes; a full disk and an abort are thrown. */
export interface ContentSource {
  manifest(ref: Reference, mediaType?: string, signal?: AbortSignal): Promise<RegistryOutcome<RawManifest>>;
  /** @param spool a file that may be written for it. */
  blob(
    ref: Reference,
    blob: Descriptor,
    spool: string,
    onBytes: OnBytes,
    signal?: AbortSignal,
  ): Promise<RegistryOutcome<BlobFile>>;
}

/** Where content goes. What is there already is not sent again. */
export interface ContentTarget {
  /** Folder for files on their way; gone when the run ends. */
  readonly spool: string;
  /** Names under which a blob is kept once: repositories keep their own, a layout keeps one for all. */
  keptUnder(ref: Reference): string;
  hasBlob(ref: Reference, blob: Descriptor, signal?: AbortSignal): Promise<RegistryOutcome<boolean>>;
  putBlob(ref: Reference, blob: Descriptor, from: BlobFile, signal?: AbortSignal): Promise<RegistryOutcome<undefined>>;
  putManifest(
    ref: Reference,
    manifest: RawManifest,
    signal?: AbortSignal,
  ): Promise<RegistryOutcome<'present' | 'sent'>>;
  /** Makes a root known that is there as a whole; the last step of it. */
  finish(root: MirrorRoot, ref: Reference, top: RawManifest, signal?: AbortSignal): Promise<RegistryOutcome<undefined>>;
}
