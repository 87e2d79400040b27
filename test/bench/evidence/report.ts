/** The results of rounds as text, and what they had to come to. */
import { markdownTable } from '../report.ts';
import { type RequestCounts, sumOf } from '../requests.ts';
import { type EvidenceResults, latencyMs, type RoundFigures } from './rounds.ts';

const roundSeconds = 60;
/** Growth of the resident memory over the second half of the rounds: in the first the heap takes the size that it keeps. */
const growthMiB = 6;
/** Writes of a round, however many nodes there are: a status, and Events about it. */
const writesPerRound = 10;

const isWrite = (key: string): boolean => /^(POST|PUT|PATCH|APPLY|DELETE)\b/.test(key);
const writes = (requests: RequestCounts): number => sumOf(requests, isWrite);

function growth(rounds: readonly RoundFigures[]): number {
  const [middle, last] = [rounds[Math.floor(rounds.length / 2)], rounds.at(-1)];
  return middle === undefined || last === undefined ? 0 : last.residentMiB - middle.residentMiB;
}

/** What is not as wanted. */
export function evidenceProblems({ nodes, hanging, refusing, rounds, asked }: EvidenceResults): string[] {
  const silent = hanging + refusing;
  const answering = nodes - silent;
  return [
    ...rounds.flatMap(({ seconds, well, unknown, requests }, n) => {
      // Enrolment has the token of each probe reviewed, once.
      const allowed = writesPerRound + (n === 0 ? answering : 0);
      return [
        ...(seconds < roundSeconds ? [] : [`round ${n + 1} took ${seconds.toFixed(1)} s`]),
        ...(well === answering && unknown === silent ? [] : [`round ${n + 1} saw ${well} well and ${unknown} unknown`]),
        ...(writes(requests) <= allowed ? [] : [`round ${n + 1} wrote ${writes(requests)} times`]),
      ];
    }),
    ...(growth(rounds) <= growthMiB ? [] : [`memory grew by ${growth(rounds).toFixed(0)} MiB`]),
    ...(asked.most - asked.least <= 1 ? [] : [`a server was asked ${asked.least} times, another ${asked.most} times`]),
  ];
}

/** The results as text. */
export function describeEvidence(results: EvidenceResults): string {
  const { nodes, hanging, refusing, atOnce, rounds, peakMiB, busyBefore, asked } = results;
  const rows = rounds.map(({ seconds, well, unknown, residentMiB, cpuSeconds, requests, portForwards }, n) => [
    n === 0 ? '1, all enrolled' : String(n + 1),
    seconds.toFixed(1),
    String(well),
    String(unknown),
    residentMiB.toFixed(0),
    cpuSeconds.toFixed(1),
    String(writes(requests)),
    String(sumOf(requests) - writes(requests)),
    String(portForwards),
  ]);
  const head = ['round', 'seconds', 'well', 'unknown', 'resident, MiB', 'CPU, s', 'writes', 'reads', 'port-forwards'];
  return [
    `${nodes} nodes at ${latencyMs} ms, ${hanging} hang, ${refusing} refuse; ${atOnce} at a time; busy before ${busyBefore.toFixed(2)}`,
    '',
    markdownTable(head, rows),
    '',
    `peak ${peakMiB.toFixed(0)} MiB; grown by ${growth(rounds).toFixed(1)} MiB over the second half of the rounds; each server that answers was asked ${asked.least} to ${asked.most} times`,
  ].join('\n');
}
