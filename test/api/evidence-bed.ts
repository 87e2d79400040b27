/** Sidecars of a cluster whose pods do not run: they answer for every pod by the wire's own schema, as a test says. */

import { networkProbe, probeContainers } from '../../constructs/api/constants.ts';
import { parseNetworkQuestion } from '../../constructs/api/evidence/question.ts';
import type { EvidenceKind } from '../../constructs/api/evidence/words.ts';
import { type FactsOf, parseEvidence } from '../../constructs/api/evidence.ts';
import type { ProbeTarget } from '../../executor/evidence/target.ts';
import type { Outcome } from '../../executor/observe/round.ts';
import type { EvidenceMaker } from '../../executor/run.ts';
import { answer, centralFacts, chassisFacts, drainFacts, podOf } from '../pure/observe-support.ts';

export type Spoil = <K extends EvidenceKind>(target: ProbeTarget<K>, member: number) => Outcome<K> | undefined;

export interface Sidecars {
  readonly evidence: EvidenceMaker;
  /** What is wrong from now on; nothing by default. */
  spoil: Spoil;
  /** Pods that were asked, by their nodes. */
  readonly asked: Set<string>;
}

/** What a client of the network probe sees where every packet arrives: any server answers for the Service. */
function packets(question: string | undefined): FactsOf<'network'> {
  const { checks = [] } = parseNetworkQuestion(question ?? '') ?? {};
  const any = checks.find(({ server }) => server !== undefined)?.server;
  return {
    addresses: [],
    checks: checks.map(({ target, family, address, port, server = any }) => ({
      ...{ target, family, address, port, outcome: 'ok' as const, elapsedMs: 1 },
      ...(server === undefined ? {} : { answered: server }),
      ...(target === 'name' ? { resolved: [address] } : {}),
    })),
  };
}

function wellOf(target: ProbeTarget, member: number, size: number): Outcome<EvidenceKind> {
  const pod = podOf(target);
  switch (target.kind) {
    case 'central':
      return answer('central', pod, centralFacts(member, size));
    case 'network':
      return answer('network', pod, packets(target.question));
    case 'drain':
      return answer('drain', pod, drainFacts(member));
    default:
      return answer('chassis', pod, chassisFacts(member));
  }
}

/**
 * Sidecars of a cluster with `size` members of OVN central on n1, n2 and so on; with `all`, those of the network probe and those
 * that tell what a node would take along as well.
 */
export function sidecars(size = 3, all = false): Sidecars {
  const made: Sidecars = {
    spoil: () => undefined,
    asked: new Set(),
    evidence: () => ({
      running: Promise.resolve(),
      source: {
        containers: {
          ...{ central: 'evidence', chassis: 'evidence', network: 'evidence' },
          ...(all ? { drain: probeContainers.drain } : {}),
        },
        ...(all ? { networkNames: networkProbe } : {}),
        ask: async (target) => {
          made.asked.add(`${target.kind} ${target.node}`);
          const member = Number(target.node.replace(/\D/g, ''));
          const spoilt = made.spoil(target, member);
          if (spoilt !== undefined && spoilt.type !== 'Evidence') return spoilt;
          const said = spoilt ?? wellOf(target, member, size);
          if (said.type !== 'Evidence') return said as never;
          // Over the wire and back: what the schema does not let through is not seen.
          const nonce = 'b'.repeat(32);
          const body = Buffer.from(JSON.stringify({ ...said.evidence, nonce }));
          const read = parseEvidence(body, { kind: target.kind, nonce });
          if (read.outcome !== 'evidence') throw new Error(JSON.stringify(read));
          return { type: 'Evidence', evidence: read.evidence };
        },
      },
    }),
  };
  return made;
}
