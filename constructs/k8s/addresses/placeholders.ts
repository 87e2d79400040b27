import { addressRanges } from '../../api/addresses.ts';
import type { JsonObject } from '../../lib/json.ts';

/** The namespace of placeholders: no pod of anybody else's is to run beside them. */
export const placeholderNamespace = (name: string): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name,
    labels: Object.fromEntries(
      ['enforce', 'warn', 'audit'].map((mode) => [`pod-security.kubernetes.io/${mode}`, 'restricted']),
    ),
  },
});

/** What Git gives to each class. By it the executor tells which addresses a change would leave without a range. */
export const rangesRecord = (namespace: string, ranges: ReadonlyMap<string, readonly string[]>): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: addressRanges, namespace },
  data: Object.fromEntries([...ranges].map(([name, texts]) => [name, texts.join('\n')])),
});
