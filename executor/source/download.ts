/** One GET with a bound on everything: connections, silence, time, bytes. Follows nothing, decodes nothing. */
import { createHash } from 'node:crypto';
import type { LookupFunction } from 'node:net';
import { Agent, request } from 'undici';
import type { ArtifactAlgorithm } from './flux-artifact.ts';

/** Milliseconds. */
export interface DownloadTimings {
  readonly connectMs: number;
  /** Until the answer begins, and between its parts. */
  readonly silenceMs: number;
  readonly totalMs: number;
}

export interface DownloadInput {
  readonly url: URL;
  readonly algorithm: ArtifactAlgorithm;
  readonly maxBytes: number;
  readonly timings: DownloadTimings;
  /** Address in place of what DNS says of the URL's host. */
  readonly address?: string;
  readonly signal: AbortSignal;
}

/** `failed` may be better next time; `refused` only when the other side changes. */
export type Downloaded =
  | { readonly type: 'bytes'; readonly bytes: Uint8Array; readonly hex: string }
  | { readonly type: 'gone' | 'failed' | 'tooLarge' | 'refused'; readonly message: string };

const agentFor = ({ address, timings }: DownloadInput): Agent => {
  const family = address?.includes(':') === true ? 6 : 4;
  const lookup: LookupFunction = (_host, options, answer) =>
    options.all === true ? answer(null, [{ address: address ?? '', family }]) : answer(null, address ?? '', family);
  return new Agent({
    connections: 1,
    headersTimeout: timings.silenceMs,
    bodyTimeout: timings.silenceMs,
    connect: { timeout: timings.connectMs, ...(address === undefined ? {} : { lookup }) },
  });
};

const retried = new Set([408, 425, 429]);

function verdictOf(status: number, location: string): Exclude<Downloaded, { type: 'bytes' }> | undefined {
  if (status === 200) return undefined;
  if (status === 404 || status === 410) return { type: 'gone', message: `the server answers ${status}` };
  if (status >= 300 && status < 400)
    return { type: 'refused', message: `the server answers ${status} and points to ${location}; that is not followed` };
  const again = status >= 500 || retried.has(status);
  return { type: again ? 'failed' : 'refused', message: `the server answers ${status}` };
}

const tooLarge = (maxBytes: number): Downloaded => ({
  type: 'tooLarge',
  message: `it is larger than ${maxBytes} bytes`,
});

/** Fetches the bytes behind a URL while hashing them. Rejects only with the signal's reason. */
export async function download(input: DownloadInput): Promise<Downloaded> {
  const { url, timings, signal } = input;
  const limit = AbortSignal.timeout(timings.totalMs);
  const agent = agentFor(input);
  try {
    const { statusCode, headers, body } = await request(url, {
      dispatcher: agent,
      signal: AbortSignal.any([signal, limit]),
      headers: { accept: '*/*' },
    });
    // What is not read is dropped together with the connection.
    body.on('error', () => undefined);
    const verdict = verdictOf(statusCode, String(headers.location ?? 'nowhere').slice(0, 200));
    if (verdict !== undefined) return verdict;
    if (Number(headers['content-length'] ?? 0) > input.maxBytes) return tooLarge(input.maxBytes);
    return await take(input, body);
  } catch (error) {
    signal.throwIfAborted();
    const { message } = error instanceof Error ? error : new Error(String(error));
    return { type: 'failed', message: limit.aborted ? `no end after ${timings.totalMs} ms` : message || String(error) };
  } finally {
    await agent.destroy();
  }
}

async function take(input: DownloadInput, body: AsyncIterable<Uint8Array>): Promise<Downloaded> {
  const hash = createHash(input.algorithm);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > input.maxBytes) return tooLarge(input.maxBytes);
    hash.update(chunk);
    chunks.push(chunk);
  }
  return { type: 'bytes', bytes: Buffer.concat(chunks), hex: hash.digest('hex') };
}
