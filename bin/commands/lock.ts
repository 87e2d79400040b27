import { join } from 'node:path';
import { ProblemError } from '../../constructs/lib/problems.ts';
import { replaceFile } from '../../constructs/lib/replacefile.ts';
import { specKinds } from '../../renderer/domain.ts';
import { hostsForImages, resolveImages } from '../../renderer/images/resolve.ts';
import { settingsFiles } from '../../renderer/load/settings.ts';
import { collectNeeds } from '../../renderer/lock/collect.ts';
import { type LockResult, makeLock, parseUpdate, type Resolve } from '../../renderer/lock/lock.ts';
import { type ClusterFolder, clusterFolders, readFolder } from '../clusters.ts';
import { type CommonOptions, type ExitCode, exitCodes, type Invocation } from '../invocation.ts';
import { print, table } from '../output.ts';
import { connect, domains } from '../supply.ts';

export interface Options extends CommonOptions {
  readonly update?: string;
}

/** `keelson lock`: resolves charts, images and tools to digests, once. Specs are never edited. */
export async function run(invocation: Invocation, options: Options): Promise<ExitCode> {
  const made: { folder: ClusterFolder; result: LockResult; written: boolean }[] = [];
  for (const folder of await clusterFolders(invocation, options)) {
    const { result, before } = await lockOne(invocation, options, folder);
    made.push({ folder, result, written: before === undefined || Buffer.compare(before, result.bytes) !== 0 });
  }
  for (const { folder, result, written } of made) if (written) await replace(folder, result.bytes);
  const shown = made.map(({ folder, result, written }) => ({
    file: `${folder.shown}/${settingsFiles.lock}`,
    written,
    changes: result.changes,
  }));
  print(invocation, options.output, shown, () =>
    shown
      .map(({ file, written, changes }) => {
        if (!written) return `${file}: nothing changed`;
        const rows = changes.map((c) => [c.what, c.name, c.from ?? '-', c.to ?? 'removed']);
        return `${file}: written\n${table(['WHAT', 'NAME', 'FROM', 'TO'], rows)}`;
      })
      .join('\n'),
  );
  return exitCodes.done;
}

async function lockOne(
  invocation: Invocation,
  options: Options,
  folder: ClusterFolder,
): Promise<{ result: LockResult; before: Uint8Array | undefined }> {
  const source = await readFolder(folder);
  const kinds = [...specKinds(domains(invocation, folder.path))];
  const helm: string[] = [];
  const collected = await collectNeeds(
    source,
    (recorder) =>
      domains(invocation, folder.path, {
        recorder: {
          chart: recorder.chart,
          proof(entry) {
            helm.push(entry.helm);
            recorder.proof(entry);
          },
        },
      }),
    kinds,
    invocation.signal,
  );
  if (!collected.ok) throw new ProblemError(collected.problems);
  const { needs } = collected;
  const { registries } = needs.loaded.cluster.spec;
  const resolve: Resolve = async (texts) => {
    const connection = await connect(invocation, {
      folder: folder.path,
      hosts: hostsForImages(texts, registries),
      field: 'spec.registries',
      registries,
    });
    try {
      return await resolveImages(texts, connection.registry, invocation.signal);
    } finally {
      connection.http.close();
    }
  };
  const outcome = await makeLock(needs, { update: parseUpdate(options.update), helm: helm[0], resolve });
  if (outcome.ok) return { result: outcome.result, before: source.files.get(settingsFiles.lock) };
  throw new ProblemError(outcome.problems);
}

async function replace(folder: ClusterFolder, bytes: Uint8Array): Promise<void> {
  const part = join(folder.path, `.${settingsFiles.lock}.part.${process.pid}`);
  await replaceFile(join(folder.path, settingsFiles.lock), bytes, part);
}
