import type { Problem } from '../../constructs/lib/problems.ts';
import {
  gzipFixed,
  packTar,
  readTarGz,
  type TarFile,
  type TarLimits,
  UnsafeArchive,
} from '../../constructs/lib/tar.ts';
import type { Checked, Place } from './types.ts';

/** A chart has some dozens of small text files; these bounds leave room and stop bombs. */
const chartTarLimits: TarLimits = {
  maxFiles: 2_000,
  maxFileBytes: 8 * 1024 * 1024,
  maxTotalBytes: 64 * 1024 * 1024,
  maxRatio: 100,
};

export interface ChartArchive {
  /** Name of the one folder that the archive holds. */
  readonly folder: string;
  /** Files relative to that folder, sorted by path. */
  readonly files: readonly TarFile[];
}

function invalid(message: string, place: Place): Checked<never> {
  const remedy = 'package the chart again with helm package';
  return { ok: false, problems: [{ reason: 'ChartArchiveInvalid', message, ...place, remedy } satisfies Problem] };
}

/** The files of a chart's archive. Refused as a whole when anything in it is unsafe or lies outside one folder. */
export async function unpackChart(bytes: Uint8Array, place: Place): Promise<Checked<ChartArchive>> {
  let files: TarFile[];
  try {
    files = await readTarGz(bytes, chartTarLimits);
  } catch (error) {
    if (error instanceof UnsafeArchive) return invalid(error.message, place);
    throw error;
  }
  const folders = new Set(files.map((file) => file.path.slice(0, Math.max(file.path.indexOf('/'), 0))));
  const [folder] = folders;
  if (files.length === 0 || folder === undefined) return invalid('the archive is empty', place);
  if (folders.size !== 1 || folder === '') return invalid('the files of the archive do not lie in one folder', place);
  const inside = files.map((file) => ({ path: file.path.slice(folder.length + 1), bytes: file.bytes }));
  inside.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
  return { ok: true, value: { folder, files: inside } };
}

/**
 * The files as an archive for Helm. It is packed from what was checked, so that Helm reads exactly what we read, and
 * leaves out `without` (paths relative to the chart); the same files give the same bytes.
 */
export async function packChart(
  name: string,
  files: readonly TarFile[],
  without: readonly string[] = [],
): Promise<{ archive: Uint8Array; stripped: string[] }> {
  const kept = files.filter((file) => !without.includes(file.path));
  const stripped = files.filter((file) => without.includes(file.path)).map((file) => file.path);
  const packed = await packTar(kept.map((file) => ({ path: `${name}/${file.path}`, bytes: file.bytes })));
  return { archive: gzipFixed(packed), stripped };
}
