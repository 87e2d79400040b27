/** Bundles the command line and the probes into `dist/`: what the published package holds. */
import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { bundleInParts } from './bundle.ts';
import { bundleProbe } from './probe.ts';

const top = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

await rm(top('dist'), { recursive: true, force: true });
await bundleInParts(top('bin/keelson.ts'), top('dist'));
await bundleProbe({ entry: top('bin/probe.ts'), offer: top('bin/probe-offer.ts') }, top('dist/probe'));
