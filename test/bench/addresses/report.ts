/** The results of the ledger as text, and what they had to come to. */
import { markdownTable } from '../report.ts';
import type { AddressesResults, Measurement } from './measure.ts';

const matchedMs = 1_000;
const mostMiB = 200;

const unserved = (what: string, { asked, served }: Measurement): string[] =>
  asked === served ? [] : [`${what}: ${served} of ${asked} were served`];

/** What is not as wanted. How much of the hurried is served is MetalLB's to say, and only told. */
export function addressesProblems({ plain, matched, provided, startMiB }: AddressesResults): string[] {
  return [
    ...unserved('plain Services', plain),
    ...unserved('matched claims', matched),
    ...unserved('provided claims', provided),
    ...(matched.p95 < matchedMs ? [] : [`95 of 100 claims were matched within ${matched.p95.toFixed(0)} ms`]),
    ...(startMiB < mostMiB ? [] : [`the role took ${startMiB.toFixed(0)} MiB`]),
  ];
}

function row(title: string, measured: Measurement): string[] {
  const { pace, asked, served, p50, p95, longest, writes, cpuSeconds, busyBefore } = measured;
  return [
    title,
    `${pace.rate}/s for ${pace.seconds} s`,
    `${served} of ${asked}`,
    ...[p50, p95, longest].map((ms) => ms.toFixed(0)),
    writes.toFixed(1),
    cpuSeconds === undefined ? '' : ((cpuSeconds * 1000) / Math.max(1, served)).toFixed(1),
    busyBefore.toFixed(2),
  ];
}

const head = [
  'what',
  'pace',
  'served',
  'median, ms',
  '95 of 100, ms',
  'longest, ms',
  'writes each',
  'CPU each, ms',
  'busy before',
];

/** The results as text. */
export function describeAddresses(results: AddressesResults): string {
  const { machine, plain, matched, provided, hurried, startSeconds, startMiB, peakMiB, coreMiB } = results;
  const ratio = (of: 'p50' | 'p95'): string => (hurried[of] / plain[of]).toFixed(1);
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, Linux ${machine.kernel}, Node ${machine.node}; load ${machine.loadAverage.join(' ')}`,
    '',
    markdownTable(head, [
      row('claims matched with recorded addresses', matched),
      row('claim, MetalLB, Service', provided),
      row('claim, MetalLB, Service', hurried),
      row('plain Service, MetalLB alone', plain),
    ]),
    '',
    `claim, MetalLB, Service by plain Service, at one pace: median ${ratio('p50')}, 95 of 100 ${ratio('p95')}`,
    `start of core and driver ${startSeconds.toFixed(1)} s; resident at most ${startMiB.toFixed(0)} MiB after it, ${peakMiB.toFixed(0)} MiB in the end; core alone ${coreMiB.toFixed(0)} MiB`,
  ].join('\n');
}
