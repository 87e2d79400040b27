import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { EvidenceSubject } from '../../constructs/api/evidence.ts';
import { systemClock } from '../../constructs/lib/clock.ts';
import { type PullOptions, pullEvidence } from '../../executor/evidence/pull.ts';
import type { ProbeTarget } from '../../executor/evidence/target.ts';
import { directWay } from '../../executor/evidence/way.ts';
import { type KeyPair, makeAuthority, makeExecutorPair } from '../../executor/pki/certificates.ts';
import type { Trust } from '../../executor/pki/keeper.ts';
import { readAuthority } from '../../executor/pki/store.ts';
import type { TokenOutcome } from '../../executor/pki/token.ts';
import { ok } from '../../probes/jsonrpc/fault.ts';
import type { Collectors } from '../../probes/server/collector.ts';
import { makeOffer } from '../../probes/server/offer.ts';
import { type ProbeOptions, runProbe } from '../../probes/server/run.ts';
import { tiedDirectory } from '../tools/directory.ts';
import { freePort } from '../tools/ports.ts';

/** Evidence servers and the executor's end of them, in one process and on loopback. */

export const dayMs = 86_400_000;

const daemon = { socketInode: '1', startTicks: '2' };

/** Collectors of a chassis on which all is well. */
export const chassisCollectors: Collectors<'chassis'> = {
  ovsdb: {
    limitMs: 1_000,
    collect: async () =>
      ok({ systemID: 'n1', remote: 'tcp:10.0.0.1:6642', encaps: [], matchNorthdVersion: false, daemon }),
  },
  controller: { limitMs: 1_000, collect: async () => ok({ connected: true, daemon }) },
  vswitchd: {
    limitMs: 1_000,
    collect: async () => ok({ bridge: { name: 'br-int', inVswitchd: true, datapath: 'netdev' }, daemon }),
  },
};

export const subjectOf = (n: number): EvidenceSubject => ({
  namespace: 'kube-system',
  pod: `ovs-ovn-${n}`,
  podUID: `00000000-0000-4000-8000-00000000000${n}`,
  container: 'keelson-probe',
  node: `node-${n}`,
  nodeBootID: `boot-${n}`,
});

export const targetOf = (subject: EvidenceSubject): ProbeTarget<'chassis'> => ({
  ...subject,
  kind: 'chassis',
  addresses: ['127.0.0.1'],
});

/** Token of a pod, as the stand-in of the API server here knows it. */
/** What the kubelet tells a container of its pod. */
export const downwardOf = ({ namespace, pod, podUID, node }: EvidenceSubject) => ({
  POD_NAMESPACE: namespace,
  POD_NAME: pod,
  POD_UID: podUID,
  NODE_NAME: node,
  POD_IPS: '127.0.0.1',
});

export const tokenOf = ({ podUID }: EvidenceSubject): string => `token-of-${podUID}`;

export interface RunningProbe {
  readonly subject: EvidenceSubject;
  readonly port: number;
  readonly said: string[];
  stop(): Promise<void>;
}

/** An executor: authorities, who it is by them, and what it knows of tokens. */
export async function executorBed() {
  const clock = systemClock;
  const directory = await tiedDirectory('keelson-evidence-');
  const authoritiesFile = join(directory.path, 'ca.crt');
  const reviewed: string[] = [];
  const stops: (() => Promise<void>)[] = [];
  const subjects = new Map<string, EvidenceSubject>();
  let trust: Trust | undefined;

  const newAuthority = async (name: string) => {
    const pair = await makeAuthority(name, { from: clock.now() - 10 * dayMs, to: clock.now() + 30 * dayMs });
    return readAuthority(pair.certificate, pair.key);
  };
  const validity = () => ({ from: clock.now() - 60_000, to: clock.now() + dayMs });
  const identityBy = (authority: KeyPair) => makeExecutorPair(authority, validity());

  /** Believes these, signs by the first of them, and tells probes. */
  const believe = async (authorities: readonly Trust['signer'][], told = authorities): Promise<Trust> => {
    const [signer] = authorities;
    if (signer === undefined) throw new Error('nobody to believe');
    const identities = await Promise.all(authorities.map(identityBy));
    trust = { authorities: authorities.map(({ certificate }) => certificate).join(''), signer, identities };
    await writeFile(authoritiesFile, told.map(({ certificate }) => certificate).join(''));
    return trust;
  };

  const review = async (token: string): Promise<TokenOutcome> => {
    reviewed.push(token);
    const owner = subjects.get(token);
    return owner === undefined
      ? { type: 'refused', why: 'the API server does not know the token' }
      : { type: 'pod', pod: owner };
  };

  return {
    clock,
    directory: directory.path,
    authoritiesFile,
    reviewed,
    newAuthority,
    believe,
    validity,
    trust: () => trust,
    /** Lets the token of a pod prove it. */
    know(subject: EvidenceSubject): void {
      subjects.set(tokenOf(subject), subject);
    },
    freePort,
    async start(n: number, over: Partial<ProbeOptions<'chassis'>> = {}): Promise<RunningProbe> {
      const subject = subjectOf(n);
      const tokenFile = join(directory.path, `token-${n}`);
      await writeFile(tokenFile, tokenOf(subject));
      subjects.set(tokenOf(subject), subject);
      const said: string[] = [];
      const end = new AbortController();
      const listening = Promise.withResolvers<number>();
      const running = runProbe(
        {
          kind: 'chassis',
          collectors: chassisCollectors,
          subject,
          version: 'test',
          clock,
          random: Math.random,
          ports: [0],
          host: '127.0.0.1',
          authoritiesFile,
          tokenFile,
          makeOffer: () => makeOffer(subject, ['127.0.0.1'], clock.now()),
          log: (message) => said.push(message),
          onListening: listening.resolve,
          ...over,
        },
        end.signal,
      );
      const stop = async (): Promise<void> => {
        end.abort();
        await running;
      };
      stops.push(stop);
      return { subject, port: await listening.promise, said, stop };
    },
    /** The executor's end for probes at these ports. */
    pulling(ports: readonly number[], over: Partial<PullOptions> = {}): PullOptions {
      return {
        clock,
        trust: () => trust,
        enroller: { validity, review },
        ways: () => [directWay('127.0.0.1', 2_000)],
        ports: () => ports,
        limitMs: 5_000,
        log: () => undefined,
        ...over,
      };
    },
    pull(target: ProbeTarget<'chassis'>, options: PullOptions) {
      return pullEvidence(target, options, new AbortController().signal);
    },
    async stop() {
      await Promise.all(stops.map((stop) => stop()));
      await directory.remove();
    },
  };
}
