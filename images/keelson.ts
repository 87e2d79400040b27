import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { moduleMark, nodeLayer, programConfig } from './base.ts';
import { type BuiltImage, buildImage, hostArchitecture } from './build.ts';
import { bundleProgram } from './bundle.ts';

export interface KeelsonImageInput {
  /** The program's entry, bin/keelson.ts. */
  readonly entry: string;
  /** Folder for the bundle and the layout. */
  readonly cache: string;
  /** The pinned Node's binary: the process that runs this, unless another is named. */
  readonly node?: string;
}

/**
 * Keelson's own image: the pinned Node, and the program as the one executable `/keelson`. It has no shell, and runs as
 * an account without rights. Built twice on one machine it has one digest.
 */
export async function buildKeelsonImage(input: KeelsonImageInput): Promise<BuiltImage> {
  await mkdir(input.cache, { recursive: true });
  // A name of its own: another clone may be bundling another state of the program into the same cache.
  const program = join(input.cache, `keelson-${randomUUID()}.mjs`);
  try {
    await bundleProgram({ entry: input.entry, output: program, interpreter: '#!/bin/node' });
    return await packKeelson(input, program);
  } finally {
    await rm(program, { force: true });
  }
}

async function packKeelson(input: KeelsonImageInput, program: string): Promise<BuiltImage> {
  return buildImage({
    layout: join(input.cache, 'layouts', 'keelson'),
    layers: [
      await nodeLayer(input.node ?? process.execPath),
      [{ type: 'file', path: 'keelson', mode: 0o755, source: program }, moduleMark],
    ],
    config: programConfig,
    architecture: hostArchitecture(process.arch),
  });
}
