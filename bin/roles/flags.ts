/** What the roles of `keelson executor` are told on its command line. */
import type { JsonObject } from '../../constructs/lib/json.ts';
import { redactObject } from '../../constructs/lib/redact.ts';
import type { MetallbSettings } from '../../executor/addresses/metallb/names.ts';

/** Workers of role `addresses`. */
export const addressWorkerNames = ['core', 'driver'] as const;
export type AddressWorkerName = (typeof addressWorkerNames)[number];

export interface ExecutorFlags {
  readonly role: 'executor' | 'addresses';
  readonly workers: readonly AddressWorkerName[];
  readonly leaseNamespace?: string;
  readonly metallbNamespace: string;
  readonly placeholderNamespace: string;
  readonly lbClass?: string;
  readonly forcedRelease: MetallbSettings['forcedRelease'];
  readonly namespace: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly apiServer?: string;
  readonly planOnly?: boolean;
  readonly allowUnsigned?: boolean;
  readonly evidence?: boolean;
  readonly evidenceNamespaces: string;
  readonly evidenceAtOnce: number;
  readonly fluxNamespaces?: string;
  readonly testBypassGates?: string;
  readonly testLeaseDuration?: number;
  readonly testObserveInterval?: number;
  readonly retain: number;
  readonly metricsPort: number;
  readonly pagePort: number;
}

export const words = (text: string | undefined): string[] => (text ?? '').split(',').filter((word) => word !== '');

/** Fields of a log line without secrets. */
export const tellable = (fields: Readonly<Record<string, unknown>> = {}): JsonObject =>
  redactObject(JSON.parse(JSON.stringify(fields)) as JsonObject);
