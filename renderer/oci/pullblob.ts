import { rm } from 'node:fs/promises';
import { writeParts } from './blobfile.ts';
import type { Descriptor } from './links.ts';
import { type Reference, referenceName } from './reference.ts';
import type { RegistrySession } from './session.ts';
import { failed, type RegistryOutcome } from './types.ts';

/** Bounds of one blob: hours for a slow line, less than a minute for silence. */
const blobLimits = { totalMs: 2 * 3_600_000, idleMs: 45_000 };

/** Told of bytes as they arrive; an attempt that fails takes its bytes back. */
export type OnBytes = (bytes: number) => void;

/**
 * Fetches a blob into a file: exactly the bytes that the descriptor names, or no file.
 * @throws DiskTrouble when the file can not be written.
 */
export async function pullBlob(
  session: RegistrySession,
  ref: Reference,
  blob: Descriptor,
  file: string,
  onBytes: OnBytes,
  signal?: AbortSignal,
): Promise<RegistryOutcome<undefined>> {
  let counted = 0;
  const count = (bytes: number): void => {
    counted += bytes;
    onBytes(bytes);
  };
  const outcome = await fetchBlob(session, ref, blob, signal, async (chunks) => {
    count(-counted);
    await writeParts(file, chunks, count);
  }).catch(async (error: unknown) => {
    count(-counted);
    await rm(file, { force: true });
    throw error;
  });
  if (outcome.ok) return outcome;
  count(-counted);
  await rm(file, { force: true });
  return outcome;
}

async function fetchBlob(
  session: RegistrySession,
  ref: Reference,
  blob: Descriptor,
  signal: AbortSignal | undefined,
  into: (chunks: AsyncIterable<Uint8Array>) => Promise<void>,
): Promise<RegistryOutcome<undefined>> {
  const what = `${referenceName(ref)}@${blob.digest}`;
  const reply = await session.send(ref, {
    at: { path: `blobs/${blob.digest}` },
    maxBytes: blob.size,
    limits: blobLimits,
    redirects: 'https',
    into,
    signal,
  });
  if (!reply.ok) return reply;
  if (reply.value.status !== 200) return session.refusal(reply.value, what);
  if (reply.value.digest !== blob.digest)
    return failed('digestMismatch', `${what}: the blob received is ${reply.value.digest}`);
  return { ok: true, value: undefined };
}
