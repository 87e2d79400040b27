import { type Reason, reasonsOf } from './reason.ts';

/** Reasons of gates and of the evidence behind them. Only what was seen to be broken is False. */
export const gateReasons: readonly Reason[] = [
  ...reasonsOf('Gate', 'info', 'wait', [
    ['NotObserved', 'its controller has not looked at it yet', 'Wait; look at the controller when it lasts.'],
    ['RolloutInProgress', '{has} of {wanted} {what}', 'Wait; look at the pods when it lasts.'],
    [
      'NothingDesired',
      'it wants no replica, which proves nothing',
      'Look at its selector and at the labels of the nodes.',
    ],
    ['PodNotReady', 'it is {phase}', 'Wait; look at the pod when it lasts.'],
    ['JobRunning', 'it has not completed', 'Wait; look at its pods when it lasts.'],
    ['VolumeClaimNotBound', 'it is {phase}', 'Look at the class of the claim and at its provisioner.'],
    ['NotEstablished', 'the API server does not serve it yet', 'Wait; it takes seconds.'],
    ['Terminating', 'it is being deleted', 'Look at what its finalizers wait for.'],
    ['ConditionUnknown', 'condition {type} is Unknown', 'Look at the object.'],
    [
      'NoEvidence',
      'nothing provides the evidence for this gate yet',
      'Name the image of the probes in spec.images.probe of cluster.yaml, and approve the plan that brings them; `keelson image push --probe` makes it.',
    ],
    ['EvidencePending', 'the first round of evidence is not complete', 'Wait; it takes seconds.'],
  ]),
  ...reasonsOf('Gate', 'error', 'retry', [
    ['ReplicaFailure', 'its pods can not be created: {message}', 'Look at quotas, admission and the service account.'],
    ['ProgressDeadlineExceeded', 'it makes no progress: {message}', 'Look at its pods.'],
    ['PodFailed', 'its containers have failed', 'Look at its logs; a changed Pod has to be deleted first.'],
    ['JobFailed', 'it has failed: {message}', 'Look at its pods; a changed Job needs keelson.dev/recreate.'],
    ['ClaimLost', 'its volume is lost', 'Restore the volume from a backup.'],
    ['NamesNotAccepted', 'its names belong to another CRD: {message}', 'Remove the other CRD.'],
    ['ConditionFalse', 'condition {type} is False: {message}', 'Look at the object.'],
  ]),
  ...reasonsOf('Evidence', 'warning', 'retry', [
    ['EvidenceStale', 'the last evidence of {subject} is {age} old', 'Look at the sidecar and at the way to it.'],
    [
      'EvidenceUnreachable',
      'the sidecar of {subject} does not answer: {message}',
      'Look at the pod, the node and the port.',
    ],
    [
      'EvidenceUntrusted',
      'the sidecar of {subject} could not prove who it is: {message}',
      'Look at its certificate; `keelson pki status` tells.',
    ],
    ['EvidenceHung', '{component} of {subject} did not answer within {limit}', 'Look at the daemon.'],
    ['EvidenceIncomplete', 'the evidence of {subject} lacks {component}: {message}', 'Look at the daemon.'],
    [
      'EvidenceUnreadable',
      'the answer of the sidecar of {subject} can not be read: {message}',
      'Bring sidecar and executor to one version.',
    ],
    ['EvidenceMoved', '{subject} changed while it was looked at: {message}', 'Wait; look at the pods when it lasts.'],
  ]),
  ...reasonsOf('Evidence', 'error', 'retry', [
    ['EvidenceBroken', '{subject} is broken: {message}', 'Look at the pod and at its node.'],
  ]),
];
