import { type Reason, reasonsOf } from './reason.ts';

/** Reasons of writing, pruning and keeping. */
export const applyReasons: readonly Reason[] = [
  ...reasonsOf('Progressing', 'info', 'wait', [
    [
      'Applying',
      'phase {phase}: {done} of {total} objects applied',
      'Nothing; `keelson status -w` shows how it goes on.',
    ],
    ['Waiting', 'phase {phase} waits for {gate}', 'Nothing before the limit that the message names.'],
    ['PhaseSuspended', 'phase {phase} is suspended', 'Remove it from suspendPhases in cluster.yaml.'],
    ['Superseded', 'payload {digest} takes the place of this one', 'Nothing.'],
    [
      'LeaseHeld',
      'another process holds {lease}',
      'Wait; it is taken over once its holder is silent for the whole duration.',
    ],
    [
      'ObjectTerminating',
      '{object} is being deleted; finalizers: {finalizers}',
      'Look at what its finalizers wait for. Keelson never strips them.',
    ],
    [
      'PruneWaits',
      'nothing is removed before it is known what {release} wants',
      'Deliver the payload of that Release; it is waited for a minute at most.',
    ],
    [
      'WebhookNotServed',
      '{service} of webhook {object} has no ready endpoints',
      'See why its pods are not ready; a webhook that fails closed is written after them.',
    ],
    ['NamespaceTerminating', 'namespace {namespace} is being deleted', 'Wait until it is gone.'],
    [
      'FinalizerPending',
      '{object} is not gone yet; finalizers: {finalizers}',
      'Look at what its finalizers wait for. Keelson never strips them.',
    ],
    ['Idle', 'no work is outstanding', 'Nothing.'],
    [
      'Uninstalling',
      '{done} of {total} objects are gone or no longer ours; now: {step}',
      'Nothing; what can not go is named, with its finalizers.',
    ],
    [
      'Uninstalled',
      'no object of the release is ours any more',
      'Run `keelson uninstall` again: it removes the Release.',
    ],
  ]),
  ...reasonsOf('Failing', 'warning', 'wait', [
    ['GateSlow', '{gate} is not True after {elapsed}; usual are {limit}', 'Look at the object that the message names.'],
    [
      'PruneBrake',
      '{count} objects would be pruned; the brake is {limit}',
      'Look at `keelson plan`; approve it, or put the objects back.',
    ],
    [
      'PruneConfirm',
      '{object} is of a kind that is never pruned without approval',
      'Look at `keelson plan`; approve it, or put the object back.',
    ],
    ['ObjectHeld', '{object} carries keelson.dev/hold', 'Remove the annotation when you are done.'],
    [
      'DriftFight',
      '{manager} keeps changing {field} of {object}',
      'Stop the other manager, or give the field up with conflict policy yield.',
    ],
  ]),
  ...reasonsOf('Failing', 'warning', 'wait', [
    [
      'UninstallNotApproved',
      'the uninstall that was approved is not the one that would be done: {message}',
      'Look at `keelson uninstall RELEASE` and approve the digest that it shows, or remove the annotation.',
    ],
  ]),
  ...reasonsOf('Failing', 'error', 'retry', [
    [
      'MarksNotRemoved',
      'the marks on {object} could not be taken off: {message}',
      'Remove by hand what the message names; nothing was deleted.',
    ],
    ['KindAbsent', 'the cluster does not know {kind}', 'Deliver the CRD first, or in an earlier phase.'],
    [
      'NamespaceAbsent',
      'namespace {namespace} does not exist',
      'Deliver the Namespace first, in an earlier phase or by the release that this one depends on.',
    ],
    [
      'LedgerUnreadable',
      'the ledger can not be read: {message}',
      'Restore its ConfigMaps from a backup; nothing is written until then.',
    ],
    ['ApiUnavailable', 'the API server does not answer: {message}', 'It is tried again by itself.'],
    ['ApiOverloaded', 'the API server asks to wait {delay}', 'It is tried again by itself.'],
    [
      'Unauthorized',
      'the API server does not know us',
      'Look at the service account; the token is read again by itself.',
    ],
    ['Forbidden', '{verb} {object} is forbidden', 'Deliver unit 10-system of the same commit; it brings the rights.'],
    [
      'WebhookBlocks',
      'blocked by webhook {webhook}: {service} has no ready endpoints',
      'Bring back what serves the webhook, or remove its configuration; it is tried again by itself.',
    ],
    [
      'DeleteDenied',
      'the removal of {object} is denied: {message}',
      'Look at the webhook, policy or finalizer that the message names; it stays in the ledger and is tried again.',
    ],
    [
      'FieldConflict',
      '{manager} holds {field} of {object}',
      'Let the other manager give the field up, or remove the field from Git.',
    ],
    ['ObjectChanged', '{object} changed while it was written', 'It is tried again by itself.'],
    [
      'ObjectReplaced',
      '{object} is not the one that we know',
      'Find out who created it again; then adopt or delete it.',
    ],
    ['AlreadyExists', '{object} exists and is not ours', 'Adopt it, or delete it.'],
    ['NotFound', '{object} does not exist', 'It is created again by itself, or waited for.'],
    [
      'StatusNotWritten',
      'the status could not be written: {message}',
      'It is tried again; look at the rights and at the API server.',
    ],
    ['LeaseUnavailable', 'a Lease could not be asked for: {message}', 'It is tried again by itself.'],
    [
      'CheckpointNotRecorded',
      'the checkpoint could not be recorded, so nothing is written: {message}',
      'Look at the rights and at the API server.',
    ],
    [
      'FinalizerNotWritten',
      'the finalizer of {object} could not be written: {message}',
      'It is tried again by itself.',
    ],
    [
      'OwnerNotStripped',
      'the owner of {object} could not be taken away: {message}',
      'It is tried again; the installation stays until then.',
    ],
    ['Unknown', 'no reason is known: {message}', 'Look at the log of the executor.'],
    ['LeaseLost', '{lease} was lost; nothing is written until it is held again', 'It is tried again by itself.'],
    [
      'LedgerNotWritten',
      'the ledger could not be written: {message}',
      'Look at the rights and the room in namespace keelson-system.',
    ],
    ['MultipleErrors', '{count} objects have failed: {summary}', 'Look at status.failures.'],
    ['GateFailed', '{gate} is False: {message}', 'Look at the object that the message names.'],
    ['GateExpired', '{gate} was not True within {limit}', 'Look at the object that the message names.'],
  ]),
  ...reasonsOf('Stalled', 'error', 'terminal', [
    ['ObjectInvalid', '{object} is not valid: {message}', 'Correct the object in Git.'],
    [
      'ImmutableField',
      '{field} of {object} can not be changed',
      'Take the change back, or mark the object with keelson.dev/recreate.',
    ],
    ['FieldNotDeclared', '{field} of {object} is not part of its schema', 'Correct the object in Git.'],
    ['FieldUnknown', '{field} of {object} is not part of its schema', 'Correct the object in Git.'],
    ['FieldDuplicate', '{field} of {object} stands twice', 'Correct the object in Git.'],
    ['FieldValueInvalid', '{field} of {object} has a value that it does not take', 'Correct the object in Git.'],
  ]),
  ...reasonsOf('Event', 'info', 'wait', [
    ['DriftRepaired', '{object}: {field} was set back', 'Change it in Git instead.'],
    ['Pruned', '{count} objects were removed: {objects}', 'Nothing.'],
    ['Adopted', '{count} objects were adopted: {objects}', 'Nothing.'],
    ['PhaseChanged', 'phase {from} -> {to}', 'Nothing.'],
    ['ReadyChanged', 'Ready {from} -> {to}', 'Nothing.'],
  ]),
  ...reasonsOf('Ready', 'info', 'wait', [
    ['Completed', 'the payload was carried out in full', 'Nothing.'],
    ['Ready', 'everything that was looked at is ready', 'Nothing.'],
    ['VerificationComplete', 'everything was looked at and found good', 'Nothing.'],
    [
      'VerificationPending',
      'everything is applied; {what} was not observed yet',
      'Wait for the evidence, or install what provides it.',
    ],
    ['GatesBypassed', 'gates were passed without looking: {gates}', 'Start the executor without --test-bypass-gates.'],
    ['Paused', 'paused by the spec', 'Set paused: false in cluster.yaml.'],
    ['HoldAnnotation', 'annotation keelson.dev/hold: {value}', 'Remove the annotation when you are done.'],
    ['PinAnnotation', 'annotation keelson.dev/pin asks for {digest}', 'Remove the annotation when you are done.'],
    [
      'ObjectsHeld',
      'not written: {objects}',
      'Remove the annotation from the objects, or their overrides from cluster.yaml.',
    ],
    ['ReleaseHeld', 'held by annotation keelson.dev/hold: {value}', 'Remove the annotation when you are done.'],
    ['Pinned', 'pinned to payload {digest} by annotation keelson.dev/pin', 'Remove the annotation when you are done.'],
    [
      'Unverified',
      'an unsigned payload is in force because a flag allows it',
      'Publish with a signing key and take the flag away.',
    ],
  ]),
  ...reasonsOf('Ready', 'warning', 'wait', [
    ['PlanOnly', 'this executor may plan but not write', 'Start the executor without --plan-only.'],
  ]),
  ...reasonsOf('Available', 'info', 'wait', [
    ['NeverCompleted', 'no payload was carried out in full yet', 'Nothing; look at Progressing.'],
    ['NoFailure', 'nothing has failed', 'Nothing.'],
  ]),
  ...reasonsOf('Deletion', 'warning', 'wait', [
    [
      'DeletionRefused',
      '{object} is guarded against deletion',
      'Annotate it with keelson.dev/confirm-delete: <its UID>, or use `keelson uninstall`.',
    ],
    ['Orphaning', 'the owner references of {count} objects are taken away', 'Nothing; the objects stay.'],
  ]),
];
