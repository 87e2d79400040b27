/** Sidecars of a cluster whose pods do not run: they answer for every pod by the wire's own schema, as a test says. */

import type { EvidenceKind } from '../../constructs/api/evidence/words.ts';
import { parseEvidence } from '../../constructs/api/evidence.ts';
import type { ProbeTarget } from '../../executor/evidence/target.ts';
import type { Outcome } from '../../executor/observe/round.ts';
import type { EvidenceMaker } from '../../executor/run.ts';
import { answer, centralFacts, chassisFacts, podOf } from '../pure/observe-support.ts';

export type Spoil = <K extends EvidenceKind>(target: ProbeTarget<K>, member: number) => Outcome<K> | undefined;

export interface Sidecars {
  readonly evidence: EvidenceMaker;
  /** What is wrong from now on; nothing by default. */
  spoil: Spoil;
  /** Pods that were asked, by their nodes. */
  readonly asked: Set<string>;
}

/** Sidecars of a cluster with `size` members of OVN central on n1, n2 and so on. */
export function sidecars(size = 3): Sidecars {
  const made: Sidecars = {
    spoil: () => undefined,
    asked: new Set(),
    evidence: () => ({
      running: Promise.resolve(),
      source: {
        containers: { central: 'evidence', chassis: 'evidence', network: 'evidence' },
        ask: async (target) => {
          made.asked.add(`${target.kind} ${target.node}`);
          const member = Number(target.node.replace(/\D/g, ''));
          const spoilt = made.spoil(target, member);
          if (spoilt !== undefined && spoilt.type !== 'Evidence') return spoilt;
          const pod = podOf(target);
          const well =
            target.kind === 'central'
              ? answer('central', pod, centralFacts(member, size))
              : answer('chassis', pod, chassisFacts(member));
          const said = spoilt ?? well;
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
