import { z } from 'zod';
import { apiVersion } from './constants.ts';
import { digest, dnsLabel, imageText, requiredText, semverText, text } from './fields.ts';

/** `keelson.lock.yaml`: charts, images and tools resolved once to digests. It holds no times. */

export const lockedChart = z.strictObject({
  source: requiredText(1024),
  digest: digest(),
  name: requiredText(128),
  version: requiredText(64),
  appVersion: requiredText(64),
  kubeVersion: text(128).optional(),
  size: z.int().min(1),
});
export type LockedChart = z.output<typeof lockedChart>;

export const lockedImage = z.strictObject({
  ref: imageText().meta({ description: 'The reference as it is rendered.' }),
  digest: digest().meta({ description: 'Digest of the index, or of the manifest where there is none.' }),
  mediaType: requiredText(128),
  platforms: z.array(requiredText(64)).max(32),
});
export type LockedImage = z.output<typeof lockedImage>;

/** Proof that a chart rendered twice to the same bytes: (chart archive, values, helm version). */
export const determinismProof = z.strictObject({ chart: digest(), values: digest(), helm: semverText() });
export type DeterminismProof = z.output<typeof determinismProof>;

export const lock = z.strictObject({
  apiVersion: z.literal(apiVersion),
  kind: z.literal('Lock'),
  metadata: z.strictObject({ name: dnsLabel() }),
  spec: z.strictObject({
    tools: z.strictObject({ helm: semverText().optional() }),
    charts: z
      .array(lockedChart)
      .max(64)
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['source', 'digest'] }),
    images: z
      .array(lockedImage)
      .max(512)
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['ref'] }),
    determinism: z.array(determinismProof).max(256),
  }),
});
export type Lock = z.output<typeof lock>;
