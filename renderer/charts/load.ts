import type { LockedChart } from '../../constructs/api/lock.ts';
import { acquireChart } from './acquire.ts';
import { unpackChart } from './archive.ts';
import { readChart } from './metadata.ts';
import type { ChartRequest, ChartSupply, Checked, LoadedChart } from './types.ts';

/** Fetches, verifies, unpacks and checks the chart of a specification; nothing of it is executed. */
export async function loadChart(
  request: ChartRequest,
  supply: ChartSupply,
  signal?: AbortSignal,
): Promise<Checked<LoadedChart>> {
  const acquired = await acquireChart(request, supply, signal);
  if (!acquired.ok) return acquired;
  const { bytes, digest, from, notices } = acquired.value;
  const archive = await unpackChart(bytes, request.places.source);
  if (!archive.ok) return archive;
  const read = readChart(archive.value.files, request);
  if (!read.ok) return read;
  return {
    ok: true,
    value: {
      source: request.source,
      digest,
      size: bytes.length,
      from,
      notices,
      files: archive.value.files,
      ...read.value,
    },
  };
}

/** The entry of a chart in the lock file. */
export function lockChart(chart: LoadedChart): LockedChart {
  const { source, digest, size } = chart;
  const { name, version, appVersion, kubeVersion } = chart.metadata;
  return { source, digest, name, version, appVersion, size, ...(kubeVersion === undefined ? {} : { kubeVersion }) };
}
