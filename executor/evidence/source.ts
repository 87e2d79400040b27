import { networkProbe, probeContainers, timings } from '../../constructs/api/constants.ts';
import type { EvidenceKind } from '../../constructs/api/evidence/words.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import type { KubeClient } from '../kube/client.ts';
import type { CredentialSource } from '../kube/credentials.ts';
import type { EvidenceSource } from '../network/observer.ts';
import { observePeer } from '../peer/observe.ts';
import type { PeerProvider } from '../peer/provider.ts';
import { AuthorityKeeper, type KeeperTimings } from '../pki/keeper.ts';
import { reviewToken } from '../pki/token.ts';
import { kubeletWay } from './forward.ts';
import { type PullOptions, pullEvidence } from './pull.ts';
import { type ProbeTarget, probePorts } from './target.ts';
import { directWay, type Way } from './way.ts';

export interface SourceOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  /** Where the authority lies. */
  readonly namespace: string;
  /** Where probes read whom they believe. */
  readonly probeNamespaces: readonly string[];
  /** For the way through the kubelet. */
  readonly credentials: CredentialSource;
  readonly keeper?: Partial<KeeperTimings>;
  /** Looks at the other half of a hosted pair; absent: nobody does, and a half is never ready. */
  readonly peers?: PeerProvider;
  readonly log: (level: 'info' | 'warn', message: string) => void;
  readonly signal: AbortSignal;
}

const connectMs = 2_000;

/** Straight; and through API server and kubelet, where nobody answers. */
const straightTo = ({ addresses }: ProbeTarget): readonly Way[] =>
  addresses.slice(0, 1).map((address) => directWay(address, connectMs));

const portsOf: Readonly<Partial<Record<EvidenceKind, readonly number[]>>> = probePorts;

/** Asks probes, and keeps the authority that both sides prove themselves by. `running` ends with the signal. */
export function evidenceSource(options: SourceOptions): { source: EvidenceSource; running: Promise<void> } {
  const { client, clock, credentials, log, peers, signal } = options;
  const keeper = new AuthorityKeeper({
    ...options,
    ...(options.keeper === undefined ? {} : { timings: options.keeper }),
  });
  const pulling: Omit<PullOptions, 'ways'> = {
    clock,
    trust: () => keeper.trust(),
    enroller: {
      validity: () => keeper.validity(),
      review: (token, limit) => reviewToken(client, token, limit),
    },
    ports: ({ kind }) => portsOf[kind] ?? [],
    limitMs: timings.evidence.nodeProbeMs,
    log: (message) => log('warn', message),
  };
  return {
    source: {
      async ask(target, limit) {
        await keeper.settled(pulling.limitMs, limit);
        return pullEvidence(target, { ...pulling, ways: straightTo }, limit);
      },
      retry: (target, limit) =>
        pullEvidence(target, { ...pulling, ways: (to) => [kubeletWay(credentials, to, connectMs)] }, limit),
      containers: probeContainers,
      networkNames: networkProbe,
      ...(peers === undefined
        ? {}
        : { peer: (installation, stop) => observePeer(installation, peers, { client, clock }, stop) }),
    },
    running: keeper.run(signal),
  };
}
