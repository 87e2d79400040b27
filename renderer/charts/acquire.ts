import { type Digest, isDigest } from '../../constructs/lib/digest.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { pullChartLayer } from '../oci/chartlayer.ts';
import { archiveReference } from '../oci/reference.ts';
import type { RegistryFailure } from '../oci/types.ts';
import { type ChartSource, checkChartSource } from './source.ts';
import type { ChartRequest, ChartSupply, Checked } from './types.ts';

/** Largest archive of a chart, in bytes. */
export const maxChartBytes = 32 * 1024 * 1024;

export interface AcquiredChart {
  readonly bytes: Uint8Array;
  readonly digest: Digest;
  readonly from: 'cache' | 'network';
  readonly notices: readonly string[];
}

type Fetched =
  | { readonly ok: true; readonly bytes: Uint8Array; readonly digest: Digest }
  | { readonly ok: false; readonly mismatch: boolean; readonly message: string; readonly remedy?: string };

async function fetchHttps(url: string, supply: ChartSupply, signal?: AbortSignal): Promise<Fetched> {
  const outcome = await supply.http.request({
    url,
    maxBytes: maxChartBytes,
    ...(signal === undefined ? {} : { signal }),
  });
  if (!outcome.ok) {
    const { message, remedy } = outcome.failure;
    return { ok: false, mismatch: false, message, ...(remedy === undefined ? {} : { remedy }) };
  }
  const { status, body, digest, url: from } = outcome.reply;
  if (status !== 200)
    return { ok: false, mismatch: false, message: `${from} answered ${status}`, remedy: 'check the source URL' };
  return { ok: true, bytes: body, digest };
}

async function fetchSource(
  source: ChartSource,
  expected: Digest | undefined,
  supply: ChartSupply,
  signal?: AbortSignal,
): Promise<Fetched> {
  if (source.kind === 'https') {
    const place = archiveReference(source.url);
    const mirrored = expected !== undefined && place !== undefined && supply.registry.isMirrored(place);
    if (!mirrored) return fetchHttps(source.url, supply, signal);
    // A mirror rule that covers host and path of the URL leads to where `keelson mirror` put the archive.
    const blob = await supply.registry.blob(place, expected, maxChartBytes, signal);
    return blob.ok ? { ok: true, bytes: blob.value, digest: expected } : unfetched(blob.failure);
  }
  const layer = await pullChartLayer(supply.registry, source.ref, expected, maxChartBytes, signal);
  if (layer.ok) return { ok: true, ...layer.value };
  return unfetched(layer.failure);
}

const unfetched = ({ kind, message, remedy }: RegistryFailure): Fetched => ({
  ok: false,
  mismatch: kind === 'digestMismatch',
  message,
  ...(remedy === undefined ? {} : { remedy }),
});

const fail = (problem: Problem): Checked<never> => ({ ok: false, problems: [problem] });

function mismatch(request: ChartRequest, message: string): Checked<never> {
  return fail({
    reason: 'ChartDigestMismatch',
    message,
    ...request.places.digest,
    ...(request.digest === undefined ? {} : { value: request.digest }),
    remedy: 'correct spec.chart.digest after checking with the publisher of the chart, or the source',
  });
}

/**
 * The archive's bytes, from the cache or the network, their digest equal to the pinned one. Nothing is parsed here, and
 * without a pinned digest nothing is returned: the problem names the digest that was found.
 */
export async function acquireChart(
  request: ChartRequest,
  supply: ChartSupply,
  signal?: AbortSignal,
): Promise<Checked<AcquiredChart>> {
  const checked = checkChartSource(request.source, supply.allowedHosts);
  const problems: Problem[] = [];
  if (!checked.ok) {
    const { reason, message, remedy } = checked;
    problems.push({ reason, message, remedy, value: request.source, ...request.places.source });
  }
  const expected = isDigest(request.digest) ? request.digest : undefined;
  if (request.digest !== undefined && expected === undefined)
    problems.push({
      reason: 'ChartDigestInvalid',
      message: 'not a digest of the form sha256:<64 hexadecimal digits>',
      value: request.digest,
      ...request.places.digest,
    });
  if (!checked.ok || problems.length > 0) return { ok: false, problems };

  const notices: string[] = [];
  if (expected !== undefined) {
    const cached = await supply.cache.read(expected);
    if (cached.kind === 'hit')
      return { ok: true, value: { bytes: cached.bytes, digest: expected, from: 'cache', notices } };
    if (cached.kind === 'corrupt') notices.push(cached.message);
  }
  const fetched = await fetchSource(checked.source, expected, supply, signal);
  if (!fetched.ok) {
    if (fetched.mismatch) return mismatch(request, fetched.message);
    const remedy = fetched.remedy === undefined ? {} : { remedy: fetched.remedy };
    const about = notices.length === 0 ? fetched.message : `${fetched.message}; ${notices.join('; ')}`;
    return fail({
      reason: 'ChartUnavailable',
      message: about,
      value: request.source,
      ...request.places.source,
      ...remedy,
    });
  }
  if (expected === undefined)
    return fail({
      reason: 'ChartDigestMissing',
      message: `the chart is not pinned; the archive at its source is ${fetched.digest}`,
      ...request.places.digest,
      remedy: `check it with the publisher of the chart, then add 'digest: ${fetched.digest}' under spec.chart`,
    });
  if (fetched.digest !== expected)
    return mismatch(request, `the archive received is ${fetched.digest}, not ${expected}`);
  const trouble = await supply.cache.write(expected, fetched.bytes);
  if (trouble !== undefined) notices.push(trouble);
  return { ok: true, value: { bytes: fetched.bytes, digest: expected, from: 'network', notices } };
}
