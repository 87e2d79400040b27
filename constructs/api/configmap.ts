import { labels, managedByValue } from './constants.ts';

type ReleaseMetadata = {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Record<string, string>;
};

/** A ConfigMap that belongs to a release, without its data. */
export interface ReleaseConfigMap {
  readonly apiVersion: 'v1';
  readonly kind: 'ConfigMap';
  readonly metadata: ReleaseMetadata & { readonly annotations: Readonly<Record<string, string>> };
}

/**
 * The metadata of a ConfigMap of a release, marked so that its reader finds it.
 * @param holds what is in it: the inbox, the executor's own copy, the ledger, or what people read.
 */
export const releaseMetadata = (
  holds: 'payload' | 'retained' | 'ledger' | 'plan' | 'report' | 'uninstall',
  target: { readonly release: string; readonly namespace: string },
  name: string,
): ReleaseMetadata => ({
  name,
  namespace: target.namespace,
  labels: { [labels.managedBy]: managedByValue, [labels.release]: target.release, [labels.holds]: holds },
});
