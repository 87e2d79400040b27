/** Before anything of a hosted half is written: whether the other half fits. It fails closed. */
import { findReason } from '../../constructs/api/reasons.ts';
import type { Problem } from '../../constructs/lib/problems.ts';
import { describeRef, refOf } from '../kube/types.ts';
import type { Finding } from '../observe/finding.ts';
import { judgePeer, type PeerObservation } from '../observe/hcp.ts';
import type { PeerHalf } from '../peer/provider.ts';
import type { EvidenceSource } from './observer.ts';
import type { LiveInstallation } from './snapshot.ts';

/** The other half by what it asks for now, whether that is accepted or not. */
function asAsked(observation: PeerObservation): PeerObservation {
  if (observation.type !== 'observed') return observation;
  const peers = observation.report.peers.map((one: PeerHalf) => ({ ...one, spec: one.asked ?? one.spec }));
  return { type: 'observed', report: { ...observation.report, peers } };
}

/** Looks at the other half now: everything that does not fit, or could not be seen. */
export async function peerProblems(
  installation: LiveInstallation | undefined,
  peer: EvidenceSource['peer'],
  signal: AbortSignal,
): Promise<Problem[]> {
  const hcp = installation?.spec.hcp;
  if (installation === undefined || hcp?.enabled !== true) return [];
  const { object, spec, checkpoint } = installation;
  const { namespace = '', name = '' } = object.metadata;
  const observation = peer === undefined ? ({ type: 'noProvider' } as const) : await peer(object, signal);
  const findingsOf = (seen: PeerObservation): readonly Finding[] =>
    judgePeer({ namespace, name, spec }, seen, { endpoints: hcp.role !== 'central' }).findings;
  const findings = findingsOf(observation);
  // Two that are in place become a pair only if one of them goes first; what it may change by that is no object that it has.
  if (checkpoint !== undefined && findingsOf(asAsked(observation)).length === 0) return [];
  return findings.map(({ reason, message }) => {
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
