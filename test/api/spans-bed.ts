import type { JsonObject } from '../../constructs/lib/json.ts';
import type { FaultPlan } from '../faults/plan.ts';
import { until } from './kubeBed.ts';
import { is, payloadMutations, type SliceBed } from './slice-bed.ts';
import {
  type BuiltPayload,
  buildPayload,
  configMap,
  deployment,
  gate,
  type PhaseInput,
  testKey,
} from './slice-payload.ts';

/** Payloads of four phases whose middle two are a one-way span. */

export const inside: readonly string[] = ['b', 'c'];

export interface SpanPayload {
  /** Value of every ConfigMap. */
  readonly value: string;
  /** Replicas of the Deployment behind the gate of phase `two`; none leaves gate and Deployment out. */
  readonly replicas?: number;
  /** Gate of phase `one`, which lies before the span. */
  readonly early?: boolean;
}

export function spanPayload(bed: SliceBed, { value, replicas, early }: SpanPayload): Promise<BuiltPayload> {
  const { namespace, release } = bed.names;
  const phase = (name: string, map: string, more: Partial<PhaseInput> = {}): PhaseInput => ({
    name,
    ...more,
    manifests: [{ object: configMap(namespace, map, { value }) }, ...(more.manifests ?? [])],
  });
  const server =
    replicas === undefined
      ? {}
      : {
          gates: [gate('WorkloadsReady', 'two')],
          manifests: [{ object: deployment(namespace, 'server', replicas) }],
        };
  const closed = gate('Condition', 'one', {
    target: { apiVersion: 'v1', kind: 'Namespace', name: namespace, condition: 'Never' },
  });
  return buildPayload({
    release,
    key: testKey,
    phases: [
      phase('one', 'a', early === true ? { gates: [closed] } : {}),
      phase('two', 'b', server),
      phase('three', 'c'),
      phase('four', 'd'),
    ],
    content: { spans: [{ from: 'two', to: 'three' }] },
  });
}

/** Makes the Deployment ready as it stands, once it has that many replicas. */
export async function ready(bed: SliceBed, replicas: number): Promise<void> {
  const { admin } = bed.server;
  const path = `/apis/apps/v1/namespaces/${bed.names.namespace}/deployments/server`;
  let found: JsonObject = {};
  await until(`the Deployment to have ${replicas} replicas`, async () => {
    const reply = await admin.request('GET', path);
    found = reply.body;
    return reply.status === 200 && reply.body.spec.replicas === replicas;
  });
  const generation = (found.metadata as JsonObject).generation ?? 0;
  await admin.expect('PATCH', `${path}/status`, {
    body: {
      status: {
        observedGeneration: generation,
        replicas,
        updatedReplicas: replicas,
        readyReplicas: replicas,
        availableReplicas: replicas,
      },
    },
    type: 'application/merge-patch+json',
    query: { fieldManager: 'kube-controller-manager' },
  });
}

type Spec = Parameters<SliceBed['applyRelease']>[1];

/** Delivers a payload and asks for it. */
export async function want(bed: SliceBed, built: BuiltPayload, spec: Spec = {}): Promise<void> {
  await bed.deliver(built);
  await bed.applyRelease(built, spec);
}

/** Waits until a payload is in place; its Deployment, if it has one, becomes ready on the way. */
export async function inPlace(bed: SliceBed, built: BuiltPayload, replicas?: number): Promise<void> {
  if (replicas !== undefined) await ready(bed, replicas);
  await bed.untilStatus('it is in place', (s) => s.raw.actual === built.digest && is(s, 'Ready', 'True'), 40_000);
}

/** The value of one ConfigMap of the payload as it is live. */
export async function mapValue(bed: SliceBed, name: string): Promise<unknown> {
  const found = await bed.get(`/api/v1/namespaces/${bed.names.namespace}/configmaps/${name}`);
  return (found?.data as JsonObject | undefined)?.value;
}

/** Writes of ConfigMaps of the payload, as `name=value`, in order. */
export const writtenMaps = (plan: FaultPlan, system: string): string[] =>
  payloadMutations(plan, system)
    .filter(({ resource }) => resource === 'configmaps')
    .map(({ name, body }) => `${name}=${(body as { data?: { value?: string } }).data?.value}`);
