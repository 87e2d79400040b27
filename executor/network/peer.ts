/** Before anything of a hosted half is written: whether the other half fits. It fails closed. */
import { findReason } from '../../constructs/api/reasons.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { describeRef, refOf } from '../kube/types.ts';
import { judgePeer } from '../observe/hcp.ts';
import type { EvidenceSource } from './observer.ts';
import type { LiveInstallation } from './snapshot.ts';

/** Looks at the other half now: everything that does not fit, or could not be seen. */
export async function peerProblems(
  installation: LiveInstallation | undefined,
  peer: EvidenceSource['peer'],
  signal: AbortSignal,
): Promise<Problem[]> {
  const hcp = installation?.spec.hcp;
  if (installation === undefined || hcp?.enabled !== true) return [];
  const { object, spec } = installation;
  const { namespace = '', name = '' } = object.metadata;
  const observation = peer === undefined ? ({ type: 'noProvider' } as const) : await peer(object, signal);
  const judged = judgePeer({ namespace, name, spec }, observation, { endpoints: hcp.role !== 'central' });
  return judged.findings.map(({ reason, message }) => {
    const remedy = findReason(reason)?.remedy;
    return {
      reason,
      message,
      object: describeRef(refOf(object)),
      path: 'spec.hcp',
      ...(remedy === undefined ? {} : { remedy }),
    };
  });
}
