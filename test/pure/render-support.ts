import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { DomainRenderer } from '../../renderer/domain.ts';
import { readClusterFolder } from '../../renderer/load/folder.ts';
import { type RenderInput, type RenderOutcome, renderCluster } from '../../renderer/render.ts';

export const exampleFolder = join(import.meta.dirname, 'plain-cluster');

/** A copy of the example cluster in a temporary folder. */
export interface Copy {
  readonly folder: string;
  read(path: string): string;
  write(path: string, text: string): void;
  remove(path: string): void;
  dispose(): void;
}

export function copyExample(): Copy {
  const root = mkdtempSync(join(tmpdir(), 'keelson-render-'));
  const folder = join(root, 'clusters/plain');
  cpSync(exampleFolder, folder, { recursive: true });
  return {
    folder,
    write(path, text) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    },
    read: (path) => readFileSync(join(folder, path), 'utf8'),
    remove: (path) => rmSync(join(folder, path), { recursive: true }),
    dispose: () => rmSync(root, { recursive: true, force: true }),
  };
}

/** Runs `body` on a copy of the example cluster, and removes it. */
export async function using(body: (copy: Copy) => Promise<void>): Promise<void> {
  const copy = copyExample();
  try {
    await body(copy);
  } finally {
    copy.dispose();
  }
}

/** Renders a folder as the command does: the problems of reading and of rendering in one list. */
export async function renderFolder(
  folder: string,
  more: Partial<RenderInput> & { domains?: readonly DomainRenderer[] } = {},
): Promise<RenderOutcome> {
  const { source, problems } = await readClusterFolder(folder, 'clusters/plain');
  const outcome = await renderCluster({ source, domains: [], keelson: '0.0.0-test', ...more });
  if (problems.length === 0) return outcome;
  return { ok: false, problems: [...problems, ...(outcome.ok ? [] : outcome.problems)] };
}
