/** Metrics of installations, under the names that dashboards of the operator know. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Condition } from '../../constructs/api/fields.ts';

const conditionValue = { True: 1, False: 0, Unknown: -1 } as const;

export interface InstallationMetrics {
  /** One reconcile that ended. */
  reconciled(result: 'ok' | 'error', seconds: number): void;
  /** What the conditions of an installation say now. */
  report(namespace: string, name: string, conditions: readonly Pick<Condition, 'type' | 'status'>[]): void;
  /** Forgets an installation that is gone. */
  forget(namespace: string, name: string): void;
}

/** Registers the metrics. `installation_condition` is 1 for True, 0 for False and -1 for Unknown. */
export function installationMetrics(registry: Registry): InstallationMetrics {
  const total = new Counter({
    name: 'kubeovn_operator_reconcile_total',
    help: 'Reconciles of KubeOVNInstallation objects by result',
    labelNames: ['result'],
    registers: [registry],
  });
  const duration = new Histogram({
    name: 'kubeovn_operator_reconcile_duration_seconds',
    help: 'Duration of reconciles of KubeOVNInstallation objects',
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30],
    registers: [registry],
  });
  const ready = new Gauge({
    name: 'kubeovn_operator_installation_ready',
    help: 'Whether condition Ready is True (1) or not (0)',
    labelNames: ['namespace', 'name'],
    registers: [registry],
  });
  const condition = new Gauge({
    name: 'kubeovn_operator_installation_condition',
    help: 'Conditions: 1 True, 0 False, -1 Unknown',
    labelNames: ['namespace', 'name', 'condition'],
    registers: [registry],
  });
  const told = new Map<string, Set<string>>();
  const key = (namespace: string, name: string): string => `${namespace}/${name}`;
  const dropConditions = (namespace: string, name: string, keep: ReadonlySet<string>): void => {
    for (const type of told.get(key(namespace, name)) ?? [])
      if (!keep.has(type)) condition.remove({ namespace, name, condition: type });
  };
  return {
    reconciled(result, seconds) {
      total.inc({ result });
      duration.observe(seconds);
    },
    report(namespace, name, conditions) {
      const types = new Set(conditions.map(({ type }) => type));
      dropConditions(namespace, name, types);
      told.set(key(namespace, name), types);
      for (const { type, status } of conditions)
        condition.set({ namespace, name, condition: type }, conditionValue[status]);
      ready.set(
        { namespace, name },
        conditions.some(({ type, status }) => type === 'Ready' && status === 'True') ? 1 : 0,
      );
    },
    forget(namespace, name) {
      dropConditions(namespace, name, new Set());
      told.delete(key(namespace, name));
      ready.remove({ namespace, name });
    },
  };
}
