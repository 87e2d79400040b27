/** Bundles the command line into `dist/`: what the published package holds. */
import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { bundleInParts } from './bundle.ts';

const top = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

await rm(top('dist'), { recursive: true, force: true });
await bundleInParts(top('bin/keelson.ts'), top('dist'));
