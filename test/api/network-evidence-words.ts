/** Short words of what the tests of evidence look at, and of what they spoil. */
import { answer, centralFacts, databaseFacts, podOf } from '../pure/observe-support.ts';
import type { Spoil } from './evidence-bed.ts';
import { condition, type Loose } from './network-bed.ts';

export const image = (name: string, digit: string): string =>
  `registry.example.com/keelson/${name}@sha256:${digit.repeat(64)}`;
export const imagesOf = (digit: string) => ({ executor: image('keelson', 'e'), probe: image('probe', digit) });
export const gate = (release: Loose, type: string): string => {
  const found = release.status?.phases
    ?.flatMap((phase: Loose) => phase.gates ?? [])
    .find((one: Loose) => one.type === type);
  return `${found?.state}/${found?.reason}`;
};
export const told = (object: Loose, type: string): string => {
  const found = condition(object, type);
  return `${found?.status}/${found?.reason}`;
};
/** Conditions of the installation that rounds make. */
const types = ['OVNDBReady', 'NorthdReady', 'DataPlaneReady', 'TopologyRecorded', 'Degraded'];
export const all = (object: Loose): string[] => types.map((type) => `${type} ${condition(object, type)?.status}`);
export const well = [
  'OVNDBReady True',
  'NorthdReady True',
  'DataPlaneReady True',
  'TopologyRecorded True',
  'Degraded False',
];
export const allWell = (object: Loose): boolean => all(object).join() === well.join();

/** A member whose answer lacks NB, or whose NB is another one. */
export const member =
  (n: number, change: 'down' | Parameters<typeof databaseFacts>[3]): Spoil =>
  (target, of) => {
    if (target.kind !== 'central' || of !== n) return undefined;
    const pod = podOf(target);
    const facts = centralFacts(n, 3);
    if (change === 'down') delete facts.nb;
    else facts.nb = databaseFacts('nb', n, 3, change);
    return answer('central', pod, facts) as never;
  };
