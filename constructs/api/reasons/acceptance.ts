import { type Reason, reasonsOf } from './reason.ts';

/** Reasons of the steps before the first write. Until a payload is accepted, the old one stays enforced. */
export const acceptanceReasons: readonly Reason[] = [
  ...reasonsOf('Accepted', 'info', 'wait', [
    ['Accepted', 'payload {digest} is accepted', 'Nothing.'],
    ['Fetch', 'reading payload {digest}', 'Nothing; it takes seconds.'],
    ['Verify', 'verifying payload {digest}', 'Nothing; it takes seconds.'],
    ['Preconditions', 'checking the preconditions of payload {digest}', 'Nothing; it takes seconds.'],
    ['DryRun', 'trying all {total} objects without writing', 'Nothing; it takes seconds to minutes.'],
    ['Plan', 'planning the change to payload {digest}', 'Nothing; it takes seconds.'],
    ['Approval', 'looking for the approval of plan {plan}', 'Nothing; it takes seconds.'],
    [
      'PayloadIncomplete',
      'not all of payload {digest} has been delivered',
      'Wait for the courier; `keelson deliver` does it at once.',
    ],
    [
      'SpecPayloadSkew',
      '{object} in the cluster differs from the one that was rendered',
      'Wait until the courier has delivered both, or publish again.',
    ],
    [
      'ApprovalRequired',
      'plan {plan} needs approval: {risks}',
      'Look at `keelson plan`; commit the line that `keelson approve` prints.',
    ],
    ['DependencyNotReady', 'release {release} is not Ready', 'Look at that release first.'],
    [
      'ForeignController',
      '{controller} still runs and would work against this release',
      'Stop it; then the release goes on by itself.',
    ],
    [
      'RequirementMissing',
      'Secret {namespace}/{name} is missing',
      'Create the Secret; then the release goes on by itself.',
    ],
    [
      'SpanOpen',
      'payload {digest} has to be finished first: it is between {from} and {to}',
      'Wait; only its repair or an authorised rollback is accepted now.',
    ],
  ]),
  ...reasonsOf('Accepted', 'warning', 'wait', [
    [
      'RolloutWaits',
      'the pods of {object} are made anew once its databases are whole; now {message}',
      'Wait, or mend the databases; what is in place stays enforced.',
    ],
    ['InstallationMissing', '{object} is not in the cluster', 'Deliver unit 30-specs of the same commit.'],
    [
      'InstallationDeleting',
      'the installation is being deleted; nothing of its payload is written',
      'Wait until it is gone; its objects stay.',
    ],
  ]),
  ...reasonsOf('Accepted', 'error', 'terminal', [
    [
      'ExecutorTooOld',
      'the payload, or the ledger, has format {format}; this executor reads up to {known}',
      'Deliver unit 10-system of the same commit first.',
    ],
    [
      'CentralOrderChanged',
      'the payload has other central addresses or another order than the retained topology',
      'Run `keelson inventory` and publish again.',
    ],
    [
      'WebhookUnsafe',
      '{webhook} would stop the objects that it needs itself',
      'Give the webhook a namespace or object selector, or failurePolicy: Ignore.',
    ],
    [
      'StoredVersionDropped',
      '{crd} no longer serves {version}, in which objects are stored',
      'Keep the version until the objects are stored in another one.',
    ],
    [
      'ChangeBlocked',
      'this change of class {class} is not allowed: {message}',
      'Take the change back, or go the way that the message names.',
    ],
    [
      'GateInvalid',
      'gate {gate} can not be judged: {message}',
      'Publish with the version of Keelson that runs in the cluster.',
    ],
    [
      'BindingMissing',
      '{what} is not known for {pointer}',
      'Report it: the payload asks for a value that the cluster does not have.',
    ],
  ]),
  ...reasonsOf('Accepted', 'error', 'terminal', [
    ['UnknownDomain', 'this executor does not serve domain {domain}', 'Deploy the role that serves it.'],
  ]),
  ...reasonsOf('Ready', 'info', 'wait', [
    ['Pending', '{message}', 'Nothing; it takes seconds.'],
    ['NothingApplied', 'no object of the installation is applied yet', 'Nothing; look at the Release.'],
    ['ReleaseMissing', 'no Release {release} was delivered yet', 'Deliver unit 20-releases of the same commit.'],
    [
      'ObservationOutdated',
      'whether it still is in place is not known: {message}',
      'Nothing once the API server answers in time; a new round of looks follows by itself.',
    ],
    ['RolledOut', '{ready} of {total} workloads, claims and definitions are ready', 'Nothing.'],
  ]),
  ...reasonsOf('Accepted', 'error', 'retry', [
    [
      'PayloadMissing',
      'payload {digest} is nowhere to be found',
      'Deliver the release again; a pinned payload must be a retained one.',
    ],
    ['PayloadIntegrity', 'payload {digest} is damaged: {message}', 'Publish and deliver the release again.'],
    ['SignatureMissing', 'payload {digest} is not signed', 'Publish with a signing key.'],
    [
      'SignatureUntrusted',
      'payload {digest} is signed by key {keyId}, which is not trusted',
      'Add the public key to Secret keelson-trust, or sign with a trusted key.',
    ],
    ['SignatureInvalid', 'the signature of payload {digest} does not hold', 'Find out who changed it; publish again.'],
    [
      'InventoryStale',
      'the nodes are not those that were rendered for: {difference}',
      'Run `keelson inventory`, commit, and publish again.',
    ],
    [
      'MemberRequestsTooEarly',
      'memberRequests come before the first topology was recorded',
      'Remove them until TopologyRecorded was True once.',
    ],
    ['RequirementInvalid', 'Secret {namespace}/{name} can not be used: {message}', 'Correct the Secret.'],
    [
      'AccessMissing',
      'the executor may not {verb} {resource}',
      'Deliver unit 10-system of the same commit; it brings the rights.',
    ],
    ['OwnedByAnother', '{object} belongs to {owner}', 'Remove it from this release, or adopt it.'],
    ['AdoptionRefused', '{object} can not be adopted: {message}', 'Correct the selector, or the object.'],
    [
      'AdoptionDiffers',
      '{field} of {object} is not what the payload has',
      'Correct the spec so that it renders what is there, or change the object; an adoption changes no value.',
    ],
    ['InvalidSpec', 'the spec of {object} can not be used: {message}', 'Correct the spec.'],
    [
      'CheckpointUnreadable',
      'the checkpoint of {object} can not be read: {message}',
      'Restore the status from a backup; nothing is written until then.',
    ],
    ['RequirementExpires', 'the certificate in Secret {namespace}/{name} ends before {time}', 'Renew the certificate.'],
    [
      'PinNotRetained',
      'payload {digest} is not among the retained copies',
      'Pin a digest that is still retained, or remove annotation keelson.dev/pin.',
    ],
    ['ObservationFailed', 'the workloads could not be read: {message}', 'It is tried again; look at the API server.'],
    [
      'ReportNotWritten',
      'the report could not be written: {message}',
      'Look at the rights and the room in namespace keelson-system.',
    ],
    [
      'RetainedCopyFailed',
      'the payload could not be kept: {message}',
      'Look at the rights and the room in namespace keelson-system.',
    ],
    [
      'RetainedCopyDamaged',
      'the retained copy of payload {digest} can not be used: {message}',
      'Deliver that payload again: the copy is made anew from the inbox.',
    ],
    ['ReadFailed', '{what} could not be read: {message}', 'It is tried again; look at the API server.'],
  ]),
];
