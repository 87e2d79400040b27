/** The record of an uninstall in its ConfigMap: written before the first object is touched, read by whoever goes on. */

import { releaseMetadata } from '../../constructs/api/configmap.ts';
import { configMapNames, managers } from '../../constructs/api/constants.ts';
import { type UninstallRecord, uninstallKey, uninstallRecord } from '../../constructs/api/uninstall.ts';
import { isObject } from '../../constructs/lib/json.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import type { LedgerTarget } from '../apply/ledger-store.ts';
import type { KubeClient } from '../kube/client.ts';
import { describeRef, type ObjectRef } from '../kube/types.ts';

const uninstallRecordRef = ({ release, namespace }: LedgerTarget): ObjectRef => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  namespace,
  name: configMapNames.uninstall(release),
});

/** The record, undefined when there is none, or why it is not known. */
export async function readUninstallRecord(
  client: KubeClient,
  target: LedgerTarget,
  signal: AbortSignal,
): Promise<{ readonly record: UninstallRecord | undefined } | { readonly problem: Problem }> {
  const ref = uninstallRecordRef(target);
  const found = await client.get(ref, { signal });
  if (found.type === 'absent' || found.type === 'namespaceMissing') return { record: undefined };
  if (found.type !== 'found')
    return { problem: { reason: 'ApiUnavailable', message: found.message, object: describeRef(ref) } };
  const text = isObject(found.object.data) ? found.object.data[uninstallKey] : undefined;
  const read = uninstallRecord.safeParse(parsed(text));
  // What can not be read is written anew: the ledger, and not the record, says what is left to do.
  return { record: read.success ? read.data : undefined };
}

function parsed(text: unknown): unknown {
  try {
    return typeof text === 'string' ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

/** Stores the record. Answers what kept it from being stored. */
export async function writeUninstallRecord(
  client: KubeClient,
  target: LedgerTarget,
  record: UninstallRecord,
  signal: AbortSignal,
): Promise<Problem | undefined> {
  const outcome = await client.apply(
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: releaseMetadata('uninstall', target, configMapNames.uninstall(target.release)),
      data: { [uninstallKey]: JSON.stringify(record) },
    },
    { fieldManager: managers.objects, signal },
  );
  if ('object' in outcome) return undefined;
  const reason = outcome.type === 'unavailable' ? 'ApiUnavailable' : 'ReportNotWritten';
  return { reason, message: outcome.message, object: describeRef(uninstallRecordRef(target)) };
}
