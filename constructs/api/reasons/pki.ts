import { type Reason, reasonsOf } from './reason.ts';

/** Reasons of `keelson pki`: about the authority that signs for the executor and its probes. */
export const pkiReasons: readonly Reason[] = reasonsOf('Input', 'error', 'terminal', [
  [
    'AuthorityMissing',
    'the cluster has no authority of evidence yet: {message}',
    'Name spec.images.probe in cluster.yaml and deliver; the executor makes one.',
  ],
  ['AuthorityInvalid', '{message}', 'Mend the Secret; without one the executor makes an authority of its own.'],
  [
    'AuthorityProvided',
    'Secret {secret} was brought along, and Keelson does not write it',
    'Replace it where it comes from; the executor believes the one before for another day.',
  ],
  [
    'RotationUnderWay',
    'a change of authority is under way: {message}',
    'Wait for its end; `keelson pki status` shows it.',
  ],
]);
