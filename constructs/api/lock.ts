import { z } from 'zod';
import { apiVersion } from './constants.ts';
import { digest, dnsLabel, imageText, requiredText, semverText, text } from './fields.ts';

/** `keelson.lock.yaml`: charts, images and tools resolved once to digests. It holds no times. */

export const lockedChart = z.strictObject({
  source: requiredText(1024).meta({ description: 'Where the chart comes from, as the spec says.' }),
  digest: digest().meta({ description: 'Digest of the archive.' }),
  name: requiredText(128).meta({ description: 'Name of the chart.' }),
  version: requiredText(64).meta({ description: 'Version of the chart.' }),
  appVersion: requiredText(64).meta({ description: 'Version of what it installs.' }),
  kubeVersion: text(128).optional().meta({ description: 'Kubernetes versions that it asks for.' }),
  size: z.int().min(1).meta({ description: 'Bytes of the archive.' }),
});
export type LockedChart = z.output<typeof lockedChart>;

export const lockedImage = z.strictObject({
  ref: imageText().meta({ description: 'The reference as it is rendered.' }),
  digest: digest().meta({ description: 'Digest of the index, or of the manifest where there is none.' }),
  mediaType: requiredText(128).meta({ description: 'Media type of what the digest names.' }),
  platforms: z.array(requiredText(64)).max(32).meta({ description: 'Platforms that it is there for.' }),
});
export type LockedImage = z.output<typeof lockedImage>;

/** Proof that a chart rendered twice to the same bytes: (chart archive, values, helm version). */
export const determinismProof = z.strictObject({
  chart: digest().meta({ description: 'Digest of the archive.' }),
  values: digest().meta({ description: 'Digest of the values.' }),
  helm: semverText().meta({ description: 'Version of helm.' }),
});
export type DeterminismProof = z.output<typeof determinismProof>;

export const lock = z.strictObject({
  apiVersion: z.literal(apiVersion),
  kind: z.literal('Lock'),
  metadata: z.strictObject({ name: dnsLabel() }),
  spec: z.strictObject({
    tools: z
      .strictObject({ helm: semverText().optional().meta({ description: 'Exact version of helm.' }) })
      .meta({ description: 'Tools whose output counts.' }),
    charts: z
      .array(lockedChart)
      .max(64)
      .meta({
        description: 'Charts.',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['source', 'digest'],
      }),
    images: z
      .array(lockedImage)
      .max(512)
      .meta({ description: 'Images.', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['ref'] }),
    determinism: z
      .array(determinismProof)
      .max(256)
      .meta({ description: 'Charts that were proven to render to the same bytes.' }),
  }),
});
export type Lock = z.output<typeof lock>;
