import { type Reason, reasonsOf } from './reason.ts';

/** Reasons of a payload that comes out of an artifact of Flux. Whatever they say, what is accepted stays enforced. */
export const sourceReasons: readonly Reason[] = [
  ...reasonsOf('Accepted', 'warning', 'wait', [
    [
      'ArtifactNotReady',
      '{source} has no artifact that is ready',
      'Look at the source (`flux get sources all -A`); the release goes on as soon as it is ready.',
    ],
    [
      'ArtifactSkew',
      'revision {revision} does not hold payload {digest}',
      'Wait until Flux has fetched the commit that the Release came with; check the path if it never does.',
    ],
  ]),
  ...reasonsOf('Accepted', 'warning', 'retry', [
    [
      'ArtifactGone',
      'the artifact {url} is not there any more (404)',
      'Nothing: the source has moved on, and is read again.',
    ],
    [
      'ArtifactUnavailable',
      'the artifact {url} could not be fetched: {message}',
      'See whether source-controller runs, and whether the nodes of the executor reach its Service.',
    ],
  ]),
  ...reasonsOf('Accepted', 'error', 'retry', [
    [
      'ArtifactWithoutDigest',
      'the artifact of revision {revision} states no digest',
      'Use a source controller that writes status.artifact.digest.',
    ],
    [
      'ArtifactDigestMismatch',
      'the artifact has digest {found}, its source states {stated}',
      'Have the source fetched again (`flux reconcile source`); if it stays, somebody changes it on its way.',
    ],
    [
      'ArtifactTooLarge',
      'the artifact is larger than {limit}',
      'Leave everything but the rendered tree out of the source (spec.ignore of a GitRepository).',
    ],
    [
      'ArtifactUnsafe',
      'the artifact must not be unpacked: {message}',
      'Remove the entry that is named from the source.',
    ],
    ['ArtifactRefused', 'the artifact can not be used: {message}', 'Correct what the message names, in the source.'],
  ]),
  ...reasonsOf('Input', 'error', 'terminal', [
    [
      'ArtifactNeedsNetwork',
      'release {release} brings the network, and an artifact is fetched over it',
      'Remove it from spec.delivery.flux.artifactFor; it travels in ConfigMaps.',
    ],
  ]),
  ...reasonsOf('Accepted', 'error', 'terminal', [
    [
      'SourceNotAllowed',
      'this executor reads no sources of namespace {namespace}',
      'Name the release in spec.delivery.flux.artifactFor of cluster.yaml, publish, and deliver unit 10-system.',
    ],
  ]),
];
