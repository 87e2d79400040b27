import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { moduleMark, nodeLayer, programConfig } from './base.ts';
import { type BuiltImage, buildImage, hostArchitecture } from './build.ts';

export interface PartsImageInput {
  /** The program as it is published: `keelson.mjs`, and the parts that it loads. */
  readonly parts: string;
  /** Folder of the layout. */
  readonly layout: string;
  /** The pinned Node's binary. */
  readonly node: string;
  readonly version: string;
}

/**
 * Keelson's own image from the program in parts, as its package holds it: nothing is bundled, so no tool is needed. Built twice
 * on one machine it has one digest. @throws Error for a machine that it can not be built on.
 */
export async function buildPartsImage({ parts, layout, node, version }: PartsImageInput): Promise<BuiltImage> {
  const names = (await readdir(parts)).filter((name) => name.endsWith('.mjs')).sort();
  if (!names.includes('keelson.mjs')) throw new Error(`${parts} holds no keelson.mjs`);
  return buildImage({
    layout,
    layers: [
      await nodeLayer(node),
      [
        { type: 'file', path: 'keelson', mode: 0o755, content: "#!/bin/node\nimport './app/keelson.mjs';\n" },
        moduleMark,
        ...names.map((name) => ({
          type: 'file' as const,
          path: `app/${name}`,
          mode: 0o644,
          source: join(parts, name),
        })),
      ],
    ],
    config: { ...programConfig, labels: { 'org.opencontainers.image.version': version } },
    architecture: hostArchitecture(process.arch),
  });
}
