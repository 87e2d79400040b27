import { refuseProblems } from '../../constructs/lib/problems.ts';
import { type Changes, isEmpty, sharedPlaces } from '../../gitops/publish/changes.ts';
import { clusterFolders } from '../clusters.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { print, table } from '../output.ts';
import type { ShareOptions, ShareResult } from '../render/share.ts';
import { renderShares } from '../render/shares.ts';

export type Options = CommonOptions & ShareOptions;

/** `keelson render`: renders, and writes to a folder, or compares, or just says what came of it. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const folders = await clusterFolders(invocation, options);
  const check = options.check === true;
  // Everything is rendered before anything is written.
  const { results, write } = await renderShares(invocation, options, folders);
  refuseShared(results);
  if (!check) await write();
  print(invocation, options.output, results, () => describe(results, check));
  const differs = results.some(({ changes }) => changes !== undefined && !isEmpty(changes));
  return check && differs ? exitCodes.differs : exitCodes.done;
}

/** @throws ProblemError when two clusters would go to one folder: the second would be written over the first. */
function refuseShared(results: readonly ShareResult[]): void {
  refuseProblems(
    sharedPlaces(results.flatMap(({ cluster, folder }) => (folder === undefined ? [] : [{ cluster, place: folder }]))),
  );
}

function describe(results: readonly ShareResult[], check: boolean): string {
  const rows = results.flatMap(({ cluster, releases }) =>
    releases.map((r) => [cluster, r.name, String(r.phases), String(r.objects), r.digest]),
  );
  const lines = [table(['CLUSTER', 'RELEASE', 'PHASES', 'OBJECTS', 'DIGEST'], rows)];
  for (const { cluster, changes, folder } of results) {
    if (changes === undefined) continue;
    const counts = `${changes.added.length} added, ${changes.changed.length} changed, ${changes.removed.length} removed`;
    if (isEmpty(changes)) lines.push(`${cluster}: nothing differs${folder === undefined ? '' : ` in ${folder}`}`);
    else if (check) lines.push(`${cluster}: ${counts}`, ...listed(changes));
    else lines.push(`${cluster}: ${counts} in ${folder}`);
  }
  return lines.join('\n');
}

const listed = (changes: Changes): string[] => [
  ...changes.added.map((path) => `  + ${path}`),
  ...changes.changed.map((path) => `  ~ ${path}`),
  ...changes.removed.map((path) => `  - ${path}`),
];
