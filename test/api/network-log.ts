import { getAt, isObject, type JsonObject, type JsonValue } from '../../constructs/lib/json.ts';
import type { RequestRecord } from '../faults/plan.ts';
import { payloadMutations } from './network-bed.ts';

/** What the log of an executor's requests says of the order of its writes. */

const bodyOf = (record: RequestRecord): JsonObject => (isObject(record.body) ? record.body : {});
const at = (record: RequestRecord, pointer: string): JsonValue | undefined => getAt(bodyOf(record), pointer);

/** Id of the payload object that a write is about. */
export const idOf = (record: RequestRecord): string => String(at(record, '/metadata/annotations/keelson.dev~1id'));

export const phaseOf = (record: RequestRecord): string => String(at(record, '/metadata/labels/keelson.dev~1phase'));

/** Sequence of the first write of a ledger that holds each id. */
export function ledgerWrites(log: readonly RequestRecord[]): Map<string, number> {
  const first = new Map<string, number>();
  for (const record of log) {
    if (record.verb !== 'apply' || record.dryRun || !record.name?.startsWith('keelson-ledger-')) continue;
    const entries = JSON.parse(String(at(record, '/data/entries.json'))) as { id: string }[];
    for (const { id } of entries) if (!first.has(id)) first.set(id, record.sequence);
  }
  return first;
}

const checkpointRequests = (log: readonly RequestRecord[]): RequestRecord[] =>
  log.filter(
    (record) =>
      record.resource === 'kubeovninstallations' &&
      record.subresource === 'status' &&
      record.mutating &&
      at(record, '/status/applyCheckpoint') !== undefined,
  );

/** Writes of a checkpoint to the status of the installation. */
export const checkpointWrites = (log: readonly RequestRecord[]): RequestRecord[] =>
  checkpointRequests(log).filter(({ status }) => status === 200);

/** The first of them; where none was answered, the one whose sender died before it saw what came of it. */
const firstCheckpoint = (log: readonly RequestRecord[]): RequestRecord | undefined =>
  checkpointWrites(log)[0] ?? checkpointRequests(log).find(({ status }) => status === undefined);

/** Everything that breaks the order ledger, checkpoint, object; empty when all is well. */
export function orderProblems(log: readonly RequestRecord[]): string[] {
  const ledger = ledgerWrites(log);
  const checkpoint = firstCheckpoint(log)?.sequence ?? Number.POSITIVE_INFINITY;
  return payloadMutations(log).flatMap((record) => {
    const id = idOf(record);
    const entered = ledger.get(id) ?? Number.POSITIVE_INFINITY;
    return [
      ...(entered < record.sequence ? [] : [`${id} was written before the ledger held it`]),
      ...(checkpoint < record.sequence ? [] : [`${id} was written before the checkpoint`]),
      ...(entered < checkpoint ? [] : [`the checkpoint was written before the ledger held ${id}`]),
    ];
  });
}

/** Phases in the order of their writes, each as often as the log comes back to it. */
export function phaseOrder(log: readonly RequestRecord[]): string[] {
  const order: string[] = [];
  for (const record of payloadMutations(log)) if (order.at(-1) !== phaseOf(record)) order.push(phaseOf(record));
  return order;
}

/** Writes of Leases in order, as `take name` and `free name`. The Lease of the process itself is left out. */
export function leaseMoves(log: readonly RequestRecord[]): { move: string; sequence: number }[] {
  const holders = new Map<string, string>();
  return log.flatMap((record) => {
    if (record.resource !== 'leases' || !record.mutating) return [];
    const name = record.name ?? String(at(record, '/metadata/name'));
    if (name === 'keelson-executor') return [];
    const holder = String(at(record, '/spec/holderIdentity') ?? '');
    if (holders.get(name) === holder) return [];
    holders.set(name, holder);
    const short = name.replace(/-[0-9a-f]{8}$/, '').replace('keelson-', '');
    return [{ move: `${holder === '' ? 'free' : 'take'} ${short}`, sequence: record.sequence }];
  });
}
